"""Drop-probing with correlated streams: orders a stream's probes by the joint statistics of what they drop.

Before a new tuple is joined it can be asked whether it joins at all: it probes the other windows in some order, each
for the mere existence of a match, until one drops it. In a star these probes are filters on the tuple, and the policies
of `thalweg.ordering` order them, whatever the correlations between them, which selectivities of single predicates
cannot tell (a-greedy-2004, section 8.1). In any other acyclic join a stream is reached along a path from the tuple's
own; the path is the filter: it drops the tuple if no match of a match of a match exists. A path may be probed only
after the one it continues, which is a precedence among filters (section 8.2). A cyclic join is probed along its minimum
spanning tree: it drops too little, never too much.

Greed does not look behind a stream: a path that drops much waits while the one before it drops little. `TreeOpt` does
look, but takes selectivities to be independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg.joinorder.cost import Measure, model
from thalweg.joinorder.graph import JoinGraph, present
from thalweg.joinorder.text import Attribute
from thalweg.joinorder.tree_opt import spanning_tree
from thalweg.ordering import Policy, policy
from thalweg.ordering.types import Booleans, Integers

Sample = Mapping[str, ArrayLike]  # attributes of a stream's tuples


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
        """For each other stream the one before it on the path from the probing stream, parents first."""
        graph = self.graph.seen_from(self.stream)
        neighbours = spanning_tree(graph, model(graph, Measure.TUPLES))
        start = self.graph.position(self.stream)
        down, seen = [start], {start: start}
        for one in down:  # grows while it is read: breadth first
            for child in neighbours[one]:
                if child not in seen:
                    seen[child] = one
                    down.append(child)
        names = self.graph.names
        return {names[child]: names[parent] for child, parent in seen.items() if child != start}

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """The streams to probe, by the number of the filter."""
        return tuple(name for name in self.graph.names if name != self.stream)

    @cached_property
    def after(self) -> dict[int, list[int]]:
        """Which filter has to wait for which: a path for the one that it continues."""
        number = {name: place for place, name in enumerate(self.filters)}
        return {number[child]: [number[parent]] for child, parent in self.parents.items() if parent != self.stream}

    def policy(self, name: str = "a-greedy", **options: Any) -> Policy:  # noqa: ANN401 - Policy checks them
        """A policy that orders the probes; options are those of `Policy`, but for `after`."""
        return policy(name, len(self.filters), after=self.after, **options)

    def order(self, learner: Policy) -> tuple[str, ...]:
        """A policy's order, as streams: what `Orders` gives, without a Cartesian product."""
        return tuple(self.filters[one] for one in learner.order)

    def masks(self, tuples: Sample, windows: Mapping[str, Sample]) -> Integers:
        """The drop mask of each tuple of the stream: bit i is set if the path to filter i's stream drops it.

        >>> probing = DropProbing(JoinGraph.from_text("A.k = B.k AND B.l = C.l"), "A")
        >>> windows = {"B": {"k": [1, 2], "l": [7, 8]}, "C": {"l": [8]}}
        >>> [f"{mask:02b}" for mask in probing.masks({"k": [1, 2, 3]}, windows).tolist()]
        ['10', '00', '11']
        """
        samples = {**windows, self.stream: tuples}
        masks = np.zeros(max((np.size(each) for each in tuples.values()), default=0), np.int64)
        for number, name in enumerate(self.filters):
            child, alive = name, np.ones((), np.bool_)  # which of the stream's tuples lead to the end of the path: all
            while child != self.stream:
                child, alive = self.parents[child], self._matched(samples, self.parents[child], child, alive)
            masks |= np.where(alive, 0, 1 << number)
        return masks

    def _matched(self, samples: Mapping[str, Sample], parent: str, child: str, alive: Booleans) -> Booleans:
        """Which tuples of the parent have a match among those of the child that are alive."""
        pairs = [
            (one.equality.left, one.equality.right)
            for one in self.graph.predicates
            if one.equality and {one.left, one.right} == {parent, child}
        ]
        if not pairs:
            raise ValueError(
                f"the predicate between {parent} and {child} is no equality of attributes, like 'A.k = B.k'"
            )
        own = [left if left.stream == parent else right for left, right in pairs]
        others = [left if left.stream == child else right for left, right in pairs]
        keys, among = _keys([_column(samples, one) for one in own], [_column(samples, one) for one in others])
        return np.isin(keys, among[np.broadcast_to(alive, among.shape)])


def _column(samples: Mapping[str, Sample], attribute: Attribute) -> NDArray[np.generic]:
    sample = samples.get(attribute.stream, {})
    if attribute.name not in sample:
        raise ValueError(f"the tuples of {attribute.stream} have no {attribute.name!r}; they have {sorted(sample)}")
    return np.asarray(sample[attribute.name])


def _keys(left: Sequence[NDArray[np.generic]], right: Sequence[NDArray[np.generic]]) -> tuple[Integers, Integers]:
    """One number for each tuple on either side, the same for tuples whose columns are; NaN and None match nothing."""
    size = left[0].size
    keys, known = np.zeros(size + right[0].size, np.int64), np.ones(size + right[0].size, np.bool_)
    for column, other in zip(left, right, strict=True):
        both = np.concatenate([column, other])
        known &= present(both)
        numbers = np.zeros(both.size, np.int64)
        numbers[known] = np.unique(both[known], return_inverse=True)[1]
        keys = np.unique(keys * both.size + numbers, return_inverse=True)[1]
    return np.where(known[:size], keys[:size], -1), np.where(known[size:], keys[size:], -2)
