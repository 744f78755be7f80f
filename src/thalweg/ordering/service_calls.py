"""What a pipeline does otherwise where filters wait for services: calls are dear, services few, and answers come late.

Few rows are under way until a first look tells the best order. A row is profiled on a service only if that may change
the order: rows that are dropped before tell nothing of it, as a rule. So what is known is counted by the rows that
reach the first filter that a service behind it may have to go ahead of. (docs/decisions/0306)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thalweg.ordering.overlap import MeanCost, WaitingFilter
from thalweg.ordering.policy import Policy
from thalweg.ordering.slices import SliceCounts
from thalweg.ordering.types import Floats

LOSS_OF_CALLS = 0.5  # as `LOSS` of a pipeline
FIRST_LOOK_OF_CALLS = 8  # profile tuples that tell of the services' order, which are made however much they cost,
LONGEST_LOOK = 16  # unless services drop so few that it takes this many times as many rows
FEW_WAITING = 16  # rows that wait for services during the first look
QUEUE = 2  # rows that wait for services after it, for each row that these may be asked for at once
MARGIN = 2.0  # how many times smaller the rank of a filter is that surely does not overtake another: shares are noisy
UNKNOWN = 1.0  # seconds that a row is thought to take in services none of which has answered yet


class ServiceCalls:
    """How many rows wait for services, and which rows are worth a call that the query does not need."""

    def __init__(self, waiting: Mapping[int, WaitingFilter], filters: int) -> None:
        self.waiting = waiting
        self.rows_chosen = 0  # rows to be profiled that are not learnt from yet,
        self.telling_chosen = 0  # and of these the rows that tell of the services' order
        self._recent = 0.0, 0.0  # rows lately, and how many of them reached a service
        self._looked_at = 0  # rows that reached services since the first look began
        self._shares = tuple(MeanCost() for _ in range(filters))  # of the rows that each filter drops
        self._costs: Floats = np.where(np.isin(np.arange(filters), list(waiting)), UNKNOWN, 0.0)
        self._settled: tuple[tuple[int, ...], int] | None = None  # for this order, the filters that hold their place

    def begin_batch(self) -> None:
        """A batch in which a filter failed has left rows that were chosen."""
        self.rows_chosen = self.telling_chosen = 0

    def begin_look(self) -> None:
        """Look anew, as the stream has changed."""
        self._looked_at = 0

    def note(self, rows: int, counts: SliceCounts, costs: Floats) -> None:
        """Note a slice, and the costs of the filters now."""
        reached = max(counts.evaluated[number] for number in self.waiting)
        self._recent = 0.5 * self._recent[0] + rows, 0.5 * self._recent[1] + reached
        self._looked_at += reached
        self._costs, self._settled = costs, None

    def note_filter(self, number: int, evaluated: int, dropped: int) -> None:
        """Note how many rows of a slice a filter evaluated and dropped."""
        self._shares[number].note(evaluated, dropped)

    def tells(self, dropper: int, order: tuple[int, ...]) -> bool:
        """Whether rows that a filter drops may tell of the services' order."""
        return not self._holding(order) >> dropper & 1

    def known(self, policy: Policy) -> int:
        """Profile tuples that tell of the services' order."""
        return int(np.count_nonzero(policy.profile.masks & self._holding(policy.order) == 0))

    def looks(self, policy: Policy) -> bool:
        """Whether the first look is still to be had; there is none where nothing is profiled, or may be overtaken."""
        if self._looked_at >= LONGEST_LOOK * FIRST_LOOK_OF_CALLS or not policy.sampler.full_probability:
            return False
        return self._may_change(policy.order) and self.known(policy) < FIRST_LOOK_OF_CALLS

    def missing(self, policy: Policy, dropper: int) -> int | None:
        """How many rows that a service drops are to be chosen for the first look; None if they are chosen as usual."""
        if dropper not in self.waiting or not self.tells(dropper, policy.order) or not self.looks(policy):
            return None
        return max(FIRST_LOOK_OF_CALLS - self.known(policy) - self.telling_chosen, 0)

    def most_waiting(self, policy: Policy) -> int:
        """How many rows may wait for services."""
        places = [each.concurrency for each in self.waiting.values()]
        return min(FEW_WAITING, *places) if self.looks(policy) else QUEUE * sum(places)

    def most_in_slice(self, policy: Policy) -> int:
        """So many rows that no more of them reach a service than it may be asked for at once."""
        places = max(each.concurrency for each in self.waiting.values())
        seen, reached = self._recent
        return int((min(FEW_WAITING, places) if self.looks(policy) else places) * (seen + 1.0) / (reached + 1.0)) + 1

    def worth_asking(self, dropper: int, further: tuple[int, ...]) -> tuple[int, ...]:
        """Which of these filters a row that a filter drops is profiled on: services only if that may change the order.

        A row that is dropped tells of the filters behind its dropper whether one should run before it.
        """
        return tuple(each for each in further if each not in self.waiting or self._may_overtake(each, dropper))

    def _may_overtake(self, service: int, other: int) -> bool:
        """Whether a service may drop more for its cost than a filter before it: not if all rows were too few."""
        if not self._shares[other]:  # it has seen no row: a service may be as any other, and behind other filters
            return other in self.waiting
        return bool(self._costs[service] * self._shares[other].per_row < MARGIN * self._costs[other])

    def _may_change(self, order: tuple[int, ...]) -> bool:
        """Whether a service may have to go ahead of a filter before it."""
        first = self._holding(order).bit_count()  # the position of this filter
        return any(number in self.waiting for number in order[first + 1 :])

    def guess(self, costs: Floats, calls: Floats, second: float) -> Floats:
        """Costs, with guesses where nothing is known, such that no service comes ahead of other filters by chance.

        A row costs no more than a call of it alone. A service that has not answered may be as dear as any.
        """
        guessed = np.where(np.isnan(costs) & (calls > 0), second * calls, costs)
        waits = np.isin(np.arange(costs.size), list(self.waiting))
        known, dear = guessed[~waits & ~np.isnan(guessed)], guessed[waits & ~np.isnan(guessed)]
        cheap = float(np.median(known)) if known.size else 0.0
        return np.where(np.isnan(guessed), np.where(waits, dear.max(initial=0.0) or second * UNKNOWN, cheap), guessed)

    def _holding(self, order: tuple[int, ...]) -> int:
        """The first filters of an order, as a mask, as far as no service behind them may have to go ahead of them."""
        if self._settled is None or self._settled[0] != order:
            mask = 0
            for position, number in enumerate(order):
                behind = self.waiting.keys() & order[position + 1 :]
                if any(self._may_overtake(service, number) for service in behind) or not behind:
                    break
                mask |= 1 << number
            self._settled = order, mask
        return self._settled[1]
