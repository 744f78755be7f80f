"""FAB: forward and backward greedy, and for each stream the cheaper of the two orders.

(q-aware-join-ordering-2009, section 5)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.joinorder.cost import Measure, cheapest, model
from thalweg.joinorder.f_greedy import forward_greedy
from thalweg.joinorder.global_impact import backward_greedy
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner
from thalweg.ordering.types import Integers


class FAB(Planner):
    """The cheaper of F-Greedy's and global impact's order.

    >>> graph = JoinGraph.from_statistics(
    ...     {"A": 10, "B": 20, "C": 90}, {("A", "B"): 0.5, ("B", "C"): 0.1, ("A", "C"): 0.1}
    ... )
    >>> print(FAB().plan(graph))
    A → C → B  (180 tuples/s)
    B → A → C  (190 tuples/s)
    C → A → B  (180 tuples/s)
    """

    name: ClassVar[str] = "fab"

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The cheaper orders; of equals F-Greedy's."""
        arrays = model(graph, measure)
        return cheapest(arrays, forward_greedy(arrays), backward_greedy(arrays))
