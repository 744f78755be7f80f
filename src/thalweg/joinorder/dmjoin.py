"""DMJoin: the optimal orders by dynamic programming over sets of streams, in exponential time.

The paper runs Selinger's bottom-up algorithm once for each stream. But how many tuples a set of streams makes does
not depend on their order, and all that the start adds is one factor (its rate instead of its window's size). So the
cost to go on from a set to all streams is the same for every start, and one pass from the full set down to single
streams gives all n orders. (q-aware-join-ordering-2009, section 3.1)
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thalweg.joinorder.cost import Measure, Model, model, redundancy
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner, count_steps
from thalweg.kernels import kernel
from thalweg.ordering.types import Floats, Integers

SmallIntegers: TypeAlias = NDArray[np.int8]

MOST_STREAMS = 22  # four million sets, 70 MB


class DMJoin(Planner):
    """The optimal orders, without Cartesian products unless the graph is disconnected.

    >>> graph = JoinGraph.from_statistics(
    ...     {"A": 10, "B": 20, "C": 30}, {("A", "B"): 0.5, ("B", "C"): 0.1, ("A", "C"): 0.3}
    ... )
    >>> print(DMJoin().plan(graph))
    A → C → B  (180 tuples/s)
    B → C → A  (150 tuples/s)
    C → B → A  (150 tuples/s)
    """

    name: ClassVar[str] = "dmjoin"
    knows_redundancy: ClassVar[bool] = True

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The optimal orders; of equal orders, the order with the lower numbers first."""
        if len(graph.streams) > MOST_STREAMS:
            raise ValueError(
                f"dmjoin takes at most {MOST_STREAMS} streams, not {len(graph.streams)}; use tree-opt or q-aware"
            )
        return optimal_orders(model(graph, measure), redundancy(graph) if graph.redundant else None)


def optimal_orders(model: Model, redundancy: Floats | None = None) -> Integers:
    """The cheapest order of each stream; redundancy corrects the number of tuples of each set of streams."""
    streams = model.size.size
    count_steps(streams << streams)
    bits = 1 << np.arange(streams)
    half = (streams + 1) // 2  # the least probe over a set is that over its low or its high half: two small tables
    low, high = least_over_subsets(model.probe[:, :half]), least_over_subsets(model.probe[:, half:])
    tuples, cheapest = np.empty(1 << streams), np.empty(1 << streams)
    following: SmallIntegers = np.empty(1 << streams, np.int8)
    neighbours = np.array([int(bits[row].sum()) for row in model.joinable], np.int64)
    _count_tuples(model, neighbours, tuples, following)
    if redundancy is not None:
        tuples += redundancy
    _fill_sets(model, low, high, half, neighbours, tuples, cheapest, following)
    sequences = np.empty((streams, streams), np.int64)
    joined = bits.copy()
    sequences[:, 0] = np.arange(streams)
    for place in range(1, streams):
        sequences[:, place] = following[joined]
        joined |= 1 << sequences[:, place]
    return sequences


def least_over_subsets(matrix: Floats) -> Floats:
    """For each row, the least of every subset of its columns.

    >>> least_over_subsets(np.array([[3.0, 2.0]])).tolist()
    [[inf, 3.0, 2.0, 2.0]]
    """
    least = np.full((len(matrix), 1), np.inf)
    for column in matrix.T:
        least = np.hstack([least, np.minimum(least, column[:, None])])
    return least


@kernel
def _count_tuples(model: Model, neighbours: Integers, tuples: Floats, following: SmallIntegers) -> None:
    """For each set of streams, find the tuples it makes, and mark it by -1 if no legal order goes through it."""
    streams = model.size.size
    tuples[0] = 0.0
    for joined in range(1, tuples.size):
        last = 0
        while not (joined >> last) & 1:
            last += 1
        before = joined ^ (1 << last)
        growth = model.size[last]
        for other in range(last + 1, streams):
            if (before >> other) & 1:
                growth += model.selectivity[last, other]
        tuples[joined] = tuples[before] + growth
        following[joined] = -1 if before else 0
    for joined in range(1, tuples.size):
        if following[joined] == 0:
            for stream in range(streams):
                if not (joined >> stream) & 1 and neighbours[stream] & joined:
                    following[joined | (1 << stream)] = 0


@kernel
def _fill_sets(
    model: Model,
    low: Floats,
    high: Floats,
    half: int,
    neighbours: Integers,
    tuples: Floats,
    cheapest: Floats,
    following: SmallIntegers,
) -> None:
    """For each set of streams, find the cost of going on from it, and the stream to join next."""
    streams, last = model.size.size, tuples.size - 1
    part = (1 << half) - 1
    cheapest[last] = -np.inf
    for joined in range(last - 1, 0, -1):
        if following[joined] < 0:
            continue
        best = np.inf
        for stream in range(streams):
            if (joined >> stream) & 1 or not neighbours[stream] & joined:
                continue
            after = joined | (1 << stream)
            if model.summed:
                step = tuples[after]
            else:
                step = tuples[joined] + min(low[stream, joined & part], high[stream, joined >> half])
            most, least = max(step, cheapest[after]), min(step, cheapest[after])
            if most < best:
                cost = most + np.log1p(np.exp(least - most))
                if cost < best:
                    best = cost
                    following[joined] = stream
        cheapest[joined] = best
