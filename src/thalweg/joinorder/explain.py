"""Why a join is ordered as it is: its shape, the chosen planner, its orders and costs, and other planners' orders.

Gives plain data, and knows nothing of how it is printed.
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
    """Another planner's orders; no orders, but the reason, if the planner gives none."""

    planner: str
    orders: Orders | None
    note: str = ""


@dataclass(frozen=True)
class JoinExplanation:
    """The orders chosen for a join, and the alternatives."""

    orders: Orders
    alternatives: tuple[Alternative, ...]

    @property
    def graph(self) -> JoinGraph:
        """The join."""
        return self.orders.graph

    def ratio(self, other: Orders) -> float:
        """The cost of other orders over the cost of the chosen orders; 1 where nothing costs anything."""
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
                {
                    "name": stream.name,
                    "rate": stream.rate,
                    "window": stream.window,
                    "order": list(self.orders[stream.name]),
                }
                | {"insert": cost.insert, "purge": cost.purge, "probe": cost.probe}
                for stream in self.graph.streams
                for cost in [self.orders.cost(stream.name)]
            ],
            "predicates": [
                {"left": each.left, "right": each.right, "selectivity": each.selectivity, "text": str(each)}
                for each in self.graph.predicates
            ],
            "alternatives": [
                {
                    "planner": other.planner,
                    "total": other.orders.total if other.orders else None,
                    "ratio": self.ratio(other.orders) if other.orders else None,
                    "note": other.note,
                }
                for other in self.alternatives
            ],
        }


def explain(
    graph: JoinGraph, measure: Measure | str = Measure.TUPLES, planner: Planner | None = None
) -> JoinExplanation:
    """Plan a join, by Q-Aware if no planner is given, and set the orders of the other planners beside it.

    >>> graph = JoinGraph.from_statistics({"A": 10, "B": 20, "C": 30}, {("A", "B"): 0.5, ("B", "C"): 0.1})
    >>> found = explain(graph)
    >>> found.orders.algorithm, found.orders["B"], [alternative.planner for alternative in found.alternatives][:2]
    ('tree-opt', ('C', 'A'), ['dmjoin', 'sifting'])
    """
    orders = (planner or QAware()).plan(graph, measure)
    others = (kind() for kind in RIVALS if kind.name not in {orders.planner, orders.algorithm})
    return JoinExplanation(orders, tuple(_alternative(other, graph, orders.measure) for other in others))


def _alternative(planner: Planner, graph: JoinGraph, measure: Measure) -> Alternative:
    try:
        return Alternative(planner.name, planner.plan(graph, measure))
    except ValueError as error:  # too many streams
        return Alternative(planner.name, None, str(error))
