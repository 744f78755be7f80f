"""Runs filters over batches of rows in a policy's order, and shows the policy profile tuples and counts to learn from.

Every filter sees only the rows that the filters before it kept. Which rows are kept never depends on the order. Rows
are anything with a length of which slices and index arrays can be taken; filters are functions from rows to booleans,
or wait for a service: then slices of rows run beside each other.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import costs_of
from thalweg.ordering.overlap import MeanCost, Steps, Wait, WaitingFilter, run_alone, run_together
from thalweg.ordering.policy import Policy
from thalweg.ordering.service_calls import FIRST_LOOK_OF_CALLS, LOSS_OF_CALLS, ServiceCalls
from thalweg.ordering.slices import SliceCounts, SliceSizes, UntoldSlices
from thalweg.ordering.stopwatch import Stopwatch
from thalweg.ordering.types import Booleans, Floats, Integers

SLICE_SECONDS = 10e-3  # half of the time of a batch that runs as one slice, at the most
FIRST_PART = 0.2  # of it, for the first slice of a longer batch: the order may have become bad (docs/decisions/0145)
NEXT_SECONDS = 20e-3  # time of the slices after it, which run in an order that the first has tried
# Profiling may take as large a share of the filters' own time as an order that was learnt from n profile tuples is
# expected to lose, LOSS / n: more profile tuples would cost more than they bring. But changes that hide behind other
# filters show in the profile alone, so there is a least share, too. (docs/decisions/0072 and 0187)
LOSS = 1.0
PROFILE_SHARE = 0.005
MOST_RESTARTS = 20  # that are remembered
FIRST_LOOK = 200  # profile tuples that are made, however much they cost (docs/decisions/0078 and 0121)
TIE = 1e-6  # the cost of a second where filters tell costs in another unit: time decides between equal costs


Rows = Any  # a batch of rows, for example a NumPy array
Filter = Callable[[Rows], Booleans]


class Chosen(NamedTuple):
    """Rows of a slice that are profiled."""

    dropper: int  # the filter that dropped them
    further: tuple[int, ...]  # the filters that they are to be evaluated on besides
    rows: Integers
    tells: bool = False  # whether they may tell of the order of filters that wait


class Pipeline:
    """Filters in an adaptive order.

    Parameters
    ----------
    policy
        The policy that orders them; it learns as batches pass.
    filters
        A function for each filter: rows in, a boolean for each row out, True to keep the row. Or a filter that waits.
    costs
        The cost of a row in each filter, all in the same unit; measured in seconds if not given.
    stamp
        When profile tuples are made, for the policy's window; they are counted if it is not given.
    clock
        Tells the time in seconds, by which the costs of filters are measured.

    Examples
    --------
    >>> from thalweg.ordering import AGreedy
    >>> pipeline = Pipeline(AGreedy(2), [lambda x: x % 2 == 0, lambda x: x > 90], costs=[1, 1])
    >>> rows = np.arange(100)
    >>> rows[pipeline.keep(rows)].tolist()
    [92, 94, 96, 98]
    >>> pipeline.policy.order
    (1, 0)
    """

    def __init__(
        self,
        policy: Policy,
        filters: Sequence[Filter | WaitingFilter],
        *,
        costs: ArrayLike | None = None,
        stamp: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if len(filters) != policy.filters:
            raise ValueError(f"the policy orders {policy.filters} filters, not {len(filters)}")
        self.policy = policy
        self.filters = tuple(filters)
        self.tuples = 0  # rows seen
        self._evaluated = [0] * policy.filters
        self._dropped = [0] * policy.filters
        self._seconds = [0.0] * policy.filters
        self.extra_evaluations = 0  # rows that filters looked at for profiling alone
        self.profile_seconds = 0.0  # and the time it took, learning included
        self.restarts: deque[tuple[int, int]] = deque(maxlen=MOST_RESTARTS)  # rows by then, profile tuples thrown away
        self._costs = None if costs is None else costs_of(costs).copy()
        if self._costs is not None and self._costs.size != policy.filters:
            raise ValueError(f"costs are {policy.filters} numbers, a cost for each filter, not {self._costs.size}")
        self._stamp = stamp
        self._clock = clock
        self._sizes = SliceSizes()
        self._spent = 0.0  # the filters' time
        self._earned = 0.0  # time that profiling may have taken by now: a share of the filters' time
        self._start = 0  # of the slice in its batch
        self._watches = tuple(Stopwatch() if callable(each) else MeanCost() for each in filters)
        self._untold = UntoldSlices(len(filters))
        self._waiting: dict[int, WaitingFilter] = {
            number: each for number, each in enumerate(filters) if not callable(each)
        }
        self._told = tuple(MeanCost() for _ in filters)
        self._calls = ServiceCalls(self._waiting, len(filters)) if self._waiting else None
        self._rows_profiled = 0
        self._told_earned = self._told_profiling = 0.0  # told costs that profiling may have taken by now, and has taken
        self._loss, self._first_look = (LOSS_OF_CALLS, FIRST_LOOK_OF_CALLS) if self._waiting else (LOSS, FIRST_LOOK)

    @property
    def evaluated(self) -> Integers:
        """Rows that each filter looked at because the query needed it."""
        return np.array(self._evaluated, np.int64)

    @property
    def dropped(self) -> Integers:
        """Rows that each filter dropped of them."""
        return np.array(self._dropped, np.int64)

    @property
    def seconds(self) -> Floats:
        """The time that each filter took for them."""
        return np.array(self._seconds)

    @property
    def evaluations(self) -> int:
        """Rows that filters looked at because the query needed it."""
        return sum(self._evaluated)

    @property
    def row_seconds(self) -> float:
        """The seconds that a row took lately, NaN as long as the first rows are being looked at."""
        return self._sizes.row_seconds

    @property
    def costs(self) -> Floats:
        """The cost of a row in each filter: as told or given, or seconds as measured, NaN where nothing is known.

        If some filters tell their costs, and no costs are given, the other filters cost next to nothing.
        """
        costs = np.array([watch.per_row for watch in self._watches]) if self._costs is None else self._costs.copy()
        told = np.array([each.per_row for each in self._told])
        if np.isnan(told).all():
            return costs
        if self._costs is None:
            costs *= TIE
        return np.where(np.isnan(told), costs, told + (costs if self._costs is None else 0.0))

    @property
    def waits(self) -> bool:
        """Whether a filter waits for a service."""
        return bool(self._waiting)

    @property
    def call_costs(self) -> Floats:
        """Seconds that a call of each filter takes, however many its rows."""
        return np.array([watch.per_call for watch in self._watches])

    def warm_up(self, costs: ArrayLike, call_costs: ArrayLike) -> None:
        """Begin with costs that are known from an earlier run, and with whole batches."""
        self._sizes.begin_large()
        for watch, cost, call in zip(self._watches, np.array(costs, float), np.array(call_costs, float), strict=True):
            watch.expect(float(cost), float(call))

    def keep(self, rows: Rows) -> Booleans:
        """Which of the rows all filters keep."""
        if self._calls is not None:
            self._calls.begin_batch()
            parts = run_together(self._slices(rows, self._calls), partial(self._calls.most_waiting, self.policy))
            return np.concatenate([np.zeros(0, np.bool_), *parts])
        parts, start = list[Booleans](), 0
        while start < len(rows):
            seconds, part = (NEXT_SECONDS, 1.0) if start else (SLICE_SECONDS, FIRST_PART)
            stop = start + self._sizes.choose(len(rows) - start, seconds, part)
            self._start = start
            parts.append(self._keep(rows if stop - start == len(rows) else rows[start:stop]))
            start = stop
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.bool_), *parts])

    def _slices(self, rows: Rows, calls: ServiceCalls) -> Iterator[Steps[Booleans]]:
        """Slices to be run beside each other, each of as many rows as a service may be asked for at once."""
        start = 0
        while start < len(rows):
            size = min(self._sizes.choose(len(rows) - start, SLICE_SECONDS), calls.most_in_slice(self.policy))
            yield self._steps(rows[start : start + size], start)
            start += size

    def _keep(self, rows: Rows) -> Booleans:
        """Which rows of a slice all filters keep; the policy learns from it."""
        if self._calls is not None:
            self._calls.begin_batch()
        return run_alone(self._steps(rows, self._start))

    def _steps(self, rows: Rows, start: int) -> Steps[Booleans]:
        """The steps of a slice, which begins at this place in its batch."""
        filters = len(self.filters)
        counts, order = SliceCounts([0] * filters, [0] * filters, [0.0] * filters), self.policy.order
        kept, chosen = yield from self._run(rows, counts)
        self._count(len(rows), counts)
        is_current = self.policy.order == order  # the order may have changed while the slice waited
        if is_current:
            self._note(counts, order)
        if chosen and (is_current or self._all_further(order, 0) is not None):
            yield from self._profile(rows, chosen, start)
        if self._calls is not None:
            self._calls.rows_chosen -= sum(each.rows.size for each in chosen)
            self._calls.telling_chosen -= sum(each.rows.size for each in chosen if each.tells)
        if kept is None:
            return np.ones(len(rows), np.bool_)
        result = np.zeros(len(rows), np.bool_)
        result[kept] = True
        return result

    def _note(self, counts: SliceCounts, order: tuple[int, ...]) -> None:
        """Note the counts of a slice for the policy."""
        is_unusual = self._untold.is_unusual(counts)
        if is_unusual:  # the policy is told of it apart from the slices before
            self._tell()
        self._untold.add(counts, order)
        if is_unusual or self._untold.is_full:
            self._tell()

    def _run(self, rows: Rows, counts: SliceCounts) -> Steps[tuple[Integers | None, list[Chosen]]]:
        """Run the filters in the policy's order; returns the rows that are kept, None for all, and rows to profile."""
        policy, order, chosen = self.policy, self.policy.order, list[Chosen]()
        count, part, alive = len(rows), rows, None  # the rows that are left; None: all of them
        may_profile = self._may_profile()
        policy.sampler.expect(count)
        for position, number in enumerate(order):
            if not count:
                break
            passed, counts.seconds[number] = yield from self._evaluate(number, part, count)
            kept = int(np.count_nonzero(passed))
            counts.evaluated[number], counts.dropped[number] = count, count - kept
            if self._calls is not None:
                self._calls.note_filter(number, count, count - kept)
            if kept == count:
                continue
            if may_profile and (sampled := self._sampled(number, count - kept)).size:
                further = policy.needs(position) if policy.order == order else self._all_further(order, position)
                if further is not None:
                    gone = np.flatnonzero(~passed)[sampled]
                    chosen.append(self._chosen(number, further, gone if alive is None else alive[gone]))
            alive = passed.nonzero()[0] if alive is None else alive[passed]
            count, part = kept, rows[alive]
        return alive, chosen

    def _sampled(self, number: int, dropped: int) -> Integers:
        """Which of so many rows that a filter dropped are profiled."""
        sampled = self.policy.sampler.choose(dropped)
        if self._calls is None or not self.policy.sampler.probability:
            return sampled
        missing = self._calls.missing(self.policy, number)
        return sampled if missing is None else np.arange(min(missing, dropped))

    def _chosen(self, number: int, further: tuple[int, ...], rows: Integers) -> Chosen:
        """Rows that a filter dropped, with the filters that they are to be evaluated on."""
        if self._calls is None:
            return Chosen(number, further, rows)
        tells = self._calls.tells(number, self.policy.order)
        self._calls.rows_chosen += rows.size
        self._calls.telling_chosen += rows.size * tells
        return Chosen(number, self._calls.worth_asking(number, further), rows, tells)

    def _all_further(self, order: tuple[int, ...], position: int) -> tuple[int, ...] | None:
        """All filters behind a position of an order that the policy no longer has, if it wants to know of all filters.

        Then profile tuples of that order are as good as others; None if the policy chooses filters by its order.
        """
        wants_all = len(self.policy.needs(0)) == len(self.filters) - 1
        return order[position + 1 :] if wants_all else None

    def _count(self, rows: int, counts: SliceCounts) -> None:
        """Add a slice to the totals."""
        for number, (evaluated, dropped, seconds) in enumerate(zip(*counts, strict=True)):
            self._evaluated[number] += evaluated
            self._dropped[number] += dropped
            self._seconds[number] += seconds
        spent = sum(counts.seconds)
        self.tuples += rows
        self._spent += spent
        self._earned += self._share * spent
        if self._calls is not None:
            waited = sum(counts.seconds[number] for number in self._waiting)
            told = sum(counts.evaluated[number] * each.per_row for number, each in enumerate(self._told) if each)
            self._told_earned += self._share * told
            self._calls.note(rows, counts, self._times())
            self._sizes.note(rows, spent - waited)
        else:
            self._sizes.note(rows, spent)

    def _tell(self) -> None:
        """Let the policy learn from ordinary processing since it was last told."""
        if self._untold:
            self.policy.observe(*self._untold.take(self.policy.order))
            if self.policy.saw_change:
                self._start_over()

    def _start_over(self) -> None:
        """Learn anew, because the stream has changed, with few rows at a time until that is done."""
        self.restarts.append((self.tuples, len(self.policy.profile)))
        self.policy.forget()
        self._sizes.begin_small()
        self._earned = self.profile_seconds
        for watch in self._watches:
            watch.forget()
        if self._calls is not None:
            self._calls.begin_look()

    @property
    def _share(self) -> float:
        """Of the filters' own time, for profiling."""
        known = len(self.policy.profile) if self._calls is None else self._calls.known(self.policy)
        return max(PROFILE_SHARE, self._loss / max(known, self._first_look))

    def _may_profile(self) -> bool:
        """Whether profiling has stayed within its share; where filters are cheap, their order matters little."""
        if self._calls is None:
            return len(self.policy.profile) < self._first_look or self.profile_seconds <= self._earned
        if self._calls.looks(self.policy):
            return True
        more = 1.0 + self._calls.rows_chosen / max(self._rows_profiled, 1)  # whose answers are still to come
        return more * self.profile_seconds <= self._earned and more * self._told_profiling <= self._told_earned

    def _profile(self, rows: Rows, chosen: list[Chosen], start: int) -> Steps[None]:
        """Evaluate chosen rows on the filters that the policy asks for, and show it the outcome in the rows' order."""
        before = self._clock()
        places = np.concatenate([each.rows for each in chosen])
        masks = np.concatenate([np.full(each.rows.size, 1 << each.dropper) for each in chosen])
        wanted = np.concatenate(
            [np.full(each.rows.size, sum(1 << further for further in each.further)) for each in chosen]
        )
        for number in self.policy.order:  # each filter evaluates all its rows in one call
            asked = np.flatnonzero(wanted >> number & 1)
            if asked.size:
                if number in self._waiting:  # the time in which other slices run is not profiling's
                    self.profile_seconds += self._clock() - before
                passed, seconds = yield from self._evaluate(number, rows[places[asked]], asked.size)
                if number in self._waiting:
                    self.profile_seconds += seconds
                    self._told_profiling += asked.size * (self._told[number].per_row if self._told[number] else 0.0)
                    before = self._clock()
                masks[asked[~passed]] |= 1 << number
                self.extra_evaluations += asked.size
        self._rows_profiled += places.size
        arrival = np.argsort(places)
        times = np.broadcast_to(self._times(), (places.size, self.policy.filters))
        self._start = start
        self._learn(places[arrival], masks[arrival], times)
        self.profile_seconds += self._clock() - before

    def _learn(self, places: Integers, masks: Integers, times: Floats) -> None:
        """Show the policy profile tuples in the order of arrival, with the places of their rows in the slice."""
        self._tell()  # what the order so far has shown: it may change now
        self.policy.profile.forget_times()  # they are estimates, and the new estimates are better
        self.policy.update(masks, times, None if self._stamp is None else self._stamp())

    def _times(self) -> Floats:
        """The cost of a row in each filter; where nothing is known, the median of the others."""
        times = self.costs
        unknown = np.isnan(times)
        if not unknown.any():
            return times
        if self._calls is not None:
            return self._calls.guess(times, self.call_costs, TIE if any(self._told) else 1.0)
        if not unknown.all():
            times[unknown] = np.median(times[~unknown])
        return times

    def _evaluate(self, number: int, rows: Rows, count: int) -> Steps[tuple[Booleans, float]]:
        if (waiting := self._waiting.get(number)) is not None:
            future = waiting.begin(rows)
            yield Wait(future, count)
            passed, seconds, cost = waiting.finish(rows, future.result())
            if cost is not None:
                self._told[number].note(count, cost)
        else:
            before = self._clock()
            passed = np.asarray(self.filters[number](rows), np.bool_)  # type: ignore[operator]  # it does not wait
            seconds = self._clock() - before
        self._watches[number].note(count, seconds)
        return passed, seconds
