"""Runs filters over batches, each class of rows in its own order, as `thalweg.ordering.pipeline` does in one order.

While the router has no classifier this is a plain pipeline, whose profile tuples carry the values of the attributes.
What is kept depends neither on classes nor on orders.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.ordering.pipeline import PROFILE_SHARE, Filter, Pipeline, Rows
from thalweg.ordering.stopwatch import SINGLES
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.class_router import ClassRouter, Columns

FIRST_BATCH = 2500  # rows of a batch until classifiers were looked for once: so many rows later they are in use
NEW_SHARE = 0.2  # of the filters' own time that profiling may take until classifiers were looked for once
ENOUGH = 128  # profile tuples for one order, until classifiers were looked for once
CLASS_SHARE = 0.01  # that it may take while there are classes, each of which has an order to learn
TOLD = 64  # profile tuples that the router is shown at once after its first look, where it has no classes
CHOOSE_SHARE = 0.01  # of the filters' own time that choosing classifiers may take, but for the first time


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
        self.choose_seconds = 0.0  # and on choosing classifiers
        self.rows_by: Counter[tuple[str, ...]] = Counter()  # rows by classifier since the first, () for one order
        self._last_choice = 0.0  # seconds that it took
        self._columns: Columns = {}
        self._rows: Integers | None = None  # of the class that runs; None: all
        self._profiles = False  # whether the batch that is split by class is profiled
        self._profiled: list[tuple[Integers, Integers, Floats]] = []  # in this batch, until it is over
        self._untold_tuples: list[tuple[Integers, Columns]] = []  # profile tuples that the router has not been shown
        self._few = (-1, 0)  # profile tuples when it was last asked how many rows are too few, and the answer

    def keep(self, rows: Rows, columns: Columns | None = None) -> Booleans:
        """Which of the rows all filters keep; columns are those that the router's attributes name."""
        if columns is None:
            raise TypeError(f"pass the columns too: keep(rows, columns) with {', '.join(self.router.attributes)}")
        if self.router.has_looked or len(rows) <= FIRST_BATCH:
            return self._keep_batch(rows, columns)
        parts = [slice(start, start + FIRST_BATCH) for start in range(0, len(rows), FIRST_BATCH)]
        return np.concatenate(
            [self._keep_batch(rows[part], {name: one[part] for name, one in columns.items()}) for part in parts]
        )

    def _keep_batch(self, rows: Rows, columns: Columns) -> Booleans:
        self._columns, self.policy = columns, self.router.overall
        self._profiled.clear()  # of a batch in which a filter failed
        tuples, dropped = self.tuples, sum(self._dropped)
        if self.router.version or self.rows_by:
            self.rows_by[self.router.in_use] += len(rows)
        if self.router.classifier is None or self._slices < SINGLES:
            kept, overhead = super().keep(rows), 0.0
            self._remember(has_learnt=True)
        else:
            kept, overhead = self._keep_by_class(rows, columns)
        self._columns = {}
        self.router.observe(self.tuples - tuples, sum(self._dropped) - dropped, overhead)
        if self.router.is_due and self._may_choose():
            before, is_first = self._clock(), not self.router.has_looked
            self.router.look()
            if is_first:  # what was spent for the first look is spent: profiling goes on
                self._began = self._spent, self.profile_seconds
            self._last_choice = self._clock() - before
            self.choose_seconds += self._last_choice
        return kept

    def _may_choose(self) -> bool:
        """Whether choosing classifiers has stayed, and would stay, within its share of the filters' own time."""
        spent = self.choose_seconds + 2 * self._last_choice
        return spent <= CHOOSE_SHARE * self._spent or not self.router.has_looked

    def _keep_by_class(self, rows: Rows, columns: Columns) -> tuple[Booleans, float]:
        """Run each class's rows in its order; returns what splitting cost, too, in the unit of the costs."""
        router, sampler = self.router, self.router.overall.sampler
        self._tell()  # what is of one order
        before, counts = self._clock(), (self.evaluated, self.dropped, self.seconds)
        parts, joined = self._parts(router.classify(columns))
        split = self._clock() - before
        kept = np.zeros(len(rows), np.bool_)
        self._profiles = self._may_profile()
        # What one class shows is no movement of the stream: the sampler looks at all classes together.
        adaptive, sampler.adaptive = sampler.adaptive, False
        try:
            for number, places in parts:
                self.policy, self._rows, self._start = router.policies[number], places, 0
                kept[places] = self._keep(rows[places])
                self._tell()
        finally:
            self.policy, self._rows, sampler.adaptive = router.overall, None, adaptive
        self.split_seconds += split
        evaluated, dropped, seconds = (
            now - then for now, then in zip((self.evaluated, self.dropped, self.seconds), counts, strict=True)
        )
        profile = router.overall.profile
        sampler.watch(evaluated, dropped, seconds, seen=profile.seen, window=profile.window)
        self._remember(has_learnt=False)
        if self._costs is not None:
            return kept, 0.0
        drop_rate = float(dropped.sum()) / max(len(rows), 1)
        not_saved = router.measured.mean * joined * drop_rate  # by rows that joined class 0
        return kept, split + (len(parts) - 1) * float(self.call_costs.sum()) + not_saved

    def _parts(self, classes: Integers) -> tuple[list[tuple[int, Integers]], int]:
        """The rows of each class, and how many joined class 0: a small class does not pay for calls of filters."""
        counts, joined = np.bincount(classes, minlength=self.router.classes), 0
        if few := self._too_few():
            rare = counts < few
            rare[0] = False
            joined = int(counts[rare].sum())
            classes = np.where(rare[classes], 0, classes)
            counts = np.bincount(classes, minlength=self.router.classes)
        rows = np.split(np.argsort(classes, kind="stable"), np.cumsum(counts)[:-1])
        return [(number, places) for number, places in enumerate(rows) if places.size], joined

    def _too_few(self) -> int:
        """How many rows of a class save less than calling the filters for them once more costs."""
        if self._few[0] != self.router.seen:
            benefit, few = self.router.benefit(), 0
            if self._costs is None and benefit is not None and benefit["saving"] > 0:
                saved = benefit["saving"] * float(np.nansum(self.costs))
                few = int(min(float(self.call_costs.sum()) / max(saved, 1e-12), 1e6))
            self._few = self.router.seen, few
        return self._few[1]

    def _start_over(self) -> None:
        super()._start_over()
        self.router.look_again()

    @property
    def _share(self) -> float:
        return PROFILE_SHARE if self.router.classifier is None else CLASS_SHARE

    def _may_profile(self) -> bool:
        """Until classifiers were looked for once, profiling may take more than its share: the sooner, the better."""
        if self._rows is not None:  # all classes of a batch or none, or the first would be all that is known
            return self._profiles
        is_new = not self.router.has_looked and self.profile_seconds <= NEW_SHARE * self._spent
        return is_new or super()._may_profile()

    def _learn(self, places: Integers, masks: Integers, times: Floats) -> None:
        # One order learns at once, also within a batch; but the many tuples that tell classes are more than it needs.
        if self._rows is None and (self.router.has_looked or len(self.policy.profile) < ENOUGH):
            super()._learn(places, masks, times)
        self._profiled.append((places + self._start if self._rows is None else self._rows[places], masks, times))

    def _remember(self, *, has_learnt: bool) -> None:
        """Show the router the batch's profile tuples, with the values of their rows, in order of arrival."""
        if not self._profiled:
            return
        before = self._clock()
        rows, masks, times = (np.concatenate(each) for each in zip(*self._profiled, strict=True))
        self._profiled.clear()
        arrival = np.argsort(rows, kind="stable")
        taken = pa.array(rows[arrival])
        values = {name: self._columns[name].take(taken) for name in self.router.attributes if name in self._columns}
        if has_learnt:
            self._untold_tuples.append((masks[arrival], values))
            if not self.router.has_looked or sum(each.size for each, _ in self._untold_tuples) >= TOLD:
                self._show()
        else:
            self._show()
            stamp = None if self._stamp is None else self._stamp()
            for policy in self.router.policies:
                policy.profile.forget_times()  # they are estimates, and these are better than those before
            self.router.learn(masks[arrival], times[arrival], values, stamp, look=False)
        self.profile_seconds += self._clock() - before

    def _show(self) -> None:
        """Show the router what one order has learnt from already: that costs as much for one tuple as for many."""
        if self._untold_tuples:
            masks, columns = zip(*self._untold_tuples, strict=True)
            values = {name: pa.concat_arrays([each[name] for each in columns]) for name in columns[0]}
            self.router.remember(np.concatenate(masks), values, look=False)
            self._untold_tuples.clear()
