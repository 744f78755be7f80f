"""Policies that decide once: they profile until their window is full, choose an order, and keep it."""

from __future__ import annotations

from typing import ClassVar

from thalweg.ordering.policy import Policy, log_change, want_rest
from thalweg.ordering.profile import Batch, insert
from thalweg.ordering.types import Floats, Integers


class Once(Policy):
    """Decides once, from the first full window of profile tuples; then asks for no more."""

    default_p: ClassVar[float] = 0.01

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        room = self.profile.window - self.profile.seen
        if room <= 0:
            return False
        first = Batch(batch.masks[:room], batch.times[:room], batch.timed[:room], batch.stamps[:room])
        insert(self.profile.arrays, first)
        return self.profile.seen == self.profile.window and self.decide()

    def decide(self) -> bool:
        """Choose the order from what the window holds now, and stop profiling; returns whether it changed."""
        before, state = self.order, self.state
        state.order[:] = self._choose(self.profile.masks, self.profile.mean_times)
        state.wanted[:] = 0
        changes = [position for position in range(self.filters) if before[position] != state.order[position]]
        if changes:
            log_change(self.profile.arrays, state, changes[0], before[changes[0]])
        return bool(changes)

    def _choose(self, masks: Integers, costs: Floats) -> tuple[int, ...]:
        raise NotImplementedError
