"""The cost of a probe order, a second (q-aware-join-ordering-2009, section 2.2, equations 1 to 3).

A new tuple is inserted into its stream's window, an old tuple is purged, and the new tuple probes the windows of the
other streams in order. The cost of a probe has three measures (`Measure`); planners are compared only under the same
measure. Erratum: section 4 defines C of a stream as the tuples that joining it produces, equation 2 as the pairs it
compares; both have the property that TreeOpt needs, and both are offered.

`step` is the definition, in plain numbers. `Model` holds the same as arrays of logarithms, for planners: the sizes
of a join of many streams leave the range of floating-point numbers, their logarithms do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from thalweg.joinorder.graph import JoinGraph
from thalweg.ordering.types import Booleans, Floats, Integers

MOST_REDUNDANT = 16  # streams: a second


class Measure(StrEnum):
    """The measure of a probe's cost."""

    PAIRS = "pairs"  # pairs of tuples compared: every tuple of the window (equation 2)
    TUPLES = "tuples"  # tuples produced: intermediate tuples, and the results, which are the same for all orders
    INDEXED = "indexed"  # one look into a hash index, and the matches found there by the most selective predicate

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ValueError(f"what a probe costs is measured in {', '.join(cls)}, not {value!r}")


@dataclass(frozen=True)
class Cost:
    """The cost of one stream's new tuples, a second (equation 1)."""

    insert: float
    purge: float
    probe: float

    @property
    def total(self) -> float:
        """The sum."""
        return self.insert + self.purge + self.probe


def order_cost(graph: JoinGraph, order: Iterable[str], measure: Measure | str = Measure.TUPLES) -> Cost:
    """The cost of processing a stream's new tuples in a probe order, which begins with the stream itself.

    The paper's section 3.2: joined with S3 first, the tuples of S1 become some 1057 a second.

    >>> graph = JoinGraph.from_statistics({"S1": 75.36, "S3": 53.94}, {("S1", "S3"): 0.26})
    >>> cost = order_cost(graph, ["S1", "S3"])
    >>> cost.insert, cost.purge, round(cost.probe, 1)
    (75.36, 75.36, 1056.9)
    >>> round(order_cost(graph, ["S1", "S3"], "pairs").probe, 1)
    4064.9
    """
    sequence = [graph.position(name) for name in order]
    if sorted(sequence) != list(range(len(graph.streams))):
        raise ValueError(f"an order names each of the streams {', '.join(graph.names)} once")
    rate = graph.streams[sequence[0]].rate
    return Cost(insert=rate, purge=rate, probe=probe_cost(graph, sequence, measure))


def probe_cost(graph: JoinGraph, sequence: Sequence[int], measure: Measure | str = Measure.TUPLES) -> float:
    """The cost of probing, a second, for an order given by the numbers of the streams."""
    kind, tuples, total = Measure(measure), graph.streams[sequence[0]].rate, 0.0
    for place in range(1, len(sequence)):
        growth, each = step(graph, sequence[:place], sequence[place], kind)
        total += tuples * each
        tuples *= growth
    return float(total)


def step(graph: JoinGraph, before: Sequence[int], joined: int, measure: Measure) -> tuple[float, float]:
    """How many tuples a tuple of the streams before becomes by joining one more stream, and the cost of that."""
    size, shares = float(graph.sizes[joined]), graph.selectivities[joined][list(before)]
    share = _joint_share(graph, before, joined) if graph.redundant else math.prod(shares.tolist())
    if measure is Measure.PAIRS:
        return size * share, size
    return size * share, size * share if measure is Measure.TUPLES else 1.0 + size * float(shares.min())


def _joint_share(graph: JoinGraph, before: Sequence[int], joined_stream: int) -> float:
    """The selectivity of a stream with all streams before it, where equalities follow from each other."""
    joined = frozenset(graph.names[each] for each in before)
    before_it, with_it = (
        sum(math.log(each.selectivity) for each in graph.counted(streams))
        for streams in (joined, joined | {graph.names[joined_stream]})
    )
    return math.exp(with_it - before_it)


class Model(NamedTuple):
    """A join graph under one measure, in logarithms, as planners and their kernels use it."""

    rate: Floats
    size: Floats  # of each window
    selectivity: Floats  # between every two streams
    probe: Floats  # [i, j]: the cost of probing stream i for a tuple that holds j and no other stream that i joins with
    summed: bool  # a probe costs the tuples that it produces; otherwise the least of `probe` over the streams before
    joinable: Booleans  # which streams may follow which: by a predicate; all, if the graph is disconnected


def model(graph: JoinGraph, measure: Measure | str) -> Model:
    """The arrays of a graph under a measure."""
    joinable = graph.adjacent if graph.connected else ~np.eye(len(graph.streams), dtype=np.bool_)
    return model_of(np.log(graph.rates), np.log(graph.sizes), np.log(graph.selectivities), joinable, Measure(measure))


def model_of(rate: Floats, size: Floats, selectivity: Floats, joinable: Booleans, measure: Measure) -> Model:
    """A model from the logarithms of statistics."""
    matches = size[:, None] + selectivity
    probe = {
        Measure.PAIRS: np.repeat(size[:, None], size.size, axis=1),
        Measure.TUPLES: matches,
        Measure.INDEXED: np.logaddexp(0.0, matches),
    }[measure]
    return Model(rate, size, selectivity, probe, measure is Measure.TUPLES, joinable)


def redundancy(graph: JoinGraph) -> Floats:
    """For each set of streams, as bits, by how much the product over pairs counts too little: a logarithm.

    >>> graph = JoinGraph.from_text("A.k = B.k AND B.k = C.k", equalities="closed")
    >>> np.exp(redundancy(graph)).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0]
    """
    if len(graph.streams) > MOST_REDUNDANT:
        raise ValueError(
            f"equalities that follow from others are counted for every set of at most {MOST_REDUNDANT} streams, not "
            f"{len(graph.streams)}; use reduced equalities, or tree-opt or q-aware"
        )
    sets = np.arange(1 << len(graph.streams))
    missing = np.zeros(sets.size)
    pairs = np.log(graph.selectivities)
    for left, right in np.argwhere(np.triu(graph.adjacent)).tolist():
        missing[(sets >> left) & (sets >> right) & 1 == 1] -= pairs[left, right]
    attributes = sorted({each for predicate in graph.predicates if predicate.equality for each in predicate.equality})
    group = np.repeat(np.arange(len(attributes), dtype=np.int16)[:, None], sets.size, axis=1)  # [attribute, set]
    for predicate in sorted(
        graph.predicates, key=lambda predicate: -predicate.selectivity
    ):  # as `JoinGraph.counted`, all sets at once
        counts = (sets >> graph.position(predicate.left)) & (sets >> graph.position(predicate.right)) & 1 == 1
        if predicate.equality:
            left_group, right_group = (group[attributes.index(each)].copy() for each in predicate.equality)
            counts &= left_group != right_group
            group = np.where(counts & (group == right_group), left_group, group)
        missing[counts] += math.log(predicate.selectivity)
    return missing


def log_costs(model: Model, sequences: Integers) -> Floats:
    """The logarithm of the probe cost of each order, an order a row."""
    return np.array([_log_cost(model, sequence) for sequence in sequences])


def cheapest(model: Model, *choices: Integers) -> Integers:
    """For each stream, the cheapest of its orders among several choices; of equals the first."""
    best = np.argmin([log_costs(model, sequences) for sequences in choices], axis=0)
    chosen: Integers = np.stack(choices)[best, np.arange(model.size.size)]
    return chosen


def _log_cost(model: Model, sequence: Integers) -> float:
    among = np.ix_(sequence, sequence)
    growth = model.size[sequence] + np.tril(model.selectivity[among], -1).sum(axis=1)
    growth[0] = model.rate[sequence[0]]
    tuples = growth.cumsum()
    if model.summed:
        steps = tuples[1:]
    else:
        before = np.tri(sequence.size, k=-1, dtype=np.bool_)
        steps = tuples[:-1] + np.where(before, model.probe[among], np.inf).min(axis=1)[1:]
    return float(np.logaddexp.reduce(steps)) if steps.size else -np.inf
