"""Exhaustive: tries every order without a Cartesian product; the oracle of the other planners, for few streams.

Works on plain numbers, straight from the definition of the cost, so that it shares nothing with the planners it checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from thalweg.joinorder.cost import Measure, step
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner
from thalweg.ordering.types import Integers

MOST_STREAMS = 9  # 40320 orders for each stream


class Exhaustive(Planner):
    """The cheapest of all orders.

    >>> graph = JoinGraph.from_statistics({"A": 1, "B": 100, "C": 10}, {("A", "B"): 0.5, ("A", "C"): 0.5})
    >>> print(Exhaustive().plan(graph))
    A → C → B  (255 tuples/s)
    B → A → C  (300 tuples/s)
    C → A → B  (255 tuples/s)
    """

    name: ClassVar[str] = "exhaustive"
    knows_redundancy: ClassVar[bool] = True

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The cheapest orders; of equal orders, the order with the lower numbers first."""
        streams = len(graph.streams)
        if streams > MOST_STREAMS:
            raise ValueError(f"exhaustive takes at most {MOST_STREAMS} streams, not {streams}; use dmjoin")
        return np.array([min(every_order(graph, start, measure))[1] for start in range(streams)], np.int64)


def every_order(graph: JoinGraph, start: int, measure: Measure) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Each legal order of a stream, after its probe cost."""
    joinable = graph.adjacent if graph.connected else np.ones_like(graph.adjacent)
    neighbours = [set(np.flatnonzero(row).tolist()) for row in joinable]
    waiting: list[tuple[tuple[int, ...], float, float]] = [((start,), graph.streams[start].rate, 0.0)]
    while waiting:
        order, tuples, cost = waiting.pop()
        if len(order) == len(graph.streams):
            yield cost, order
        for stream in range(len(graph.streams)):
            if stream not in order and not neighbours[stream].isdisjoint(order):
                growth, each = step(graph, order, stream, measure)
                waiting.append(((*order, stream), tuples * growth, cost + tuples * each))
