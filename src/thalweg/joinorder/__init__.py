"""Probe orders for multi-way window joins of any shape (q-aware-join-ordering-2009; a-greedy-2004, section 8).

`PLANNERS` lists every planner; `planner("q-aware").plan(graph)` gives an order for each stream of a `JoinGraph`.
"""

from __future__ import annotations

from typing import Any

from thalweg.joinorder.cost import Cost, Measure, order_cost
from thalweg.joinorder.dmjoin import DMJoin
from thalweg.joinorder.drop_probing import DropProbing
from thalweg.joinorder.exhaustive import Exhaustive
from thalweg.joinorder.explain import JoinExplanation, explain
from thalweg.joinorder.f_greedy import FGreedy
from thalweg.joinorder.fab import FAB
from thalweg.joinorder.generate import random_graph
from thalweg.joinorder.global_impact import GlobalImpact
from thalweg.joinorder.graph import GraphShape, JoinGraph, JoinPredicate, JoinStream
from thalweg.joinorder.planner import Orders, Planner
from thalweg.joinorder.q_aware import QAware
from thalweg.joinorder.sifting import Sifting
from thalweg.joinorder.steady import Steady
from thalweg.joinorder.text import Equalities
from thalweg.joinorder.tree_opt import TreeOpt
from thalweg.registry import find

PLANNERS: tuple[type[Planner], ...] = (
    Exhaustive,
    DMJoin,
    FGreedy,
    TreeOpt,
    GlobalImpact,
    FAB,
    Sifting,
    QAware,
)


def planner(name: str, **options: Any) -> Planner:  # noqa: ANN401 - each planner checks its own
    """Make a planner by its name.

    >>> graph = JoinGraph.from_text("R1.pid = R2.pid AND R2.pid = R3.pid", rates={"R1": 9, "R2": 90, "R3": 20})
    >>> print(planner("q-aware", budget=0.01).plan(graph))
    R1 → R2 → R3  (243 tuples/s)
    R2 → R1 → R3  (243 tuples/s)
    R3 → R2 → R1  (342 tuples/s)
    """
    return find(name, PLANNERS, "planner")(**options)


__all__ = [
    "FAB",
    "PLANNERS",
    "Cost",
    "DMJoin",
    "DropProbing",
    "Equalities",
    "Exhaustive",
    "FGreedy",
    "GlobalImpact",
    "GraphShape",
    "JoinExplanation",
    "JoinGraph",
    "JoinPredicate",
    "JoinStream",
    "Measure",
    "Orders",
    "Planner",
    "QAware",
    "Sifting",
    "Steady",
    "TreeOpt",
    "explain",
    "order_cost",
    "planner",
    "random_graph",
]
