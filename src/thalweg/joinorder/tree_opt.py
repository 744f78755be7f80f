"""TreeOpt: the optimal order of an acyclic join graph in polynomial time, after Ibaraki and Kameda.

Seen from the stream whose order is wanted, the graph is a tree, and a stream comes after its parent. A chain of
streams S multiplies the tuples by T and costs C for each tuple; chains that may follow each other in either order
belong in ascending order of rank(S) = (T - 1)/C. Where that would put a child before its parent, the two are merged
into one chain. A cyclic graph is first cut down to its minimum spanning tree, weighted by the tuples that joining
two streams makes: λi·λj·σij in the paper, where all windows are equal; window sizes in the place of rates here. The
order is then costed on the whole graph, and not optimal. (q-aware-join-ordering-2009, section 4)

The streams below an edge have the same order whichever stream lies above it, so each edge is solved twice, once in
either direction, and not once for each of the n roots.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p
from operator import itemgetter
from typing import ClassVar, NamedTuple

import numpy as np

from thalweg.joinorder.cost import Measure, Model, model
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner
from thalweg.ordering.types import Integers


class TreeOpt(Planner):
    """Optimal for every acyclic join graph, under every measure.

    >>> graph = JoinGraph.from_statistics(
    ...     {"A": 10, "B": 10, "C": 10, "D": 1}, {("A", "B"): 0.2, ("A", "C"): 0.3, ("C", "D"): 0.01}
    ... )
    >>> TreeOpt().plan(graph)["A"]
    ('C', 'D', 'B')
    """

    name: ClassVar[str] = "tree-opt"

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The optimal orders of the graph's spanning tree."""
        arrays = model(graph, measure)
        return tree_orders(arrays, spanning_tree(graph, arrays))


class Chain(NamedTuple):
    """Streams that are joined one after the other."""

    rank: tuple[int, float]
    growth: float  # log T
    cost: float  # log C
    streams: tuple[int, ...]


def spanning_tree(graph: JoinGraph, model: Model) -> list[list[int]]:
    """The neighbours of each stream in the minimum spanning tree; it leaves a component only where it must."""
    weights = model.size[:, None] + model.size + model.selectivity
    weights = np.where(graph.adjacent, weights, weights + np.ptp(weights) + 1.0)
    neighbours: list[list[int]] = [[] for _ in graph.streams]
    outside = np.ones(len(graph.streams), np.bool_)
    outside[0] = False
    nearest, weight = np.zeros(len(graph.streams), np.int64), weights[0].copy()
    for _ in range(len(graph.streams) - 1):
        stream = int(np.where(outside, weight, inf).argmin())
        other = int(nearest[stream])
        neighbours[stream].append(other)
        neighbours[other].append(stream)
        outside[stream] = False
        closer = weights[stream] < weight
        nearest[closer] = stream
        weight = np.minimum(weight, weights[stream])
    return neighbours


def tree_orders(model: Model, neighbours: list[list[int]]) -> Integers:
    """For each stream of a tree, the cheapest order of all streams in which each comes after its parent."""
    growth = (model.size[:, None] + model.selectivity).tolist()
    cost = model.probe.tolist()
    below: dict[tuple[int, int], list[Chain]] = {}  # (parent, child): the chains of the child's subtree, by rank

    def merged(stream: int, parent: int) -> list[Chain]:
        """The chains of all subtrees of a stream, by rank."""
        branches = [below[stream, child] for child in neighbours[stream] if child != parent]
        return branches[0] if len(branches) == 1 else sorted((c for b in branches for c in b), key=itemgetter(0))

    for parent, stream in _inward(neighbours):
        chains = merged(stream, parent)
        first = _chain(growth[stream][parent], cost[stream][parent], (stream,))
        done = 0
        while done < len(chains) and chains[done].rank < first.rank:
            first = _joined(first, chains[done])
            done += 1
        below[parent, stream] = [first, *chains[done:]]
    return np.array(
        [
            [root, *(stream for chain in merged(root, -1) for stream in chain.streams)]
            for root in range(len(neighbours))
        ],
        np.int64,
    )


def _inward(neighbours: list[list[int]]) -> list[tuple[int, int]]:
    """All edges in both directions, (parent, child), each after the edges that lie below it."""
    down = [(-1, 0)]
    for parent, stream in down:  # grows while it is read: breadth first from stream 0
        down += [(stream, child) for child in neighbours[stream] if child != parent]
    return [*reversed(down[1:]), *((stream, parent) for parent, stream in down[1:])]


def _chain(growth: float, cost: float, streams: tuple[int, ...]) -> Chain:
    """A chain with its rank, as sign and logarithm, so that no product is too great or too small for it."""
    if growth > 0.0:
        rank = (1, growth + log(-expm1(-growth)) - cost)
    elif growth < 0.0:
        rank = (-1, cost - log(-expm1(growth)))
    else:
        rank = (0, 0.0)
    return Chain(rank, growth, cost, streams)


def _joined(first: Chain, second: Chain) -> Chain:
    """A chain after another chain: C = C1 + T1·C2, T = T1·T2."""
    later = first.growth + second.cost
    cost = max(first.cost, later) + log1p(exp(-abs(first.cost - later)))
    return _chain(first.growth + second.growth, cost, first.streams + second.streams)
