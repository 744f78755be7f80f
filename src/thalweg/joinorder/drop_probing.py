"""Drop-probing with correlated streams: orders a stream's probes by joint statistics of the tuples that they drop.

Before a new tuple is joined it can be asked whether it joins at all: it probes the other windows in some order, each
for the mere existence of a match, until a probe drops it. In a star these probes are filters on the tuple, and the
policies of `thalweg.ordering` order them, also where they are correlated, which selectivities of single predicates
cannot tell (a-greedy-2004, section 8.1). In any other acyclic join a stream is reached along a path from the tuple's
own stream; the path is the filter: it drops the tuple if no match of a match of a match exists. A path may be probed
only after the path that it continues, which is a precedence among filters (section 8.2). A cyclic join is probed along
its minimum spanning tree: it drops too little, never too much.

Greed does not look behind a stream: a path that drops much waits while the path before it drops little. `TreeOpt` does
look, but takes selectivities to be independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from thalweg.joinorder.cost import Measure, model
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.tree_opt import spanning_tree
from thalweg.ordering import Policy, policy


@dataclass(frozen=True)
class DropProbing:
    """The probes of a stream's new tuples, as the filters of an ordering policy.

    >>> graph = JoinGraph.from_text("A.k = B.k AND B.l = C.l AND A.m = D.m")
    >>> probing = DropProbing(graph, "A")
    >>> probing.filters, probing.after
    (('B', 'C', 'D'), {1: [0]})

    C drops more than B, but has to wait for it.

    >>> learner = probing.policy("a-greedy")
    >>> learner.update([0b100] * 60 + [0b010] * 30 + [0b011] * 10)
    True
    >>> probing.order(learner)
    ('D', 'B', 'C')
    """

    graph: JoinGraph
    stream: str

    def __post_init__(self) -> None:
        self.graph.position(self.stream)
        if not self.graph.connected:
            raise ValueError("drop-probing needs predicates that connect all streams; probe each component by itself")

    @cached_property
    def parents(self) -> dict[str, str]:
        """For each other stream, its parent on the path from the probing stream; parents come first."""
        graph = self.graph.seen_from(self.stream)
        neighbours = spanning_tree(graph, model(graph, Measure.TUPLES))
        start = self.graph.position(self.stream)
        down, seen = [start], {start: start}
        for parent_number in down:  # grows while it is read: breadth first
            for child in neighbours[parent_number]:
                if child not in seen:
                    seen[child] = parent_number
                    down.append(child)
        names = self.graph.names
        return {names[child]: names[parent] for child, parent in seen.items() if child != start}

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """The streams to probe, by the number of the filter."""
        return tuple(name for name in self.graph.names if name != self.stream)

    @cached_property
    def after(self) -> dict[int, list[int]]:
        """Which filter has to wait for which: a path for the path that it continues."""
        number = {name: place for place, name in enumerate(self.filters)}
        return {number[child]: [number[parent]] for child, parent in self.parents.items() if parent != self.stream}

    def policy(self, name: str = "a-greedy", **options: Any) -> Policy:  # noqa: ANN401 - Policy checks them
        """A policy that orders the probes; it takes the options of `Policy`, but for `after`."""
        return policy(name, len(self.filters), after=self.after, **options)

    def order(self, learner: Policy) -> tuple[str, ...]:
        """A policy's order, as streams, like the orders in `Orders`; it has no Cartesian product."""
        return tuple(self.filters[number] for number in learner.order)
