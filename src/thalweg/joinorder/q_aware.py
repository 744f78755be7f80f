"""Q-Aware: chooses the algorithm by the shape of the join graph, and by the time there is for planning.

Acyclic graphs go to TreeOpt, which is optimal. Cyclic graphs go to FAB in the paper; here to DMJoin, which is
optimal too, while that is affordable, and beyond to Sifting, which starts from FAB's orders and improves them for as
long as there is time. Where equalities follow from each other, DMJoin counts them right; TreeOpt and Sifting plan the
graph as seen from each stream. The budget is turned into steps of compiled kernels, not watched on a clock, so that
the choice depends on the graph and on nothing else. (q-aware-join-ordering-2009, section 6, table 2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from thalweg.joinorder.cost import MOST_REDUNDANT, Measure
from thalweg.joinorder.dmjoin import MOST_STREAMS, DMJoin
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Orders, Planner
from thalweg.joinorder.sifting import Sifting
from thalweg.joinorder.tree_opt import TreeOpt
from thalweg.ordering.types import Integers

STEP_SECONDS = 20e-9  # of DMJoin, compiled, with room to spare
SWAP_SECONDS = 20e-9  # of Sifting, likewise
SIFTED = 3  # orders that Sifting improves for each stream


@dataclass(frozen=True)
class QAware(Planner):
    """The best planner for the graph's shape and the time there is.

    Parameters
    ----------
    budget
        Seconds that planning may take, about; TreeOpt and FAB run in any case.

    Examples
    --------
    >>> graph = JoinGraph.from_text("A.k = B.k AND B.l = C.l")
    >>> QAware().plan(graph).algorithm
    'tree-opt'
    >>> graph = JoinGraph.from_text("A.k = B.k AND B.l = C.l AND C.m = A.m")
    >>> QAware().plan(graph).algorithm, QAware(budget=0).plan(graph).algorithm
    ('dmjoin', 'sifting')
    """

    name: ClassVar[str] = "q-aware"
    budget: float = 0.02

    def __post_init__(self) -> None:
        if not self.budget >= 0.0:
            raise ValueError(f"the budget is a number of seconds, 0 or more, not {self.budget}")

    def plan(self, graph: JoinGraph, measure: Measure | str = Measure.TUPLES) -> Orders:
        """The chosen planner's orders."""
        return replace(self.choose(graph).plan(graph, measure), planner=self.name)

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The chosen planner's orders, as an array."""
        return self.choose(graph).sequences(graph, measure)

    def choose(self, graph: JoinGraph) -> Planner:
        """The planner for a graph."""
        streams = len(graph.streams)
        if graph.acyclic:
            return TreeOpt()
        steps, most, budget = streams << streams, MOST_STREAMS, self.budget
        if graph.redundant:
            steps, most = steps * len(graph.predicates), MOST_REDUNDANT  # to count the tuples of each set of streams
        if streams <= most and steps * STEP_SECONDS <= budget:
            return DMJoin()
        if graph.redundant:
            if all(graph.seen_from(name).acyclic for name in graph.names):
                return TreeOpt()
            budget /= streams  # a graph for each stream
        return Sifting(swaps=round(min(budget / (SIFTED * streams * SWAP_SECONDS), 2.0**62)))
