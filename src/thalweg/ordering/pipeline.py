"""Runs filters over batches of rows in a policy's order, and shows the policy what it needs to learn.

Every filter sees only the rows that those before it kept. What is kept never depends on the order. Rows come as one
array (any indexing that NumPy's fancy indexing offers will do), filters as functions from rows to booleans.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from thalweg.ordering.policy import Policy
from thalweg.ordering.types import Booleans, Floats, Integers

Rows = np.ndarray
Filter = Callable[[Rows], Booleans]

FIRST_SLICE = 64  # rows; doubled from slice to slice, so that a bad first order meets few of them


class Pipeline:
    """Filters in an adaptive order.

    Parameters
    ----------
    policy
        The policy that orders them; it learns as batches pass.
    filters
        One function for each: rows in, a boolean each out, True to keep the row.

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

    def __init__(self, policy: Policy, filters: Sequence[Filter]) -> None:
        if len(filters) != policy.filters:
            raise ValueError(f"the policy orders {policy.filters} filters, not {len(filters)}")
        self.policy = policy
        self.filters = tuple(filters)
        self.tuples = 0  # rows seen
        self.evaluations = 0  # rows that filters looked at because the query needed it
        self.extra_evaluations = 0  # and for profiling alone
        self._slice = FIRST_SLICE

    def keep(self, rows: Rows) -> Booleans:
        """Which of the rows all filters keep."""
        kept = np.zeros(len(rows), np.bool_)
        start = 0
        while start < len(rows):
            stop = start + self._slice
            kept[start:stop] = self._keep(rows[start:stop])
            start, self._slice = stop, self._slice * 2
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
            times = np.divide(seconds, evaluated, out=np.full(policy.filters, np.nan), where=evaluated > 0)
            self._profile(rows, profiled, times)
        policy.observe(evaluated, dropped, seconds)
        kept = np.zeros(len(rows), np.bool_)
        kept[alive] = True
        return kept

    def _profile(self, rows: Rows, profiled: list[tuple[int, tuple[int, ...], Integers]], times: Floats) -> None:
        """Evaluate chosen rows on what the policy asks for, and show it the outcome in the rows' order."""
        masks = []
        for dropper, further, chosen in profiled:
            mask = np.full(chosen.size, 1 << dropper, np.int64)
            for one in further:
                passed, seconds = self._evaluate(one, rows[chosen])
                mask[~passed] |= 1 << one
                self.extra_evaluations += chosen.size
                if np.isnan(times[one]):  # no other rows of this batch have reached it
                    times[one] = seconds / chosen.size
            masks.append(mask)
        arrival = np.argsort(np.concatenate([chosen for _, _, chosen in profiled]))
        batch = np.concatenate(masks)[arrival]
        self.policy.update(batch, np.broadcast_to(times, (batch.size, times.size)))

    def _evaluate(self, one: int, rows: Rows) -> tuple[Booleans, float]:
        before = time.perf_counter()
        passed = np.asarray(self.filters[one](rows), np.bool_) if len(rows) else np.zeros(0, np.bool_)
        return passed, time.perf_counter() - before
