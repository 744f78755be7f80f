"""Shared by the experiments: long streams whose drop probabilities change, and an engine that only counts.

Every filter costs 1 and nothing is timed, so that three million tuples and fifteen filters take a second, and a stream
gives the same counts each time. (bcs-change-detection-2012, section V-B)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from thalweg.kernels import compile_kernels, kernel
from thalweg.ordering import sampling
from thalweg.ordering.policy import CHANGES, Policy
from thalweg.ordering.sampling import GAP, Sampling
from thalweg.ordering.types import Integers
from thalweg_lab.workload import CHUNK, Workload

FILTERS = 15
WINDOW = 60_000
P = 0.01
LEAST_CHANGE = 0.1  # of each drop probability
LOW, HIGH = 0.05, 0.95  # between which drop probabilities are drawn: the paper does not say
BATCH = 20  # profile tuples that a policy is shown at a time
BLOCK = 5000  # tuples for which evaluations are counted together

AT, FOUND = range(2)


@dataclass(frozen=True)
class EvaluationCounts:
    """The evaluations and the learning of a policy on a stream."""

    evaluations: int  # of filters, because the query needed them
    blocks: NDArray[np.int64]  # the same, for each block of tuples
    reoptimisations: int  # changes of the order
    profiled: int  # profile tuples
    loop_seconds: float  # processor time that the policy spent on learning

    @property
    def tuples(self) -> int:
        """How many whole blocks of tuples there were, in tuples."""
        return BLOCK * int(self.blocks.size)


@kernel
def advance(
    order: Integers,
    wanted: Integers,
    sample: Sampling,
    masks: Integers,
    random: np.random.Generator,
    collected: Integers,
    tally: Integers,
    blocks: Integers,
) -> None:
    """Run tuples through the filters until a batch of profile tuples is collected, or there are no more."""
    filters = order.size
    k = tally[AT]
    while k < masks.size and tally[FOUND] < collected.size:
        mask = masks[k]
        position = 0
        while position < filters and not (mask >> order[position]) & 1:
            position += 1
        blocks[k // BLOCK] += min(position + 1, filters)
        k += 1
        if position == filters:
            continue
        if sample.counters[GAP] > 0:
            sample.counters[GAP] -= 1
            continue
        collected[tally[FOUND]] = (mask & wanted[position]) | 1 << order[position]
        tally[FOUND] += 1
        sampling.next_gap(sample, random.random())
    tally[AT] = k


def count(policies: Mapping[str, Policy], chunks: Iterable[Integers], seed: int = 0) -> dict[str, EvaluationCounts]:
    """Let policies process the same stream, given in chunks of whole blocks, and profile the same tuples.

    They can: the dropped tuples do not depend on the order. A-Greedys that profile different tuples settle on orders
    that differ by up to 1/alpha, which would hide the difference that is measured.

    >>> from thalweg.ordering import AsWritten
    >>> stream = [np.array([0b01, 0b10] * BLOCK)]
    >>> count({"as written": AsWritten(2)}, stream)["as written"].evaluations
    15000
    """
    compile_kernels()
    counters = {name: _Counter(policy, seed) for name, policy in policies.items()}
    for masks in chunks:
        for counter in counters.values():
            counter.take(masks)
    return {name: counter.count() for name, counter in counters.items()}


class _Counter:
    """Runs one policy."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self._policy = policy
        self._random = np.random.default_rng(seed)
        self._collected = np.zeros(BATCH, np.int64)
        self._tally = np.zeros(2, np.int64)
        self._blocks: list[NDArray[np.int64]] = []
        self._profiled = 0
        self._seconds = 0.0
        self._changes = int(policy.state.trace[CHANGES])

    def take(self, masks: Integers) -> None:
        policy, tally = self._policy, self._tally
        blocks = np.zeros(-(-masks.size // BLOCK), np.int64)
        tally[AT] = 0
        while tally[AT] < masks.size:
            state, sample = policy.state, policy.sampler.arrays
            advance(state.order, state.wanted, sample, masks, self._random, self._collected, tally, blocks)
            if tally[FOUND] == BATCH:
                before = thread_time()
                policy.update(self._collected)
                self._seconds += thread_time() - before
                self._profiled += BATCH
                tally[FOUND] = 0
        self._blocks.append(blocks)

    def count(self) -> EvaluationCounts:
        blocks = np.concatenate(self._blocks)
        changes = int(self._policy.state.trace[CHANGES]) - self._changes
        return EvaluationCounts(int(blocks.sum()), blocks, changes, self._profiled, self._seconds)


def redrawn(drops: Sequence[float], random: np.random.Generator) -> tuple[float, ...]:
    """Other drop probabilities, each at least a tenth away from its earlier value.

    >>> before = (0.5, 0.9)
    >>> after = redrawn(before, np.random.default_rng(0))
    >>> all(abs(drop - new) >= 0.1 for drop, new in zip(before, after))
    True
    """
    new = []
    for drop in drops:
        other = random.uniform(LOW, HIGH)
        while abs(other - drop) < LEAST_CHANGE:
            other = random.uniform(LOW, HIGH)
        new.append(float(other))
    return tuple(new)


def regimes(changes: int, random: np.random.Generator, filters: int = FILTERS) -> list[Workload]:
    """The workloads before, between and after this many changes, of filters that are correlated in pairs."""
    drops = [tuple(random.uniform(LOW, HIGH, filters).tolist())]
    for _ in range(changes):
        drops.append(redrawn(drops[-1], random))
    return [Workload(probabilities) for probabilities in drops]


def abrupt(workloads: Iterable[Workload], period: int, random: np.random.Generator) -> Iterator[Integers]:
    """A stream that goes from workload to workload at once."""
    for workload in workloads:
        yield from workload.chunks(period, random)


def gradual(before: Workload, after: Workload, tuples: int, random: np.random.Generator) -> Iterator[Integers]:
    """A stretch in which ever more tuples are of the second workload."""
    for start in range(0, tuples, CHUNK):
        size = min(CHUNK, tuples - start)
        share = (start + np.arange(size)) / tuples
        yield np.where(random.random(size) < share, after.masks(size, random), before.masks(size, random))
