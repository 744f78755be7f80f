"""Runs filters over batches of rows in a policy's order, and shows the policy what it needs to learn.

Every filter sees only the rows that those before it kept. What is kept never depends on the order. Rows come as one
array (any indexing that NumPy's fancy indexing offers will do), filters as functions from rows to booleans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from thalweg.ordering.policy import Policy
from thalweg.ordering.stopwatch import SINGLES, Stopwatch
from thalweg.ordering.types import Booleans, Floats, Integers

Rows = np.ndarray
Filter = Callable[[Rows], Booleans]

FIRST_SLICE = 64  # rows of the first slice after some single ones; then doubled: a bad first order meets few rows


class Pipeline:
    """Filters in an adaptive order.

    Parameters
    ----------
    policy
        The policy that orders them; it learns as batches pass.
    filters
        One function for each: rows in, a boolean each out, True to keep the row.
    clock
        Seconds; what filters cost is told by it.

    Examples
    --------
    >>> from thalweg.ordering import AGreedy
    >>> pipeline = Pipeline(AGreedy(2), [lambda x: x % 2 == 0, lambda x: x > 90])
    >>> rows = np.arange(100)
    >>> rows[pipeline.keep(rows)].tolist()
    [92, 94, 96, 98]
    >>> pipeline.policy.order
    (1, 0)
    """

    def __init__(
        self, policy: Policy, filters: Sequence[Filter], *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        if len(filters) != policy.filters:
            raise ValueError(f"the policy orders {policy.filters} filters, not {len(filters)}")
        self.policy = policy
        self.filters = tuple(filters)
        self.tuples = 0  # rows seen
        self.evaluations = 0  # rows that filters looked at because the query needed it
        self.extra_evaluations = 0  # and for profiling alone
        self._clock = clock
        self._slices = 0
        self._watches = tuple(Stopwatch() for _ in filters)

    def keep(self, rows: Rows) -> Booleans:
        """Which of the rows all filters keep."""
        kept = np.zeros(len(rows), np.bool_)
        start = 0
        while start < len(rows):
            stop = start + (1 if self._slices < SINGLES else FIRST_SLICE << (self._slices - SINGLES))
            kept[start:stop] = self._keep(rows[start:stop])
            start, self._slices = stop, self._slices + 1
        return kept

    def _keep(self, rows: Rows) -> Booleans:
        policy = self.policy
        evaluated, dropped = np.zeros(policy.filters, np.int64), np.zeros(policy.filters, np.int64)
        seconds = np.zeros(policy.filters)
        alive = np.arange(len(rows))
        profiled: list[tuple[int, tuple[int, ...], Integers]] = []  # who dropped them, who is to look too, which rows
        for position, one in enumerate(policy.order):
            passed, seconds[one] = self._evaluate(one, rows[alive])
            gone = alive[~passed]
            evaluated[one], dropped[one] = alive.size, gone.size
            alive = alive[passed]
            chosen = policy.sampler.choose(gone.size)
            if chosen.size:
                profiled.append((one, policy.needs(position), gone[chosen]))
        self.tuples += len(rows)
        self.evaluations += int(evaluated.sum())
        if profiled:
            self._profile(rows, profiled)
        policy.observe(evaluated, dropped, seconds)
        kept = np.zeros(len(rows), np.bool_)
        kept[alive] = True
        return kept

    def _profile(self, rows: Rows, profiled: list[tuple[int, tuple[int, ...], Integers]]) -> None:
        """Evaluate chosen rows on what the policy asks for, and show it the outcome in the rows' order."""
        masks = []
        for dropper, further, chosen in profiled:
            mask = np.full(chosen.size, 1 << dropper, np.int64)
            for one in further:
                passed, _ = self._evaluate(one, rows[chosen])
                mask[~passed] |= 1 << one
                self.extra_evaluations += chosen.size
            masks.append(mask)
        arrival = np.argsort(np.concatenate([chosen for _, _, chosen in profiled]))
        batch = np.concatenate(masks)[arrival]
        self.policy.update(batch, np.broadcast_to(self._times(), (batch.size, self.policy.filters)))

    def _times(self) -> Floats:
        """Seconds a row of each filter; where nothing is known, the median of the others."""
        times = np.array([watch.per_row for watch in self._watches])
        unknown = np.isnan(times)
        if unknown.any() and not unknown.all():
            times[unknown] = np.median(times[~unknown])
        return times

    def _evaluate(self, one: int, rows: Rows) -> tuple[Booleans, float]:
        if not len(rows):
            return np.zeros(0, np.bool_), 0.0
        before = self._clock()
        passed = np.asarray(self.filters[one](rows), np.bool_)
        seconds = self._clock() - before
        self._watches[one].note(len(rows), seconds)
        return passed, seconds
