"""Steady: keeps the orders there are until others are surely better, so that noisy statistics do not make them thrash.

Rates and selectivities come from counts: of arrivals, and of matches among pairs. A count of c is known to about its
square root, so the logarithm of an estimate made from it has a standard error of 1/√c. Plausible statistics are drawn
around the estimates accordingly, and both orders of a stream, the present order and the planner's, are costed under
each draw. The order changes if the gain, as a mean of logarithms, exceeds a margin by several of its standard errors.
Errors that both orders share cancel: the part that the two have in common does not count, however uncertain it is.

An order that is kept can therefore be worse than the planner's by the margin and twice these standard errors, and by
more only with rare luck; more evidence makes it less. A change of the streams shows at once if the evidence is of the
time after it. Beyond the papers: A-Greedy's thrash avoidance (a-greedy-2004, section 4) is the margin alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from thalweg.joinorder.cost import Measure, log_costs, model, model_of
from thalweg.joinorder.graph import JoinGraph
from thalweg.joinorder.planner import Orders, Planner, is_legal
from thalweg.joinorder.q_aware import QAware
from thalweg.ordering.types import Floats, Integers

DRAWS = 32  # plausible statistics; they give a standard error to about an eighth
MOST_COUNT = 1e300
LEAST_COUNT = 0.5  # a count of 0 is taken for half a count: a match that was not seen yet is not impossible


class Steady:
    """Orders of a join that change only for a sure gain.

    Parameters
    ----------
    planner
        The planner that proposes orders; Q-Aware by default.
    measure
        The measure of a probe's cost.
    margin
        The gain that a change must bring, as a share of the cost.
    confidence
        By how many standard errors the gain must exceed the margin.
    seed
        Seed of the draws.

    Examples
    --------
    >>> def seen(matches: int) -> JoinGraph:
    ...     return JoinGraph.from_statistics(
    ...         {"A": 10, "B": 10, "C": 10}, {("A", "B"): 0.1, ("A", "C"): matches / 1000}
    ...     )
    >>> steady = Steady()
    >>> steady.update(seen(110), arrivals=1000, matches=100), steady.orders["A"]
    (True, ('B', 'C'))
    >>> steady.update(seen(80), arrivals=1000, matches=80), steady.orders["A"]
    (False, ('B', 'C'))
    >>> steady.update(seen(20), arrivals=1000, matches=20), steady.orders["A"]
    (True, ('C', 'B'))
    """

    def __init__(
        self,
        planner: Planner | None = None,
        measure: Measure | str = Measure.TUPLES,
        margin: float = 0.05,
        confidence: float = 3.0,
        seed: int = 0,
    ) -> None:
        for option, value in (("margin", margin), ("confidence", confidence)):
            if not value >= 0.0:
                raise ValueError(f"the {option} is a number, 0 or more, not {value}")
        self.planner, self.measure = planner or QAware(), Measure(measure)
        self.margin, self.confidence = margin, confidence
        self.switches = 0  # changes of single streams' orders so far
        self._random = np.random.default_rng(seed)
        self._orders: Orders | None = None

    @property
    def orders(self) -> Orders:
        """The orders to run."""
        if self._orders is None:
            raise ValueError("there are no orders before the first update")
        return self._orders

    def update(
        self,
        graph: JoinGraph,
        arrivals: float | Mapping[str, float],
        matches: float | Mapping[tuple[str, str], float],
    ) -> bool:
        """Look at new statistics; returns whether an order changed.

        `arrivals` and `matches` are the counts behind the graph's rates and selectivities, a count for all or a count
        for each: tuples that arrived of a stream, pairs that matched between two streams. A missing count is 0.
        """
        proposed = self.planner.plan(graph, self.measure)
        if self._orders is None or not _legal(self._orders, graph):
            self._orders = proposed
            return True
        proposals = zip(self._orders.sequences, proposed.sequences, strict=True)
        differ = [(start, *pair) for start, pair in enumerate(proposals) if pair[0] != pair[1]]
        errors = _errors(graph, arrivals, matches)
        sequences = list(self._orders.sequences)
        changed = False
        for start, present, wanted in differ:
            gains = self._gains(graph.seen_from(graph.names[start]), np.array([present, wanted], np.int64), *errors)
            if gains.mean() - self.confidence * gains.std() > np.log1p(self.margin):
                sequences[start], changed = wanted, True
                self.switches += 1
        self._orders = replace(proposed, sequences=tuple(sequences))
        return changed

    def _gains(self, graph: JoinGraph, orders: Integers, rate_errors: Floats, share_errors: Floats) -> Floats:
        """How much cheaper the second order is than the first under plausible statistics, as logarithms."""
        estimate = model(graph, self.measure)
        gains = []
        for _ in range(DRAWS):
            rates = self._random.normal(0.0, rate_errors)
            shares = np.triu(self._random.normal(0.0, share_errors) * graph.adjacent)
            selectivity = np.minimum(estimate.selectivity + shares + shares.T, 0.0)
            drawn = model_of(estimate.rate + rates, estimate.size + rates, selectivity, estimate.joinable, self.measure)
            first, second = log_costs(drawn, orders)
            gains.append(first - second)
        return np.array(gains)


def _errors(
    graph: JoinGraph, arrivals: float | Mapping[str, float], matches: float | Mapping[tuple[str, str], float]
) -> tuple[Floats, Floats]:
    """The standard errors of the logarithms of rates, and of selectivities between every two streams."""
    for given in (arrivals, matches):
        for count in given.values() if isinstance(given, Mapping) else (given,):
            if not 0.0 <= count <= MOST_COUNT:
                raise ValueError(f"counts of arrivals and matches are from 0 to {MOST_COUNT:g}, not {count!r:.80}")
    tuples = [arrivals.get(name, 0.0) if isinstance(arrivals, Mapping) else arrivals for name in graph.names]
    pairs = np.full((len(graph.names), len(graph.names)), 0.0 if isinstance(matches, Mapping) else matches)
    for (left, right), count in matches.items() if isinstance(matches, Mapping) else ():
        pairs[graph.position(left), graph.position(right)] = pairs[graph.position(right), graph.position(left)] = count
    return np.maximum(tuples, LEAST_COUNT) ** -0.5, np.maximum(pairs, LEAST_COUNT) ** -0.5


def _legal(orders: Orders, graph: JoinGraph) -> bool:
    """Whether the orders suit a graph: it has their streams, and the predicates that they go along."""
    return orders.graph.names == graph.names and (
        not graph.connected or all(is_legal(graph.adjacent, np.array(sequence)) for sequence in orders.sequences)
    )
