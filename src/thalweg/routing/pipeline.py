"""Runs filters over batches, each class of rows in its own order, as `thalweg.ordering.pipeline` does in one order.

While the router has no classifier this is a plain pipeline, whose profile tuples carry the values of the attributes.
Which rows are kept depends neither on classes nor on orders.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.ordering.overlap import WaitingFilter
from thalweg.ordering.pipeline import Filter, Pipeline, Rows
from thalweg.ordering.sampling import counts_of
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.attributes import Columns
from thalweg.routing.class_router import ClassRouter

FIRST_BATCH = 2500  # rows of a batch before a look that may find classifiers: so many rows later they are in use
NEW_SHARE = 0.2  # of the filters' own time that profiling may take before a look that may find classifiers
ENOUGH = 400  # profile tuples for one order, until classifiers were looked for once
CLASS_SHARE = 0.01  # of the filters' own time for profiling while there are classes, each of which learns an order,
PAID = 0.1  # but no more than this share of what the classes save
SHOWN_TOGETHER = 64  # profile tuples that the router is shown at once after its first look, where it has no classes
CHOOSE_SHARE = 0.01  # of the filters' own time that choosing classifiers may take, but for the first time


class ProfiledRows(NamedTuple):
    """Profile tuples of a batch: their rows in the batch, drop masks and times."""

    rows: Integers
    masks: Integers
    times: Floats


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
        filters: Sequence[Filter | WaitingFilter],
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
        self._class_rows: Integers | None = None  # the rows of the class that runs; None while all rows run
        self._profiles_batch = False  # whether the batch that is split by class is profiled
        self._profiled: list[ProfiledRows] = []  # in this batch, until it is over
        self._unseen = UnseenTuples()
        self._saved = SavedByRow()
        self._small: tuple[int, ...] = ()  # classes of the last batch that joined class 0

    def keep(self, rows: Rows, columns: Columns | None = None) -> Booleans:
        """Which of the rows all filters keep; `columns` holds the columns that the router's attributes name."""
        if columns is None:
            raise TypeError(f"pass the columns too: keep(rows, columns) with {', '.join(self.router.attributes)}")
        if not self.router.search.hurries or len(rows) <= FIRST_BATCH:
            return self._keep_batch(rows, columns)
        parts = [slice(start, start + FIRST_BATCH) for start in range(0, len(rows), FIRST_BATCH)]
        return np.concatenate(
            [self._keep_batch(rows[part], {name: column[part] for name, column in columns.items()}) for part in parts]
        )

    def _keep_batch(self, rows: Rows, columns: Columns) -> Booleans:
        self.policy = self.router.overall
        self._profiled.clear()  # of a batch in which a filter failed
        tuples, dropped = self.tuples, sum(self._dropped)
        if self.router.version or self.rows_by:
            self.rows_by[self.router.in_use] += len(rows)
        if self.router.classifier is None or not self._sizes.has_tried:
            kept, overhead = super().keep(rows), 0.0
            self._show_one_order(columns)
        else:
            kept, overhead = self._keep_by_class(rows, columns)
        self.router.observe(self.tuples - tuples, sum(self._dropped) - dropped, overhead)
        if self.router.search.screening_is_due:
            self._choose(self.router.screen)
        if self.router.search.schedule.is_due and self._may_choose():
            self._choose(self.router.look)
        return kept

    def _choose(self, look: Callable[[], None]) -> None:
        """Let the router look for classifiers."""
        self._tell()  # the counts of the slices that ran in the orders so far
        before, was_hurried = self._clock(), self.router.search.hurries
        look()
        if was_hurried:  # the time that was spent for this look no longer counts: profiling goes on
            self._earned = self.profile_seconds
        self._last_choice = self._clock() - before
        self.choose_seconds += self._last_choice

    def _may_choose(self) -> bool:
        """Whether choosing classifiers has stayed, and would stay, within its share of the filters' own time."""
        spent = self.choose_seconds + 2 * self._last_choice
        return spent <= CHOOSE_SHARE * self._spent or not self._has_looked

    def _keep_by_class(self, rows: Rows, columns: Columns) -> tuple[Booleans, float]:
        """Run each class's rows in its order; returns the cost of splitting, too, in the unit of the costs."""
        router, sampler = self.router, self.router.overall.sampler
        self._tell()  # the counts of the slices that ran in the overall order
        before, at_first = self._clock(), (self.evaluated, self.dropped, self.seconds)
        parts, not_saved = self._parts(router.classify(columns))
        split = self._clock() - before
        kept = np.zeros(len(rows), np.bool_)
        self._profiles_batch = self._may_profile()
        # Classes differ from each other, which is no change of the stream: the sampler watches all of them together.
        adaptive, sampler.adaptive = sampler.adaptive, False
        probability = sampler.probability
        sampler.use(min(probability, self._affordable(len(rows))))
        try:
            for number, places in parts:
                self.policy, self._class_rows, self._start = router.policies[number], places, 0
                kept[places] = self._keep(rows[places])
                self._tell()
        finally:
            self.policy, self._class_rows, sampler.adaptive = router.overall, None, adaptive
            sampler.use(probability)
        self.split_seconds += split
        evaluated, dropped, seconds = (
            now - then for now, then in zip((self.evaluated, self.dropped, self.seconds), at_first, strict=True)
        )
        profile, counts = router.overall.profile, counts_of(len(self.filters), evaluated, dropped, seconds)
        has_changed = sampler.watch(counts, seen=profile.seen, window=profile.window)
        self._show_classes(columns)
        if has_changed:
            self._start_over()
        if self._costs is not None:
            return kept, 0.0
        return kept, split + (len(parts) - 1) * float(self.call_costs.sum()) + not_saved

    def _affordable(self, rows: int) -> float:
        """The share of a batch that may be profiled, of a row at least; every class of a batch is profiled, or none.

        Without it, a few batches would take all the time that profiling may take.
        """
        tuple_seconds = float(self._times().sum()) if self._costs is None else 0.0
        if self.router.learners.hurries or len(self.policy.profile) < self._first_look or not tuple_seconds > 0:
            return 1.0
        return max((self._earned - self.profile_seconds) / tuple_seconds, 1.0) / rows

    def _parts(self, classes: Integers) -> tuple[list[tuple[int, Integers]], float]:
        """The rows of each class, and what is not saved: a class that does not pay for its calls joins class 0."""
        numbers = len(self.router.policies)
        counts, not_saved, small = np.bincount(classes, minlength=numbers), 0.0, tuple[int, ...]()
        if self._costs is None:
            saved = counts * self._saved.by_row(self.router)
            rare = saved < float(self.call_costs.sum()) * bool(saved.any())
            rare[0] = False
            not_saved, small = float(saved[rare].sum()), tuple(np.flatnonzero(rare).tolist())
            classes = np.where(rare[classes], 0, classes)
            counts = np.bincount(classes, minlength=numbers)
        if small != self._small:  # their rows run in another order now, which is no change of the stream
            self._small = small
            self.router.overall.sampler.forget_rates()
        rows = np.split(np.argsort(classes, kind="stable"), np.cumsum(counts)[:-1])
        return [(number, places) for number, places in enumerate(rows) if places.size], not_saved

    @property
    def _has_looked(self) -> bool:
        return self.router.search.schedule.has_looked

    def _start_over(self) -> None:
        super()._start_over()
        self.router.start_over()

    @property
    def _share(self) -> float:
        if self.router.classifier is None:
            return super()._share
        shares = self.router.payoff.shares()
        saving = 1.0 if shares is None else shares["saving"]
        return max(super()._share, min(CLASS_SHARE, PAID * saving))

    def _may_profile(self) -> bool:
        """Before a look that may find classifiers, profiling may take more than its share: the sooner, the better."""
        if self._class_rows is not None:  # all classes of a batch or none, or only the first would be profiled
            return self._profiles_batch
        search = self.router.search
        waits = search.hurries and not search.schedule.is_due  # for profile tuples
        is_new = waits and self.profile_seconds <= NEW_SHARE * self._spent
        return is_new or super()._may_profile()

    def _learn(self, places: Integers, masks: Integers, times: Floats) -> None:
        # A single order learns at once, also within a batch; but it does not need all tuples that tell classes apart.
        if self._class_rows is None and (self._has_looked or len(self.policy.profile) < ENOUGH):
            super()._learn(places, masks, times)
        rows = places + self._start if self._class_rows is None else self._class_rows[places]
        self._profiled.append(ProfiledRows(rows, masks, times))

    def _show_one_order(self, columns: Columns) -> None:
        """Show the router profile tuples that the overall order has learnt from; many at once, if possible."""
        if self._profiled:
            before = self._clock()
            batch, values = self._take_profiled(columns)
            self._unseen.add(batch.masks, values)
            if self.router.search.hurries or self._unseen.tuples >= SHOWN_TOGETHER:
                self._unseen.show(self.router)
            self.profile_seconds += self._clock() - before

    def _show_classes(self, columns: Columns) -> None:
        """Let the router, and the policies of all classes, learn from a batch's profile tuples."""
        if self._profiled:
            before = self._clock()
            batch, values = self._take_profiled(columns)
            self._unseen.show(self.router)
            stamp = None if self._stamp is None else self._stamp()
            for policy in self.router.policies:
                policy.profile.forget_times()  # they are estimates, and the new estimates are better
            self.router.learn(batch.masks, batch.times, values, stamp, look=False)
            self.profile_seconds += self._clock() - before

    def _take_profiled(self, columns: Columns) -> tuple[ProfiledRows, Columns]:
        """The batch's profile tuples, in order of arrival, with the values of their attributes."""
        rows, masks, times = (np.concatenate(arrays) for arrays in zip(*self._profiled, strict=True))
        self._profiled.clear()
        arrival = np.argsort(rows, kind="stable")
        taken = pa.array(rows[arrival])
        values = {name: columns[name].take(taken) for name in self.router.attributes if name in columns}
        return ProfiledRows(rows[arrival], masks[arrival], times[arrival]), values


class UnseenTuples:
    """Profile tuples that the router has not been shown yet: showing many costs as much as showing a single tuple.

    >>> from thalweg.ordering import AGreedy
    >>> router, unseen = ClassRouter(lambda order: AGreedy(2, order=order), ["kind"]), UnseenTuples()
    >>> unseen.add(np.array([1, 2]), {"kind": pa.array([7, 8])})
    >>> unseen.show(router)
    >>> router.seen, unseen.tuples
    (2, 0)
    """

    def __init__(self) -> None:
        self.tuples = 0
        self._batches: list[tuple[Integers, Columns]] = []

    def add(self, masks: Integers, values: Columns) -> None:
        """Keep profile tuples with the values of their attributes."""
        self._batches.append((masks, values))
        self.tuples += masks.size

    def show(self, router: ClassRouter) -> None:
        """Show the router all of them."""
        if self._batches:
            masks, columns = zip(*self._batches, strict=True)
            values = {name: pa.concat_arrays([each[name] for each in columns]) for name in columns[0]}
            router.remember(np.concatenate(masks), values, look=False)
            self._batches.clear()
            self.tuples = 0


class SavedByRow:
    """What a row of each class saves."""

    def __init__(self) -> None:
        self._seen = -1  # profile tuples when it was last estimated
        self._saved: Floats = np.zeros(0)

    def by_row(self, router: ClassRouter) -> Floats:
        """The estimate, made anew whenever the router has learnt from profile tuples."""
        if self._seen != router.seen:
            self._seen, self._saved = router.seen, router.payoff.saved_by_row()
        return self._saved
