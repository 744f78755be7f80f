"""F-Greedy: joins next the stream that makes the fewest tuples now, and does not look further ahead.

The common practice for multi-way window joins. All streams' orders are found together, a row of a matrix each.
(q-aware-join-ordering-2009, section 3.2)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from thalweg.joinorder.cost import Measure, Model, model
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner
from thalweg.ordering.types import Integers


class FGreedy(Planner):
    """Forward greedy, by tuples produced, whichever measure is asked for.

    >>> graph = JoinGraph.from_statistics(
    ...     {"S1": 75.36, "S3": 53.94, "S5": 26.05}, {("S1", "S3"): 0.26, ("S1", "S5"): 0.78, ("S3", "S5"): 0.5}
    ... )
    >>> FGreedy().plan(graph)["S1"]
    ('S3', 'S5')
    """

    name: ClassVar[str] = "f-greedy"

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The greedy orders."""
        return forward_greedy(model(graph, measure))


def forward_greedy(model: Model) -> Integers:
    """For each stream, the order in which every next stream multiplies the tuples least."""
    streams = model.size.size
    rows = np.arange(streams)
    sequences = np.empty((streams, streams), np.int64)
    sequences[:, 0] = rows
    growth = model.size + model.selectivity  # [start, next]: the factor by which joining `next` multiplies the tuples
    reached = model.joinable.copy()
    joined = np.eye(streams, dtype=np.bool_)
    for place in range(1, streams):
        following = np.where(reached & ~joined, growth, np.inf).argmin(axis=1)
        sequences[:, place] = following
        growth += model.selectivity[following]
        reached |= model.joinable[following]
        joined[rows, following] = True
    return sequences
