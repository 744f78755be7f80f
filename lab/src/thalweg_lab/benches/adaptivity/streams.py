"""Streams of drop masks for the benchmarks of adaptivity, and the pipeline of `tw.where` on a clock of evaluations.

A row of a stream is its drop mask, and a filter looks at its bit of it. An evaluation takes one unit of time on a clock
that nothing else moves, so all figures are counts and repeat exactly. The clairvoyant knows the distribution of each
stretch of a stream: it runs the greedy order of a large sample of that distribution, and profiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from thalweg.drift import GLR, Watched
from thalweg.ordering import AGreedy, Policy, greedy_order, order_cost
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.types import Booleans, Integers
from thalweg_lab.workload import Workload

FILTERS = 12
GAMMA = 3  # filters of a group, which agree on 80% of the rows
LEAST_DROPPED, MOST_DROPPED = 0.05, 0.5  # shares of the rows that a filter drops, drawn evenly between
ROWS = 10_000  # of an Arrow batch
EVALUATION_SECONDS = 3e-6  # of the clock: a short Python function
KNOWN = 100_000  # rows of each stretch from which the clairvoyant has its order
PRIOR = 1.0  # of the policy that `tw.where` makes
STATIONARY = 300_000  # rows of a stream in which nothing changes
SUDDEN, CHANGES = 50_000, 5  # rows from one sudden change to the next
GRADUAL, STEPS = 50_000, 20  # rows of a gradual change, and the steps in which it is made
TURN, TURNS = 20_000, 15  # rows of a regime before the other regime returns


@dataclass(frozen=True)
class Stretch:
    """A part of a stream: its drop masks, and the order in which the clairvoyant runs them."""

    masks: Integers
    order: tuple[int, ...]


@dataclass(frozen=True)
class Regret:
    """The evaluations of a pipeline, profiling included, beside the clairvoyant's."""

    evaluations: int
    clairvoyant: int
    restarts: int

    @property
    def ratio(self) -> float:
        """Evaluations for each evaluation of the clairvoyant."""
        return self.evaluations / self.clairvoyant


class EvaluationClock:
    """Tells how many evaluations there were, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """The time now."""
        return self.seconds

    def filters(self, count: int) -> list[Filter]:
        """Filters that look at a bit of each row, and take time for it."""
        return [self._filter(number) for number in range(count)]

    def _filter(self, number: int) -> Filter:
        def keeps(rows: Integers) -> Booleans:
            self.seconds += EVALUATION_SECONDS * len(rows)
            kept: Booleans = rows >> number & 1 == 0
            return kept

        return keeps


def drawn_workload(random: np.random.Generator) -> Workload:
    """Twelve correlated filters with drop rates drawn at random."""
    drops = random.uniform(LEAST_DROPPED, MOST_DROPPED, FILTERS)
    return Workload(tuple(drops.tolist()), gamma=GAMMA)


def stretch_of(workload: Workload, rows: int, random: np.random.Generator) -> Stretch:
    """A stretch of a stream with one distribution."""
    known = workload.masks(KNOWN, random)
    return Stretch(workload.masks(rows, random), greedy_order(known, np.ones(FILTERS)))


def between(first: Workload, second: Workload, share: float) -> Workload:
    """A workload on the way from one workload to another."""
    drops = (1 - share) * np.array(first.drops) + share * np.array(second.drops)
    return Workload(tuple(drops.tolist()), gamma=GAMMA)


def stationary(seed: int) -> list[Stretch]:
    """One distribution."""
    random = np.random.default_rng(seed)
    return [stretch_of(drawn_workload(random), STATIONARY, random)]


def sudden(seed: int) -> list[Stretch]:
    """Distributions that have nothing to do with each other, one after the other."""
    random = np.random.default_rng(seed)
    return [stretch_of(drawn_workload(random), SUDDEN, random) for _ in range(CHANGES + 1)]


def gradual(seed: int) -> list[Stretch]:
    """Three distributions, and two slow changes from one to the next."""
    random = np.random.default_rng(seed)
    workloads = [drawn_workload(random) for _ in range(3)]
    stretches = [stretch_of(workloads[0], GRADUAL, random)]
    for first, second in pairwise(workloads):
        shares = (np.arange(STEPS) + 0.5) / STEPS
        stretches += [stretch_of(between(first, second, share), GRADUAL // STEPS, random) for share in shares]
        stretches.append(stretch_of(second, GRADUAL, random))
    return stretches


def returning(seed: int) -> list[Stretch]:
    """Two distributions in turn."""
    random = np.random.default_rng(seed)
    workloads = [drawn_workload(random) for _ in range(2)]
    return [stretch_of(workloads[turn % 2], TURN, random) for turn in range(TURNS)]


def where_policy(seed: int, order: Sequence[int] | None = None, filters: int = FILTERS) -> Policy:
    """The policy that `tw.where` makes."""
    return Watched(AGreedy(filters, order=order, prior=PRIOR, seed=seed), GLR.for_few_tuples())


def where_pipeline(policy: Policy) -> Pipeline:
    """The pipeline that `tw.where` runs in a worker, on a clock of evaluations."""
    clock = EvaluationClock()
    return Pipeline(policy, clock.filters(policy.filters), clock=clock)


def run_stream(pipeline: Pipeline, stretches: Sequence[Stretch]) -> Regret:
    """Run a stream through a pipeline in batches, and compare its evaluations with the clairvoyant's."""
    masks = np.concatenate([stretch.masks for stretch in stretches])
    for batch in batches(masks):
        pipeline.keep(batch)
    best = sum(order_cost(stretch.masks, stretch.order) * stretch.masks.size for stretch in stretches)
    return Regret(pipeline.evaluations + pipeline.extra_evaluations, round(best), len(pipeline.restarts))


def batches(masks: Integers) -> Iterator[Integers]:
    """A stream in batches."""
    for start in range(0, masks.size, ROWS):
        yield masks[start : start + ROWS]
