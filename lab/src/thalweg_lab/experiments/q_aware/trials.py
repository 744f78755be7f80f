"""Shared by the experiments of q-aware-join-ordering-2009: planners on random join graphs, set beside DMJoin.

A plan is the orders of all streams of a join, as the paper's equation 3 sums them up, and its cost the number of
intermediate tuples a second, as in its figures. Whether it counts results, which are the same for all orders, among
them it does not say: claims are judged without, and each row has the ratio with results besides. Nor does it say how
selectivities are drawn; here uniformly between 0.01 and 1. (Decision 0016)
"""

import time
from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING

import numpy as np

from thalweg_lab.experiments.experiment import Row, Setting

if TYPE_CHECKING:
    from thalweg.joinorder import JoinGraph
    from thalweg.ordering.types import Floats

ACYCLIC = ("linear", "star", "acyclic")
CYCLIC = ("cyclic", "complete")
STREAMS = tuple(range(3, 21))
QUICK_STREAMS = (3, 5, 8, 12)
SEEDS, QUICK_SEEDS = 500, 40
CHUNK = 100  # graphs a task: at most twenty seconds
OPTIMAL = 1.0 + 1e-9  # times the optimum's cost: more is not rounding


def settings(planners: Sequence[str], *, quick: bool) -> list[Setting]:
    """Chunks of graphs for each shape and number of streams; the longest first, so that no task is left over."""
    numbers, seeds = (QUICK_STREAMS, QUICK_SEEDS) if quick else (STREAMS, SEEDS)
    return [
        {"shape": shape, "streams": n, "first": first, "count": min(CHUNK, seeds - first), "planners": list(planners)}
        for n in reversed(numbers)
        for shape in (*CYCLIC, *ACYCLIC)
        for first in range(0, seeds, CHUNK)
    ]


def measure(setting: Setting) -> list[Row]:
    """A row for each graph and planner: the cost of its plan over the optimum's, and the time it took."""
    from thalweg.joinorder import planner as make_planner
    from thalweg.joinorder import random_graph
    from thalweg.kernels import compile_kernels

    compile_kernels()
    shape, streams = setting["shape"], setting["streams"]
    planners = {name: make_planner(name) for name in dict.fromkeys(["dmjoin", *setting["planners"]])}
    for planner in planners.values():
        planner.plan(random_graph(shape, streams, np.random.default_rng(0)))  # loads the compiled code
    rows: list[Row] = []
    for seed in range(setting["first"], setting["first"] + setting["count"]):
        graph = random_graph(shape, streams, np.random.default_rng([streams, seed]))
        plans, seconds = {}, {}
        for name, planner in planners.items():
            before = time.perf_counter()
            plans[name] = planner.plan(graph)
            seconds[name] = time.perf_counter() - before
        optimum, results = tuples_made(graph, plans["dmjoin"].sequences)
        for name in setting["planners"]:
            tuples, _ = tuples_made(graph, plans[name].sequences)
            rows.append(
                {
                    "shape": shape,
                    "streams": streams,
                    "seed": seed,
                    "planner": name,
                    "algorithm": plans[name].algorithm,
                    "ratio": float(tuples.sum() / optimum.sum()),
                    "ratio_with_results": float((tuples + results).sum() / (optimum + results).sum()),
                    "worst_order": float((tuples / optimum).max()),
                    "optimal_orders": float((tuples <= OPTIMAL * optimum).mean()),
                    "microseconds": round(1e6 * seconds[name], 1),
                }
            )
    return rows


def tuples_made(graph: "JoinGraph", sequences: Sequence[Sequence[int]]) -> "tuple[Floats, Floats]":
    """For each order, the tuples a second that it makes before the last stream is joined, and by joining it.

    >>> from thalweg.joinorder import JoinGraph
    >>> graph = JoinGraph.from_statistics({"A": 10, "B": 20, "C": 30}, {("A", "B"): 0.5, ("B", "C"): 0.1})
    >>> [counts.round(6).tolist() for counts in tuples_made(graph, [(0, 1, 2), (1, 2, 0), (2, 1, 0)])]
    [[100.0, 60.0, 60.0], [300.0, 300.0, 300.0]]
    """
    from thalweg.joinorder.cost import model

    arrays = model(graph, "tuples")
    made = []
    for sequence in np.array(sequences):
        growth = arrays.size[sequence] + np.tril(arrays.selectivity[np.ix_(sequence, sequence)], -1).sum(axis=1)
        growth[0] = arrays.rate[sequence[0]]
        made.append(np.exp(growth.cumsum()[1:]))
    steps = np.array(made)
    return steps[:, :-1].sum(axis=1), steps[:, -1]


def of(rows: list[Row], planner: str, shapes: Sequence[str] | str) -> list[Row]:
    """A planner's rows for some shapes."""
    wanted = [shapes] if isinstance(shapes, str) else shapes
    return [row for row in rows if row["planner"] == planner and row["shape"] in wanted]


def optimal_share(rows: list[Row]) -> float:
    """The share of plans of which every order is optimal.

    >>> optimal_share([{"optimal_orders": 1.0}, {"optimal_orders": 0.75}])
    0.5
    """
    return fmean(row["optimal_orders"] == 1.0 for row in rows)


def worst(rows: list[Row]) -> float:
    """The cost of the worst plan over its optimum's."""
    return float(max(row["ratio"] for row in rows))


def upper_quartile(rows: list[Row]) -> float:
    """The ratio of costs that three quarters of all plans stay within."""
    return float(np.quantile([row["ratio"] for row in rows], 0.75))


def milliseconds(rows: list[Row]) -> dict[int, float]:
    """The median time to plan, by the number of streams."""
    numbers = sorted({row["streams"] for row in rows})
    return {n: median(row["microseconds"] for row in rows if row["streams"] == n) / 1e3 for n in numbers}


def described(rows: list[Row]) -> str:
    """How plans compare with the optimum, for a note.

    >>> described([{"ratio": 1.0, "ratio_with_results": 1.0, "worst_order": 1.0, "optimal_orders": 1.0}] * 3)
    '100.0% of plans and 100.0% of orders are optimal; plans cost 1.00 (median), 1.00 (99%), 1.00 (worst) times the
    optimum, single orders up to 1.00, plans with results up to 1.00'
    """
    ratios = [row["ratio"] for row in rows]
    single = fmean(row["optimal_orders"] for row in rows)
    middle, high = np.quantile(ratios, (0.5, 0.99))
    return (
        f"{optimal_share(rows):.1%} of plans and {single:.1%} of orders are optimal; plans cost {middle:.2f} (median), "
        f"{high:.2f} (99%), {max(ratios):.2f} (worst) times the optimum, single orders up to "
        f"{max(row['worst_order'] for row in rows):.2f}, plans with results up to "
        f"{max(row['ratio_with_results'] for row in rows):.2f}"
    )
