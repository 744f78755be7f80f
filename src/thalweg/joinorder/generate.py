"""Random join graphs of a given shape, as in the paper's experiments (q-aware-join-ordering-2009, section 3.3)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from thalweg.joinorder.graph import GraphShape, JoinGraph, JoinPredicate, JoinStream

RATES = (1.0, 100.0)  # tuples a second, section 3.3
MOST_STREAMS, LARGEST = 10_000, 1e100
SELECTIVITIES = (0.01, 1.0)  # the paper says "random"


def random_graph(
    shape: GraphShape | str,
    streams: int,
    random: np.random.Generator,
    rates: tuple[float, float] = RATES,
    selectivities: tuple[float, float] = SELECTIVITIES,
    window: float = 1.0,
) -> JoinGraph:
    """A graph of this shape, with rates and selectivities drawn uniformly between two bounds.

    With few streams a random acyclic graph may turn out linear or a star, and a random cyclic graph complete.

    >>> print(random_graph("star", 4, np.random.default_rng(1)))
    star join of 4 streams
    R1  51.6703/s × 1 s
    ├─ 0.318713 ─ R2  95.0959/s × 1 s
    ├─ 0.429093 ─ R3  15.2718/s × 1 s
    └─ 0.829426 ─ R4  94.9163/s × 1 s
    """
    if not 1 <= streams <= MOST_STREAMS:
        raise ValueError(f"a random graph has from 1 to {MOST_STREAMS:,} streams, not {streams}")
    for quantity, (low, high) in (("rates", rates), ("selectivities", selectivities)):
        if not 0 < low <= high <= LARGEST:
            raise ValueError(
                f"{quantity} are drawn between two positive numbers, the lower first, not {low} and {high}"
            )
    names = [f"R{number + 1}" for number in range(streams)]
    drawn = random.uniform(*rates, streams).tolist()
    return JoinGraph(
        tuple(JoinStream(name, rate, window) for name, rate in zip(names, drawn, strict=True)),
        tuple(
            JoinPredicate(names[left], names[right], random.uniform(*selectivities))
            for left, right in random_edges(GraphShape(shape), streams, random)
        ),
    )


def random_edges(shape: GraphShape, streams: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Pairs of streams that form the shape; in random shapes each stream is attached to an earlier stream."""
    every = list(combinations(range(streams), 2))
    match shape:
        case GraphShape.LINEAR:
            return [(stream - 1, stream) for stream in range(1, streams)]
        case GraphShape.STAR:
            return [(0, stream) for stream in range(1, streams)]
        case GraphShape.COMPLETE:
            return every
        case GraphShape.DISCONNECTED:
            return [(stream - 1, stream) for stream in range(1, streams - 1)]
    tree = [(int(random.integers(stream)), stream) for stream in range(1, streams)]
    if shape is GraphShape.ACYCLIC:
        return tree
    rest = sorted(set(every) - set(tree))
    more = random.choice(len(rest), random.integers(1, len(rest) + 1), replace=False).tolist() if rest else []
    return tree + [rest[stream] for stream in more]
