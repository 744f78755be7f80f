"""Global impact: fills the order from its end, with the stream that the others would do best without.

The impact of a stream is the number of tuples that all the others make; the stream with the least, which has a high
rate and poor selectivities, is joined last, and so on with the rest. (q-aware-join-ordering-2009, section 5,
algorithm 1.) Errata: the algorithm's two loops multiply the selectivity of each pair twice; once is meant. And it
would strand streams in a graph that is not complete: here a stream is taken away only if the rest stay connected.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np

from thalweg.joinorder.cost import Measure, Model, model
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner
from thalweg.ordering.types import Integers


class GlobalImpact(Planner):
    """Backward greedy, by tuples produced, whichever measure is asked for.

    >>> graph = JoinGraph.from_statistics(
    ...     {"A": 10, "B": 20, "C": 90}, {("A", "B"): 0.5, ("B", "C"): 0.1, ("A", "C"): 0.3}
    ... )
    >>> GlobalImpact().plan(graph)["A"]
    ('B', 'C')
    """

    name: ClassVar[str] = "global-impact"

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The orders by global impact."""
        return backward_greedy(model(graph, measure))


def backward_greedy(model: Model) -> Integers:
    """For each stream, the order in which every last stream multiplies the tuples of the others most.

    The impact of a stream is the tuples of all streams, divided by the factor by which this stream multiplies them: the
    stream with the greatest factor has the least impact.
    """
    streams = model.size.size
    neighbours = [sum(1 << int(stream) for stream in np.flatnonzero(row)) for row in model.joinable]
    sequences = np.empty((streams, streams), np.int64)
    sequences[:, 0] = rows = np.arange(streams)
    growth = np.repeat((model.size + model.selectivity.sum(axis=0))[None], streams, axis=0)
    growth[rows, rows] = -np.inf  # the start stays
    left = [(1 << streams) - 1] * streams
    tree = model.joinable.sum() == 2 * (streams - 1)  # a connected graph with so few predicates is a tree

    @cache  # most starts have the same streams left for long
    def may_leave(among: int, stream: int) -> bool:
        if tree:
            return (neighbours[stream] & among).bit_count() <= 1
        return stays_connected(neighbours, among, stream)

    for place in range(streams - 1, 0, -1):
        last = growth.argmax(axis=1)
        for start, most in enumerate(last.tolist()):
            stream = most
            if not may_leave(left[start], stream):
                by_growth = np.argsort(-growth[start]).tolist()
                stream = last[start] = next(each for each in by_growth if may_leave(left[start], each))
            left[start] ^= 1 << stream
        sequences[:, place] = last
        growth -= model.selectivity[last]
        growth[rows, last] = -np.inf
    return sequences


def stays_connected(neighbours: list[int], streams: int, leaving: int) -> bool:
    """Whether a connected set of streams, as bits, remains connected when a stream leaves.

    >>> stays_connected([0b010, 0b101, 0b010], 0b111, 1)
    False
    """
    rest = streams & ~(1 << leaving)
    # The neighbours were connected with all the others, so it is enough that they stay together.
    wanted = neighbours[leaving] & rest
    reached = fresh = wanted & -wanted
    while fresh and wanted & ~reached:
        lowest = fresh & -fresh
        found = neighbours[lowest.bit_length() - 1] & rest & ~reached
        reached |= found
        fresh = fresh ^ lowest | found
    return not wanted & ~reached
