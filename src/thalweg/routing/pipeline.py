"""Runs filters over batches, each class of rows in its own order, as `thalweg.ordering.pipeline` does in one order.

While the router has no classifier this is a plain pipeline, whose profile tuples carry the values of the attributes.
What is kept depends neither on classes nor on orders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.ordering.pipeline import Filter, Pipeline, Rows
from thalweg.ordering.stopwatch import SINGLES
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.class_router import ClassRouter, Columns


class RoutedPipeline(Pipeline):
    """Filters in an adaptive order for each class of rows.

    Parameters
    ----------
    router
        Chooses classes and their orders; it learns as batches pass.
    filters, costs, stamp, clock
        As for `Pipeline`.

    Examples
    --------
    >>> from thalweg.ordering import AGreedy
    >>> router = ClassRouter(lambda order: AGreedy(2, order=order, p=0.2), ["kind"])
    >>> filters = [lambda x: x % 2 == 0, lambda x: x % 2 == 1]
    >>> pipeline = RoutedPipeline(router, filters, costs=[1, 1], clock=lambda: 0.0)
    >>> for _ in range(4):
    ...     rows = np.random.default_rng(0).integers(0, 100, 1000)
    ...     kept = pipeline.keep(rows, {"kind": pa.array(rows % 2)})
    >>> kept.any(), router.explain()["classifier"]["attributes"]
    (np.False_, ['kind'])
    >>> before = pipeline.evaluations
    >>> _ = pipeline.keep(rows, {"kind": pa.array(rows % 2)})
    >>> pipeline.evaluations - before  # one filter a row
    1000
    """

    def __init__(
        self,
        router: ClassRouter,
        filters: Sequence[Filter],
        *,
        costs: ArrayLike | None = None,
        stamp: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(router.overall, filters, costs=costs, stamp=stamp, clock=clock)
        self.router = router
        self.split_seconds = 0.0  # spent on telling classes apart
        self._columns: Columns = {}
        self._rows: Integers | None = None  # of the class that runs; None: all
        self._learnt: list[tuple[Integers, Integers, Floats]] = []  # profile tuples of the batch, until it is over

    def keep(self, rows: Rows, columns: Columns | None = None) -> Booleans:
        """Which of the rows all filters keep; columns are those that the router's attributes name."""
        if columns is None:
            raise TypeError(f"pass the columns too: keep(rows, columns) with {', '.join(self.router.attributes)}")
        self._columns, self.policy = columns, self.router.overall
        tuples, dropped = self.tuples, int(self.dropped.sum())
        if self.router.classifier is None or self._slices < SINGLES:
            kept, overhead = super().keep(rows), 0.0
        else:
            kept, overhead = self._keep_by_class(rows, columns)
        self.router.observe(self.tuples - tuples, int(self.dropped.sum()) - dropped, overhead)
        return kept

    def _keep_by_class(self, rows: Rows, columns: Columns) -> tuple[Booleans, float]:
        """Run each class's rows in its order; returns what splitting cost, too, in the unit of the costs."""
        router, sampler = self.router, self.router.overall.sampler
        before, evaluated, dropped, seconds = self._clock(), self.evaluated.copy(), self.dropped.copy(), self.seconds
        seconds = seconds.copy()
        parts = self._parts(router.classify(columns))
        split = self._clock() - before
        kept = np.zeros(len(rows), np.bool_)
        # What one class shows is no movement of the stream: the sampler looks at all classes together.
        adaptive, sampler.adaptive = sampler.adaptive, False
        try:
            for number, places in parts:
                self.policy, self._rows, self._start = router.policies[number], places, 0
                kept[places] = self._keep(rows[places])
        finally:
            self.policy, self._rows, sampler.adaptive = router.overall, None, adaptive
        self.split_seconds += split
        profile, moved = router.overall.profile, (self.evaluated - evaluated, self.dropped - dropped)
        sampler.watch(*moved, self.seconds - seconds, seen=profile.seen, window=profile.window)
        if self._learnt:
            before = self._clock()
            places, masks, times = (np.concatenate(each) for each in zip(*self._learnt, strict=True))
            self._learnt.clear()
            arrival = np.argsort(places, kind="stable")
            self._show(places[arrival], masks[arrival], times[arrival])
            self.profile_seconds += self._clock() - before
        measured = self._costs is None
        return kept, split + (len(parts) - 1) * float(self.call_costs.sum()) if measured else 0.0

    def _parts(self, classes: Integers) -> list[tuple[int, Integers]]:
        """The rows of each class; classes with too few rows to pay for the calls of the filters run with class 0."""
        counts = np.bincount(classes, minlength=self.router.classes)
        if few := self._too_few():
            rare = counts < few
            rare[0] = False
            classes = np.where(rare[classes], 0, classes)
            counts = np.bincount(classes, minlength=self.router.classes)
        rows = np.split(np.argsort(classes, kind="stable"), np.cumsum(counts)[:-1])
        return [(number, places) for number, places in enumerate(rows) if places.size]

    def _too_few(self) -> int:
        """How many rows of a class save less than calling the filters for them once more costs."""
        benefit = self.router.benefit()
        if self._costs is not None or benefit is None or benefit["saving"] <= 0:
            return 0
        of_one = benefit["saving"] * float(np.nansum(self.costs))
        return int(min(float(self.call_costs.sum()) / of_one, 1e6)) if of_one > 0 else 0

    def _learn(self, places: Integers, masks: Integers, times: Floats) -> None:
        if self._rows is None:
            self._show(places + self._start, masks, times)
        else:
            self._learnt.append((self._rows[places], masks, times))

    def _show(self, rows: Integers, masks: Integers, times: Floats) -> None:
        """Show the router profile tuples, with their rows' values."""
        names, taken = self.router.attributes, pa.array(rows)
        values = {name: self._columns[name].take(taken) for name in names if name in self._columns}
        self.router.learn(masks, times, values, None if self._stamp is None else self._stamp())
