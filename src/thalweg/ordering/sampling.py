"""How many dropped tuples to profile: the drop-profiling probability, fixed or adaptive.

Profiling costs evaluations that the query did not need. The paper fixes one probability and leaves its adaptation
to future work (a-greedy-2004, sections 4.1.1 and 10). Here it falls, block by block, while nothing moves, and is
back at its full value as soon as something does. What moves is seen without profiling: ordinary processing counts,
for every tuple, how often each filter drops what reaches it and how long it takes. A change that hides behind
the filters before it shows only in the profile, and is then found at the reduced probability.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg.kernels import kernel
from thalweg.ordering.types import Floats, Integers

BLOCK = 2000  # tuples between two looks
FLOOR = 0.1  # the least share of the full probability
DECAY = 0.85  # per quiet block: 15 of them lead to the floor
MOVED_BY = 4.5  # standard errors by which a drop rate has moved
MOVED_AT_LEAST = 0.01  # and the least difference that counts, however many tuples show it
SLOWER = 2.0  # factor by which evaluations have become slower
PATIENCE = 5  # blocks running in which it has: cold caches and lost processors are over sooner
MEMORY = 32  # blocks that the reference remembers
ENOUGH = 50  # evaluations in a block below which a filter's rates say nothing
NEVER = 1 << 62
WARM_UP = 64  # the first dropped tuples, all profiled: a bad first order must not last

NONE: Integers = np.zeros(0, np.int64)

PROBABILITY, FULL, LOGGED, LOG = range(4)
EVALUATED, DROPPED, SECONDS = 0, 1, 2
GAP, SUSPICIONS, HOLD, WARMING = range(4)


class Sampling(NamedTuple):
    """The sampler's arrays, as kernels share them."""

    probability: Floats  # the current and the full one; the one whose log1p(-p) is remembered, and that
    block: Floats  # evaluated, dropped, seconds (rows) of each filter in the current block
    reference: Floats  # the same over the quiet blocks before it
    counters: Integers  # dropped tuples before the next profiled one; slow blocks in a row; when p may fall; warm-up


@kernel
def next_gap(sampling: Sampling, uniform: float) -> None:
    """Draw how many dropped tuples pass by before the next is profiled (geometric)."""
    probability = sampling.probability[PROBABILITY]
    if probability != sampling.probability[LOGGED]:  # a logarithm takes as long as a filter
        sampling.probability[LOGGED] = probability
        sampling.probability[LOG] = math.log1p(-probability) if probability < 1.0 else 0.0
    gap = NEVER
    if probability >= 1.0 or (probability > 0.0 and sampling.counters[WARMING] > 0):
        sampling.counters[WARMING] -= 1
        gap = 0
    elif probability > 1.0 / NEVER:
        gap = int(min(math.log(1.0 - uniform) / sampling.probability[LOG], NEVER))
    sampling.counters[GAP] = gap


@kernel
def watch(sampling: Sampling, evaluated: Integers, dropped: Integers, seconds: Floats, seen: int, window: int) -> bool:
    """Take in what ordinary processing showed; after a block, lower or raise the probability.

    The full probability holds until a whole window of profile tuples (`seen` counts them) is newer than the last
    movement. Returns whether the probability rose, so that the caller draws the next gap anew.
    """
    block, reference, probability = sampling.block, sampling.reference, sampling.probability
    tuples = remembered = 0.0
    for i in range(evaluated.size):
        block[EVALUATED, i] += evaluated[i]
        block[DROPPED, i] += dropped[i]
        block[SECONDS, i] += seconds[i]
        tuples = max(tuples, block[EVALUATED, i])
        remembered = max(remembered, reference[EVALUATED, i])
    if tuples < BLOCK:
        return False
    before = probability[PROBABILITY]
    keep = 1.0 if remembered <= MEMORY * BLOCK else 0.5
    if _has_moved(sampling):
        keep = 0.0
        probability[PROBABILITY] = probability[FULL]
        sampling.counters[HOLD] = seen + window
    elif seen >= sampling.counters[HOLD]:
        probability[PROBABILITY] = max(FLOOR * probability[FULL], DECAY * before)
    for row in range(block.shape[0]):
        for i in range(evaluated.size):
            reference[row, i] = keep * reference[row, i] + block[row, i]
            block[row, i] = 0.0
    return bool(probability[PROBABILITY] > before)


@kernel
def forget(sampling: Sampling, order: Integers, position: int) -> None:
    """Forget the rates of the filters from a position of the order on: what reaches them has changed."""
    for place in range(position, order.size):
        sampling.block[:, order[place]] = 0.0
        sampling.reference[:, order[place]] = 0.0


@kernel
def _has_moved(sampling: Sampling) -> bool:
    """Whether a drop rate of the block differs from the reference beyond chance, or the time has for long."""
    block, reference = sampling.block, sampling.reference
    moved = False
    spent = expected = 0.0
    for i in range(block.shape[1]):
        now, before = block[EVALUATED, i], reference[EVALUATED, i]
        if now < ENOUGH or before < ENOUGH:
            continue
        difference = abs(block[DROPPED, i] / now - reference[DROPPED, i] / before)
        pooled = (block[DROPPED, i] + reference[DROPPED, i]) / (now + before)
        error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / now + 1.0 / before))
        if difference > MOVED_AT_LEAST and difference > MOVED_BY * error:
            moved = True
        spent += block[SECONDS, i]
        expected += reference[SECONDS, i] / before * now
    slow = expected > 0.0 and spent > SLOWER * expected
    sampling.counters[SUSPICIONS] = sampling.counters[SUSPICIONS] + 1 if slow else 0
    if slow and sampling.counters[SUSPICIONS] < PATIENCE:  # not believed yet: the reference shall not learn from it
        for i in range(block.shape[1]):
            block[SECONDS, i] *= expected / spent
    elif expected > SLOWER * spent:  # faster is no news, but what comes is measured by it
        for i in range(block.shape[1]):
            reference[SECONDS, i] *= spent / expected
    return bool(moved or sampling.counters[SUSPICIONS] >= PATIENCE)


class Sampler:
    """Chooses which dropped tuples to profile.

    Parameters
    ----------
    filters
        How many filters there are.
    probability
        The drop-profiling probability p; the full one if it is adaptive.
    window
        How many profile tuples to collect before an adaptive probability may fall.
    adaptive
        Whether it falls towards a tenth while nothing changes; the first 64 tuples are then all chosen.
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
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"a drop-profiling probability is between 0 and 1, not {probability}")
        self.adaptive = adaptive
        self._random = np.random.default_rng(seed)
        self.arrays = Sampling(
            probability=np.array([probability, probability, -1.0, 0.0], np.float64),
            block=np.zeros((3, filters)),
            reference=np.zeros((3, filters)),
            counters=np.array([0, 0, window, WARM_UP if adaptive else 0], np.int64),
        )
        next_gap(self.arrays, self._random.random())

    @property
    def probability(self) -> float:
        """The drop-profiling probability now."""
        return float(self.arrays.probability[PROBABILITY])

    def choose(self, dropped: int) -> Integers:
        """Which of the next dropped tuples to profile, as indices; the count goes on from call to call."""
        counters = self.arrays.counters
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

    def watch(self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike, *, seen: int, window: int) -> bool:
        """Take in the counts and times of ordinary processing, and how many profile tuples were ever made.

        Returns whether something has moved.
        """
        if not self.adaptive:
            return False
        before = int(self.arrays.counters[HOLD])
        counts = np.asarray(evaluated, np.int64), np.asarray(dropped, np.int64)
        if watch(self.arrays, *counts, np.asarray(seconds, np.float64), seen, window):
            next_gap(self.arrays, self._random.random())
        return bool(self.arrays.counters[HOLD] != before)

    def look_closely(self) -> None:
        """Choose the next dropped tuples one and all, as at the beginning."""
        self.arrays.counters[WARMING] = WARM_UP
        next_gap(self.arrays, self._random.random())
