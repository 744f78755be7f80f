"""Benchmarks of the ordering core: the cost of keeping an order, and how fast the lab's engine is."""

from __future__ import annotations

import time
from statistics import median

from thalweg_lab.benches import Progress, run_each
from thalweg_lab.results import Result, at_least, at_most

NAME = "ordering"
SUMMARY = "cost of A-Greedy's bookkeeping, rate of the lab's engine, overhead on a stable stream"
SCENARIOS = ("update", "engine", "overhead")

FILTERS = 8
WINDOW = 1000
TURNS = 7  # repetitions; medians are reported
TUPLES = 4_000_000  # a turn


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_each({"update": update, "engine": engine, "overhead": overhead}, scenario, progress)


def update() -> list[Result]:
    """A-Greedy's insert, delete, view update and check, per profile tuple, with and without time samples."""
    import numpy as np

    from thalweg.kernels import compile_kernels
    from thalweg.ordering import AGreedy
    from thalweg_lab.workload import Workload

    compile_kernels()
    random = np.random.default_rng(0)
    masks = Workload((0.5,) * FILTERS).masks(100_000, random)
    masks = masks[masks > 0]
    samples = random.normal(1e-7, 1e-8, (masks.size, FILTERS)).clip(1e-9)
    spent: dict[str, list[float]] = {"without times": [], "with times": []}
    for _ in range(TURNS + 1):  # the first loads the compiled code
        for name, times in (("without times", None), ("with times", samples)):
            policy = AGreedy(FILTERS, window=WINDOW)
            policy.update(masks[: 2 * WINDOW], None if times is None else times[: 2 * WINDOW])
            before = time.perf_counter()
            policy.update(masks, times)
            spent[name].append((time.perf_counter() - before) / masks.size * 1e6)
    return [
        at_most("update", f"microseconds a profile tuple, {name}", median(each[1:]), 2.0, f"n = {FILTERS}, window 1000")
        for name, each in spent.items()
    ]


def engine() -> list[Result]:
    """Tuples a second of the lab's engine on one core, A-Greedy adapting at p = 0.01."""
    import numpy as np

    from thalweg.ordering import AGreedy
    from thalweg_lab.engine import Engine
    from thalweg_lab.workload import Workload

    workload = Workload((0.5,) * FILTERS)
    policy = AGreedy(FILTERS, window=WINDOW, p=0.01, adaptive_p=False)
    engine = Engine([1] * FILTERS)
    rates = [
        engine.run(policy, workload.chunks(TUPLES, np.random.default_rng(turn))).rate / 1e6 for turn in range(TURNS)
    ]
    return [at_least("engine", "million tuples a second", median(rates), 3.0, "n = 8, p = 0.01, cost 1, one core")]


def overhead() -> list[Result]:
    """Time that adapting adds on a stable stream, against the same order held fixed; all take turns."""
    import numpy as np

    from thalweg.ordering import AGreedy, AsWritten
    from thalweg_lab.engine import Engine
    from thalweg_lab.experiments.a_greedy.convergence import CHUNK, race
    from thalweg_lab.workload import Workload

    workload, random = Workload((0.5,) * FILTERS), np.random.default_rng(0)
    engine = Engine([1] * FILTERS)
    settled = AGreedy(FILTERS, adaptive_p=False)
    engine.run(settled, workload.chunks(TUPLES // 4, random))
    policies = {
        "fixed": AsWritten(FILTERS, order=settled.order),
        "fixed again": AsWritten(FILTERS, order=settled.order),
        "p = 0.01": AGreedy(FILTERS, order=settled.order, p=0.01, adaptive_p=False),
        "adaptive p": AGreedy(FILTERS, order=settled.order, p=0.01, adaptive_p=True),
    }
    engine.race(policies, workload.chunks(TUPLES // 4, random))  # fill the windows
    paces = race(engine, policies, workload, random, turns=TURNS * TUPLES // CHUNK, twins=False)
    fixed = (paces["fixed"].seconds + paces["fixed again"].seconds) / 2
    added = {name: 100 * (pace.seconds / fixed - 1) for name, pace in paces.items()}
    return [
        at_most("overhead", "per cent of time added at p = 0.01", added["p = 0.01"], 4.0),
        at_most("overhead", "per cent of time added with adaptive p", added["adaptive p"], 1.0),
        at_most(
            "overhead",
            "A/A control: per cent between two runs of the fixed order",
            abs(added["fixed"] - added["fixed again"]),
            1.0,
        ),
    ]
