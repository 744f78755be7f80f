"""Sifting: improves good orders by moving one stream at a time to its best place, until no move helps.

For cyclic graphs, where the optimum is out of reach. Each start's orders by forward greed, by global impact and by
spanning tree are sifted, and the best is kept: never worse than FAB or TreeOpt, by any measure. Beyond the
paper; the idea is Rudell's for the variables of binary decision diagrams. A stream moves by swaps with its neighbour,
and a swap of neighbours changes the tuples after one position only, so trying all places of a stream takes
O(n) time, and a round over all streams O(n²), where costing the orders anew would take O(n⁴).

Rejected: linearised dynamic programming as for bushy trees, which chooses how to bracket a fixed order; a probe order
has no brackets, only the order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import exp, inf
from typing import ClassVar, NamedTuple

import numpy as np

from thalweg.joinorder.cost import Measure, Model, cheapest, model
from thalweg.joinorder.f_greedy import forward_greedy
from thalweg.joinorder.global_impact import backward_greedy
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Planner, count_steps
from thalweg.joinorder.tree_opt import spanning_tree, tree_orders
from thalweg.kernels import inlined, kernel
from thalweg.ordering.types import Floats, Integers

LEAST_GAIN = 1e-9  # of the cost: less is rounding
BARRIER = 1e5  # costs that a stream may pass on its way to a better place; beyond it rounding would eat LEAST_GAIN


@dataclass(frozen=True)
class Sifting(Planner):
    """Local search from several heuristics' orders.

    Parameters
    ----------
    swaps
        How many swaps to try at most, for each order that is improved; some 10 ns each.

    Examples
    --------
    >>> graph = JoinGraph.from_statistics(
    ...     {"A": 10, "B": 20, "C": 90}, {("A", "B"): 0.5, ("B", "C"): 0.1, ("A", "C"): 0.1}
    ... )
    >>> print(Sifting().plan(graph))
    A → C → B  (180 tuples/s)
    B → A → C  (190 tuples/s)
    C → A → B  (180 tuples/s)
    """

    name: ClassVar[str] = "sifting"
    swaps: int = sys.maxsize

    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The best orders found."""
        arrays = model(graph, measure)
        first = (forward_greedy(arrays), backward_greedy(arrays), tree_orders(arrays, spanning_tree(graph, arrays)))
        return cheapest(arrays, *(sifted(arrays, sequences, self.swaps) for sequences in first))


class Work(NamedTuple):
    """An order under improvement: for each position the stream, and three logarithms."""

    order: Integers
    turns: Integers  # the streams, as they take turns to move: by the first order, so that their numbers do not matter
    growth: Floats  # the factor by which joining the stream multiplies the tuples
    least: Floats  # the least probe of the stream, over the streams before
    tuples: Floats  # after the join


def sifted(model: Model, sequences: Integers, swaps: int = sys.maxsize) -> Integers:
    """Orders in which no stream would be better off at another place, as far as a number of swaps will do."""
    streams = model.size.size
    work = Work(*np.empty((2, streams), np.int64), *np.empty((3, streams)))
    improved = sequences.copy()
    for order in improved:
        count_steps(4 * streams * streams)
        work.order[:] = work.turns[:] = order
        _sift(model, work, swaps)
        order[:] = work.order
    return improved


@kernel
def _sift(model: Model, work: Work, swaps: int) -> None:
    """Move streams, each to its best place in turn, until all are there."""
    order, turns = work.order, work.turns
    streams = order.size
    turn, settled = 0, 1  # streams in a row for which no move helped; the stream whose order this is stays first
    base = _measure(model, work)
    while settled < streams and swaps > 0:
        turn = turn % (streams - 1) + 1
        settled += 1
        source = 1
        while order[source] != turns[turn]:
            source += 1
        target, best = source, -LEAST_GAIN
        for direction in (-1, 1):
            place, change = source, 0.0
            while 1 <= place + direction < streams and change < BARRIER:
                left = min(place, place + direction)
                if not _may_swap(model, order, left):
                    break
                change += _swap(model, work, left, base)
                place += direction
                swaps -= 2  # there and back
                if change < best:
                    target, best = place, change
            while place != source:
                place -= direction
                _swap(model, work, min(place, place + direction), base)
        if target != source:
            direction = 1 if target > source else -1
            for place in range(source, target, direction):
                _swap(model, work, min(place, place + direction), base)
            settled = 1
            base = _measure(model, work)


@inlined
def _may_swap(model: Model, order: Integers, left: int) -> bool:
    """Whether the stream after a position has a predicate with a stream before it."""
    for place in range(left):
        if model.joinable[order[left + 1], order[place]]:
            return True
    return False


@inlined
def _least(model: Model, order: Integers, stream: int, until: int, bound: float) -> float:
    """The least probe of a stream over the streams before a position; it is known not to be below the bound."""
    least = inf
    for place in range(until):
        least = min(least, model.probe[stream, order[place]])
        if least <= bound:
            break
    return least


@inlined
def _share(logarithm: float) -> float:
    """A cost as a share of the order's; beyond all bounds is as good as beyond the barrier."""
    return exp(min(logarithm, 700.0))


@kernel
def _swap(model: Model, work: Work, left: int, base: float) -> float:
    """Swap the streams at a position and the next; returns the change of cost, as a share of the cost `base`."""
    order, growth, least, tuples = work.order, work.growth, work.least, work.tuples
    first, second = order[left], order[left + 1]
    between = model.selectivity[first, second]
    before, former = tuples[left - 1] - base, tuples[left] - base
    latter = before + growth[left + 1] - between
    order[left], order[left + 1] = second, first
    growth[left], growth[left + 1] = growth[left + 1] - between, growth[left] + between
    tuples[left] = latter + base
    if model.summed:
        return _share(latter) - _share(former)
    old_first, old_second = least[left], least[left + 1]
    least[left] = (
        old_second if old_second < model.probe[second, first] else _least(model, order, second, left, old_second)
    )
    least[left + 1] = min(old_first, model.probe[first, second])
    gone = _share(before + old_first) + _share(former + old_second)
    return _share(before + least[left]) + _share(latter + least[left + 1]) - gone


@kernel
def _measure(model: Model, work: Work) -> float:
    """Fill in an order's numbers; returns the logarithm of its cost."""
    order, growth, least, tuples = work.order, work.growth, work.least, work.tuples
    tuples[0] = model.size[order[0]]
    cost = -inf
    for place in range(1, order.size):
        stream = order[place]
        growth[place] = model.size[stream]
        for before in range(place):
            growth[place] += model.selectivity[stream, order[before]]
        least[place] = _least(model, order, stream, place, -inf)
        tuples[place] = tuples[place - 1] + growth[place]
        step = tuples[place] if model.summed else tuples[place - 1] + least[place]
        cost = max(cost, step) + np.log1p(exp(-abs(cost - step)))
    return cost
