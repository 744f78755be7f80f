"""Benchmarks of the join planners: how long planning takes, and how near the optimum the plans for cyclic joins are."""

from __future__ import annotations

import time
from statistics import fmean, median
from typing import TYPE_CHECKING

from thalweg_lab.benches import Progress, run_each
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from thalweg.joinorder import JoinGraph, Planner

NAME = "planner"
SUMMARY = "time to plan all orders of a join, and cost of the plans for complete graphs over the optimum's"
SCENARIOS = ("dmjoin", "q-aware", "tree-opt", "complete")

STREAMS = 20
MANY_STREAMS = 200  # for TreeOpt
TURNS = 7  # repetitions; medians are reported
SETTINGS = 500  # complete graphs
COMPLETE_STREAMS = 12

ACYCLIC = ("linear", "star", "acyclic")
CYCLIC = ("cyclic", "complete")


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    from thalweg.kernels import compile_kernels

    compile_kernels()
    measures = {"dmjoin": dmjoin, "q-aware": q_aware, "tree-opt": tree_opt, "complete": complete}
    return run_each(measures, scenario, progress)


def dmjoin() -> list[Result]:
    """Seconds that the optimal orders take."""
    seconds = times("dmjoin", CYCLIC + ACYCLIC, STREAMS)
    return [
        at_most("dmjoin", f"seconds, {shape}", each, 5.0, f"all {STREAMS} orders") for shape, each in seconds.items()
    ]


def q_aware() -> list[Result]:
    """Milliseconds that Q-Aware takes, by shape."""
    bounds = dict.fromkeys(ACYCLIC, 5.0) | dict.fromkeys(CYCLIC, 20.0)
    seconds = times("q-aware", tuple(bounds), STREAMS)
    return [
        at_most("q-aware", f"milliseconds, {shape}", 1e3 * each, bounds[shape], f"all {STREAMS} orders")
        for shape, each in seconds.items()
    ]


def tree_opt() -> list[Result]:
    """Milliseconds that TreeOpt takes for many streams."""
    seconds = times("tree-opt", ACYCLIC, MANY_STREAMS)
    return [
        at_most("tree-opt", f"milliseconds, {shape}", 1e3 * each, 200.0, f"all {MANY_STREAMS} orders")
        for shape, each in seconds.items()
    ]


def complete() -> list[Result]:
    """By how much the plans of FAB and of Sifting exceed the optimum's cost, and how long they take."""
    import numpy as np

    from thalweg.joinorder import FAB, DMJoin, Sifting, random_graph

    random = np.random.default_rng(0)
    planners: tuple[Planner, ...] = (FAB(), Sifting())
    excess: dict[str, list[float]] = {planner.name: [] for planner in planners}
    spent: dict[str, list[float]] = {planner.name: [] for planner in planners}
    for _ in range(SETTINGS):
        graph = random_graph("complete", COMPLETE_STREAMS, random)
        optimum = np.array(DMJoin().plan(graph).costs)
        for planner in planners:
            spent[planner.name].append(seconds_of(planner, graph))
            excess[planner.name].append(float(np.mean(planner.plan(graph).costs / optimum)) - 1.0)
    fab, sifting = fmean(excess["fab"]), fmean(excess["sifting"])
    paces = ", ".join(f"{name} takes {1e3 * median(each):.2f} ms" for name, each in spent.items())
    return [
        at_most(
            "complete",
            "mean excess over the optimum, Sifting's as a share of FAB's",
            sifting / fab,
            0.5,
            f"{sifting:.2%} and {fab:.2%}; n = {COMPLETE_STREAMS}, {SETTINGS} settings; {paces}",
        )
    ]


def times(name: str, shapes: tuple[str, ...], streams: int) -> dict[str, float]:
    """The median time of planning a graph of each shape, another graph each turn; the shapes take turns."""
    import numpy as np

    from thalweg.joinorder import planner, random_graph

    random = np.random.default_rng(0)
    chosen = planner(name)
    chosen.plan(random_graph("complete", 8, random))  # loads the compiled code
    spent: dict[str, list[float]] = {shape: [] for shape in shapes}
    for _ in range(TURNS):
        for shape in shapes:
            spent[shape].append(seconds_of(chosen, random_graph(shape, streams, random)))
    return {shape: median(each) for shape, each in spent.items()}


def seconds_of(planner: Planner, graph: JoinGraph) -> float:
    """The time that planning all orders takes, from the graph to the orders."""
    before = time.perf_counter()
    planner.plan(graph)
    return time.perf_counter() - before
