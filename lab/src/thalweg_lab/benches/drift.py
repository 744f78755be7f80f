"""Benchmarks of change detection: its gain where probabilities change, its cost, and that it does no harm."""

from __future__ import annotations

from statistics import median
from time import thread_time
from typing import TYPE_CHECKING

from thalweg_lab.benches import Progress, run_each
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    import numpy as np

    from thalweg.ordering import Policy
    from thalweg.ordering.types import Integers
    from thalweg_lab.experiments.bcs.stream import EvaluationCounts

NAME = "drift"
SUMMARY = "A-Greedy with BCS against A-Greedy alone: evaluations under change and without, time of the adaptive loop"
SCENARIOS = ("exp1", "stable", "loop")

STREAMS = 50
PERIOD = 500_000  # tuples between two changes
CHANGES = 5
STABLE_STREAMS = 10
STABLE_TUPLES = 3_000_000
TURNS = 40  # of the loop's race
TURN = 2000  # profile tuples in a turn
BATCH = 20  # profile tuples that a policy is shown at a time
OTHER_BATCHES = (
    1,
    200,
)  # for the note: a detector works by the segment, A-Greedy's kernel the faster the more there are
SAME = "they profile the same tuples: counts repeat exactly; the effect of other profile tuples is not in it"
PROBES = 50  # index probes of a filter in the engine: about a microsecond, a cheap predicate
ENGINE_TUPLES = 400_000


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_each({"exp1": exp1, "stable": stable, "loop": loop}, scenario, progress)


def exp1() -> list[Result]:
    """Filter evaluations on the streams of experiment 1, beside A-Greedy's and a second A-Greedy's."""
    import numpy as np

    from thalweg_lab.experiments.bcs.stream import abrupt, count, regimes

    improvements, controls = [], []
    for seed in range(STREAMS):
        random = np.random.default_rng(seed)
        stretches = regimes(CHANGES, random)
        counts = count(_policies(seed), abrupt(stretches, PERIOD, random), seed)
        improvements.append(_fewer(counts, "watched"))
        controls.append(_fewer(counts, "again"))
    note = f"{STREAMS} streams; from {min(improvements):.1f} to {max(improvements):.1f}"
    return [
        at_least("exp1", "median per cent fewer evaluations than A-Greedy", median(improvements), 10.0, note),
        at_most("exp1", "worst degradation, per cent", max(0.0, -min(improvements)), 6.0, note),
        at_most("exp1", "A/A control: greatest per cent between two A-Greedys", max(map(abs, controls)), 0.0, SAME),
    ]


def stable() -> list[Result]:
    """Filter evaluations where nothing changes."""
    import numpy as np

    from thalweg_lab.experiments.bcs.stream import abrupt, count, regimes

    differences, controls = [], []
    for seed in range(STABLE_STREAMS):
        random = np.random.default_rng(seed)
        counts = count(_policies(seed), abrupt(regimes(0, random), STABLE_TUPLES, random), seed)
        differences.append(abs(_fewer(counts, "watched")))
        controls.append(abs(_fewer(counts, "again")))
    note = f"{STABLE_STREAMS} streams of {STABLE_TUPLES:,} tuples; median {median(differences):.2f}"
    return [
        at_most("stable", "greatest per cent between evaluations and A-Greedy's", max(differences), 0.5, note),
        at_most("stable", "A/A control: greatest per cent between two A-Greedys", max(controls), 0.0, SAME),
    ]


def loop() -> list[Result]:
    """Time of the adaptive loop on a stream of experiment 1, all policies in turn, and its share of all processing."""
    import numpy as np

    from thalweg.ordering import AsWritten, greedy_order
    from thalweg_lab.engine import Engine
    from thalweg_lab.experiments.bcs.stream import P, regimes

    random = np.random.default_rng(0)
    policies = _policies(0)
    stretches = regimes(CHANGES, random)
    warm = _policies(0)
    for stretch in stretches:  # loads all compiled code, also the code that only a change needs
        _turn(warm, stretch.masks(TURN, random), random, BATCH)
    spent = {batch: dict.fromkeys(policies, 0.0) for batch in (BATCH, *OTHER_BATCHES)}
    for batch, seconds in spent.items():
        for number in range(TURNS):
            masks = stretches[number * len(stretches) // TURNS].masks(2 * TURN, random)
            for name, more in _turn(policies, masks[masks > 0][:TURN], random, batch).items():
                seconds[name] += more
    each = {name: seconds / (TURNS * TURN) for name, seconds in spent[BATCH].items()}
    pooled = (each["alone"] + each["again"]) / 2
    others = ", ".join(
        f"{2 * spent[batch]['watched'] / (spent[batch]['alone'] + spent[batch]['again']):.1f} with {batch}"
        for batch in OTHER_BATCHES
    )

    workload = stretches[-1]
    order = greedy_order(workload.masks(10_000, random), [1.0] * workload.filters)
    engine = Engine([PROBES] * workload.filters)
    run = engine.run(AsWritten(workload.filters, order=order), workload.chunks(ENGINE_TUPLES, random))
    evaluation = 1e6 * run.seconds / run.evaluations
    share = 100 * P * each["watched"] / (P * each["watched"] + run.seconds / run.tuples)
    note = (
        f"{1e6 * each['watched']:.2f} and {1e6 * pooled:.2f} microseconds a profile tuple, {BATCH} at a time; {others}"
    )
    return [
        at_most("loop", "adaptive loop with BCS over A-Greedy's", each["watched"] / pooled, 2.0, note),
        at_most(
            "loop",
            "adaptive loop with BCS, per cent of total processing time",
            share,
            1.0,
            f"N = {workload.filters}, p = {P}, filters that take {evaluation:.2f} microseconds, best order",
        ),
        at_most(
            "loop",
            "A/A control: per cent between two A-Greedys' loops",
            100 * abs(each["alone"] - each["again"]) / pooled,
            10.0,
        ),
    ]


def _policies(seed: int) -> dict[str, Policy]:
    from thalweg.drift import Watched
    from thalweg_lab.experiments.bcs.contest import a_greedy

    return {"alone": a_greedy(seed), "again": a_greedy(seed), "watched": Watched(a_greedy(seed), "bcs")}


def _fewer(counts: dict[str, EvaluationCounts], name: str) -> float:
    return 100 * (1 - counts[name].evaluations / counts["alone"].evaluations)


def _turn(policies: dict[str, Policy], masks: Integers, random: np.random.Generator, batch: int) -> dict[str, float]:
    """Processor time of each policy for the same profile tuples, in random order."""
    seconds = {}
    for name in random.permutation(list(policies)):
        policy = policies[name]
        before = thread_time()
        for start in range(0, masks.size, batch):
            policy.update(masks[start : start + batch])
        seconds[str(name)] = thread_time() - before
    return seconds
