"""Why a join is ordered as it is: its shape, the planner chosen, the orders with their costs, and what others would do.

Gives plain data; who prints it is not its business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.joinorder.cost import Measure
from thalweg.joinorder.dmjoin import DMJoin
from thalweg.joinorder.f_greedy import FGreedy
from thalweg.joinorder.fab import FAB
from thalweg.joinorder.global_impact import GlobalImpact
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Orders, Planner
from thalweg.joinorder.q_aware import QAware
from thalweg.joinorder.sifting import Sifting
from thalweg.joinorder.tree_opt import TreeOpt

RIVALS: tuple[type[Planner], ...] = (DMJoin, TreeOpt, Sifting, FAB, GlobalImpact, FGreedy)


@dataclass(frozen=True)
class Alternative:
    """What another planner's orders would cost; no orders, but the reason, where it gives none."""

    planner: str
    orders: Orders | None
    note: str = ""


@dataclass(frozen=True)
class JoinExplanation:
    """The orders chosen for a join, and what they were chosen from."""

    orders: Orders
    alternatives: tuple[Alternative, ...]

    @property
    def graph(self) -> JoinGraph:
        """The join."""
        return self.orders.graph

    def ratio(self, other: Orders) -> float:
        """The cost of other orders over that of the chosen ones; 1 where nothing costs anything."""
        return other.total / self.orders.total if self.orders.total else 1.0

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "shape": self.graph.shape.value,
            "measure": self.orders.measure.value,
            "planner": self.orders.planner,
            "algorithm": self.orders.algorithm,
            "total": self.orders.total,
            "streams": [
                {"name": one.name, "rate": one.rate, "window": one.window, "order": list(self.orders[one.name])}
                | {"insert": cost.insert, "purge": cost.purge, "probe": cost.probe}
                for one in self.graph.streams
                for cost in [self.orders.cost(one.name)]
            ],
            "predicates": [
                {"left": one.left, "right": one.right, "selectivity": one.selectivity, "text": str(one)}
                for one in self.graph.predicates
            ],
            "alternatives": [
                {
                    "planner": one.planner,
                    "total": one.orders.total if one.orders else None,
                    "ratio": self.ratio(one.orders) if one.orders else None,
                    "note": one.note,
                }
                for one in self.alternatives
            ],
        }


def explain(
    graph: JoinGraph, measure: Measure | str = Measure.TUPLES, planner: Planner | None = None
) -> JoinExplanation:
    """Plan a join, by Q-Aware if nothing else is given, and set beside it what the other planners make of it.

    >>> graph = JoinGraph.from_statistics({"A": 10, "B": 20, "C": 30}, {("A", "B"): 0.5, ("B", "C"): 0.1})
    >>> found = explain(graph)
    >>> found.orders.algorithm, found.orders["B"], [one.planner for one in found.alternatives][:2]
    ('tree-opt', ('C', 'A'), ['dmjoin', 'sifting'])
    """
    orders = (planner or QAware()).plan(graph, measure)
    others = (kind() for kind in RIVALS if kind.name not in {orders.planner, orders.algorithm})
    return JoinExplanation(orders, tuple(_alternative(one, graph, orders.measure) for one in others))


def _alternative(planner: Planner, graph: JoinGraph, measure: Measure) -> Alternative:
    try:
        return Alternative(planner.name, planner.plan(graph, measure))
    except ValueError as error:  # too many streams
        return Alternative(planner.name, None, str(error))
