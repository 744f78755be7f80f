"""How many dropped tuples to profile: the drop-profiling probability, fixed or adaptive.

Profiling costs evaluations that the query did not need. The paper fixes one probability and leaves its adaptation
to future work (a-greedy-2004, sections 4.1.1 and 10). Here the probability falls, block by block, while drop rates and
times stay the same, and returns to its full value as soon as they change. Such changes are seen without profiling:
ordinary processing counts, for every tuple, how often each filter drops the tuples that reach it and how long it takes.
A change that hides behind the filters before it shows only in the profile, and is then found at the reduced
probability.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg.kernels import inlined, kernel
from thalweg.ordering.checked import numbers_of
from thalweg.ordering.precedence import check_filters
from thalweg.ordering.types import Floats, Integers

BLOCK = 2000  # tuples from one comparison with the reference to the next
FLOOR = 0.2  # the least share of the full probability
DECAY = 0.85  # per quiet block: 10 quiet blocks lead to the floor
CHANGE_ERRORS = 4.5  # standard errors by which a drop rate differs when it has changed
SUDDEN = 200  # evaluations that are told together and may show a change at once, without waiting for a whole block,
SUDDEN_ERRORS = 5.0  # if a drop rate differs by so many standard errors: such looks are more frequent
LEAST_CHANGE = 0.01  # the least difference of drop rates that counts, however many tuples show it
SLOWER = 2.0  # factor by which evaluations have become slower
PATIENCE = 5  # consecutive slow blocks that are believed: cold caches and lost processors are over sooner
MEMORY = 32  # blocks that the reference remembers
ENOUGH = 50  # evaluations in a block below which a filter's rates say nothing
NEVER = 1 << 62
MOST_DROPPED = 1 << 30  # tuples of one call, of which all may be chosen
WARM_UP = 64  # the first dropped tuples, all of which are profiled: a bad first order must not last
AFTER_CHANGE = 192  # the same after a change of the stream, of which there is more to come (docs/decisions/0172)

NONE: Integers = np.zeros(0, np.int64)

PROBABILITY, FULL, LOGGED, LOG, CLOSE = range(5)  # of Sampling.probability
GAP, SLOW_BLOCKS, HOLD, WARMING = range(4)  # of Sampling.counters


class ProcessingCounts(NamedTuple):
    """The counts of ordinary processing, a number for each filter."""

    evaluated: Floats  # tuples that the filter evaluated
    dropped: Floats  # tuples that it dropped
    seconds: Floats  # time that it took


# The same numbers, summed over tuples. A record array instead of three arrays, as passing each to a kernel takes time.
RATES = np.dtype([("evaluated", np.float64), ("dropped", np.float64), ("seconds", np.float64)])


class Sampling(NamedTuple):
    """The sampler's arrays, as kernels share them."""

    probability: Floats  # the current p, the full p, the p whose log1p(-p) is stored, that logarithm, p in warm-up
    block: NDArray[np.void]  # `RATES` of each filter in the current block
    reference: NDArray[np.void]  # and in the quiet blocks before it
    counters: Integers  # dropped tuples until the next that is profiled; slow blocks in a row; when p may fall; warm-up


def counts_of(filters: int, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike) -> ProcessingCounts:
    """The counts of ordinary processing as arrays of the right shape, or an error that names what is wrong."""
    expected = f"evaluated, dropped and seconds are {filters} numbers each, a number for each filter"
    counts = ProcessingCounts(*(numbers_of(numbers, expected) for numbers in (evaluated, dropped, seconds)))
    if any(numbers.shape != (filters,) for numbers in counts):
        raise ValueError(expected)
    possible = (counts.dropped >= 0) & (counts.dropped <= counts.evaluated) & (counts.seconds >= 0)  # NaN is not
    if not (possible & (counts.evaluated < np.inf) & (counts.seconds < np.inf)).all():
        raise ValueError(
            f"a filter drops from 0 to all of the tuples that it evaluates, in 0 seconds or more; not {counts!r:.200}"
        )
    return counts


@kernel
def next_gap(sampling: Sampling, uniform: float) -> None:
    """Draw how many dropped tuples pass by before the next is profiled (geometric)."""
    probability = sampling.probability[PROBABILITY]
    if probability > 0.0 and sampling.counters[WARMING] > 0:
        probability = max(probability, sampling.probability[CLOSE])
        sampling.counters[WARMING] -= 1
    if probability != sampling.probability[LOGGED]:  # a logarithm takes as long as a filter
        sampling.probability[LOGGED] = probability
        sampling.probability[LOG] = math.log1p(-probability) if probability < 1.0 else 0.0
    gap = NEVER
    if probability >= 1.0:
        gap = 0
    elif probability > 1.0 / NEVER:
        gap = int(min(math.log(1.0 - uniform) / sampling.probability[LOG], NEVER))
    sampling.counters[GAP] = gap


@kernel
def watch(sampling: Sampling, counts: ProcessingCounts, seen: int, window: int) -> bool:
    """Add the counts of ordinary processing to the block; at its end, lower or raise the probability.

    The full probability holds until a whole window of profile tuples (`seen` counts them) is newer than the last
    change. Returns whether the probability rose, so that the caller draws the next gap anew.
    """
    probability, evaluated = sampling.probability, sampling.block["evaluated"]
    is_sudden = _is_sudden(sampling, counts)
    if is_sudden:  # the tuples from before the change are not looked at any more
        _merge(sampling, 1.0)
    evaluated += counts.evaluated
    dropped, seconds = sampling.block["dropped"], sampling.block["seconds"]
    dropped += counts.dropped
    seconds += counts.seconds
    tuples = remembered = 0.0
    for i in range(evaluated.size):
        tuples = max(tuples, float(evaluated[i]))
        remembered = max(remembered, float(sampling.reference["evaluated"][i]))
    if tuples < BLOCK and not is_sudden:
        return False
    before = float(probability[PROBABILITY])
    keep = 1.0 if remembered <= MEMORY * BLOCK else 0.5
    if is_sudden or _has_changed(sampling):
        keep = 0.0
        probability[PROBABILITY] = probability[FULL]
        sampling.counters[HOLD] = seen + window
    elif seen >= sampling.counters[HOLD]:
        probability[PROBABILITY] = max(FLOOR * probability[FULL], DECAY * before)
    _merge(sampling, keep)
    return bool(probability[PROBABILITY] > before)


@kernel
def _is_sudden(sampling: Sampling, counts: ProcessingCounts) -> bool:
    """Whether counts that are told together differ from all tuples before them, so that no whole block is needed."""
    evaluated, earlier = sampling.block["evaluated"], sampling.reference["evaluated"]
    dropped_lately, dropped_earlier = sampling.block["dropped"], sampling.reference["dropped"]
    for i in range(counts.evaluated.size):
        now, before = float(counts.evaluated[i]), float(evaluated[i]) + float(earlier[i])
        if now >= SUDDEN and before >= SUDDEN:
            dropped = float(dropped_lately[i]) + float(dropped_earlier[i])
            if _differs(float(counts.dropped[i]), now, dropped, before, SUDDEN_ERRORS):
                return True
    return False


@inlined
def _differs(dropped: float, evaluated: float, dropped_before: float, before: float, errors: float) -> bool:
    """Whether a drop rate differs from the drop rate before beyond chance."""
    difference = abs(dropped / evaluated - dropped_before / before)
    pooled = (dropped + dropped_before) / (evaluated + before)
    error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / evaluated + 1.0 / before))
    return bool(difference > LEAST_CHANGE and difference > errors * error)


@inlined
def _merge(sampling: Sampling, keep: float) -> None:
    """Add each filter's block to its reference, of which a share is kept, and begin the next block."""
    evaluated, dropped, seconds = (
        sampling.reference["evaluated"],
        sampling.reference["dropped"],
        sampling.reference["seconds"],
    )
    evaluated *= keep
    dropped *= keep
    seconds *= keep
    evaluated += sampling.block["evaluated"]
    dropped += sampling.block["dropped"]
    seconds += sampling.block["seconds"]
    sampling.block["evaluated"][:] = 0.0
    sampling.block["dropped"][:] = 0.0
    sampling.block["seconds"][:] = 0.0


@kernel
def forget_filter(sampling: Sampling, number: int) -> None:
    """Forget the rates of a filter."""
    block, reference = sampling.block[number], sampling.reference[number]
    block["evaluated"] = block["dropped"] = block["seconds"] = 0.0
    reference["evaluated"] = reference["dropped"] = reference["seconds"] = 0.0


@kernel
def forget(sampling: Sampling, before: Integers, order: Integers) -> None:
    """Forget the rates of the filters that other tuples reach than in the order before.

    The same tuples reach a filter if the same filters are before it, in whichever order these are.
    """
    earlier = earlier_before = 0  # the masks of filters at the positions so far
    for position in range(order.size):
        if earlier != earlier_before or order[position] != before[position]:
            forget_filter(sampling, order[position])
        earlier |= 1 << order[position]
        earlier_before |= 1 << before[position]


@kernel
def _has_changed(sampling: Sampling) -> bool:
    """Whether a drop rate of the block differs from the reference beyond chance, or blocks have been slow for long."""
    filters = sampling.block.size
    changed = False
    spent = expected = 0.0
    evaluated, dropped, seconds = sampling.block["evaluated"], sampling.block["dropped"], sampling.block["seconds"]
    evaluated_before, seconds_before = sampling.reference["evaluated"], sampling.reference["seconds"]
    for i in range(filters):
        now, before = float(evaluated[i]), float(evaluated_before[i])
        if now < ENOUGH or before < ENOUGH:
            continue
        if _differs(float(dropped[i]), now, float(sampling.reference["dropped"][i]), before, CHANGE_ERRORS):
            changed = True
        spent += float(seconds[i])
        expected += float(seconds_before[i]) / before * now
    slow = expected > 0.0 and spent > SLOWER * expected
    sampling.counters[SLOW_BLOCKS] = sampling.counters[SLOW_BLOCKS] + 1 if slow else 0
    if slow and sampling.counters[SLOW_BLOCKS] < PATIENCE:  # not believed yet: the reference must not learn from it
        seconds *= expected / spent
    elif expected > SLOWER * spent:  # becoming faster is no change, but later blocks are compared with it
        seconds_before *= spent / expected
    return bool(changed or sampling.counters[SLOW_BLOCKS] >= PATIENCE)


class Sampler:
    """Chooses which dropped tuples to profile.

    Parameters
    ----------
    filters
        How many filters there are.
    probability
        The drop-profiling probability p; the full probability if it is adaptive.
    window
        How many profile tuples to collect before an adaptive probability may fall.
    adaptive
        Whether it falls towards a fifth while nothing changes; the first 64 tuples are then all chosen.
    seed
        Seed of the choice.

    Examples
    --------
    >>> sampler = Sampler(2, probability=0.25, seed=1)
    >>> len(sampler.choose(10_000))
    2523
    """

    def __init__(
        self, filters: int, probability: float, *, window: int = 0, adaptive: bool = False, seed: int = 0
    ) -> None:
        check_filters(filters)
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"a drop-profiling probability is between 0 and 1, not {probability}")
        self.adaptive = adaptive
        self._random = np.random.default_rng(seed)
        self.arrays = Sampling(
            probability=np.array([probability, probability, -1.0, 0.0, 1.0], np.float64),
            block=np.zeros(filters, RATES),
            reference=np.zeros(filters, RATES),
            counters=np.array([0, 0, window, WARM_UP if adaptive else 0], np.int64),
        )
        next_gap(self.arrays, self._random.random())

    @property
    def filters(self) -> int:
        """How many filters drop the tuples."""
        return int(self.arrays.block.size)

    @property
    def probability(self) -> float:
        """The drop-profiling probability now."""
        return float(self.arrays.probability[PROBABILITY])

    @property
    def full_probability(self) -> float:
        """The drop-profiling probability while drop rates or times change; at all times, unless it is adaptive."""
        return float(self.arrays.probability[FULL])

    def expect(self, rows: int) -> None:
        """Prepare for a slice of so many rows: a warm-up spreads over all of them.

        The filters of a slice drop one after the other. A warm-up that took all tuples until it had enough would know
        much of the tuples that the first filters drop, and little of the others (docs/decisions/0171).
        """
        if rows > 0 and self.probability > 0.0 and self.arrays.counters[WARMING] > 0:
            self.arrays.counters[WARMING] += 1  # the gap that is drawn anew was counted
            self.arrays.probability[CLOSE] = min(1.0, float(self.arrays.counters[WARMING]) / rows)
            next_gap(self.arrays, self._random.random())

    def choose(self, dropped: int) -> Integers:
        """Which of the next dropped tuples to profile, as indices; the count goes on from call to call."""
        counters = self.arrays.counters
        if not 0 <= dropped <= MOST_DROPPED:
            raise ValueError(f"the next dropped tuples are a number from 0 to {MOST_DROPPED:,}, not {dropped}")
        if counters[GAP] >= dropped:
            counters[GAP] -= dropped
            return NONE
        chosen, place = [], 0
        while place + counters[GAP] < dropped:
            place += int(counters[GAP])
            chosen.append(place)
            place += 1
            next_gap(self.arrays, self._random.random())
        counters[GAP] -= dropped - place
        return np.array(chosen, np.int64)

    def watch(self, counts: ProcessingCounts, *, seen: int, window: int) -> bool:
        """Learn from the counts of ordinary processing; `seen` is how many profile tuples were ever made.

        Returns whether drop rates or times have changed.
        """
        if not self.adaptive:
            return False
        if not (0 <= seen < NEVER and 0 <= window < NEVER):
            raise ValueError(f"seen and window are numbers of profile tuples, not {seen} and {window}")
        return self.watch_checked(counts_of(self.filters, *counts), seen=seen, window=window)

    def watch_checked(self, counts: ProcessingCounts, *, seen: int, window: int) -> bool:
        """`watch` of counts that a policy has checked."""
        if not self.adaptive:
            return False
        before = int(self.arrays.counters[HOLD])
        if watch(self.arrays, counts, seen, window):
            next_gap(self.arrays, self._random.random())
        return bool(self.arrays.counters[HOLD] != before)

    def look_closely(self) -> None:
        """Choose all of the next dropped tuples, because the stream has changed."""
        self.arrays.counters[WARMING] = AFTER_CHANGE
        self.arrays.probability[CLOSE] = 1.0
        next_gap(self.arrays, self._random.random())

    def look_evenly(self) -> None:
        """Choose the next dropped tuples by the probability alone, not all of them."""
        self.arrays.counters[WARMING] = 0
        next_gap(self.arrays, self._random.random())

    def forget_rates(self) -> None:
        """Forget the drop rates and times of all filters: other tuples reach them now, which is no change."""
        self.arrays.block[:] = 0
        self.arrays.reference[:] = 0

    def use(self, probability: float, *, until: int | None = None) -> None:
        """Use a probability; it does not fall before so many profile tuples were ever made, if that is given."""
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"a drop-profiling probability is between 0 and 1, not {probability}")
        if until is not None and not 0 <= until <= NEVER:
            raise ValueError(f"a number of profile tuples is from 0 to {NEVER}, not {until}")
        self.arrays.probability[PROBABILITY] = probability
        if until is not None:
            self.arrays.counters[HOLD] = until
