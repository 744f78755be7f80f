"""The join graph: streams with rate and window, predicates with selectivity, and the shape they form.

Built from statistics or from the text of a join condition. Predicates are taken to be independent
(q-aware-join-ordering-2009, section 2.1): the selectivities of several predicates between two streams multiply.
Equalities that follow from each other are the exception: of `R1.a = R2.a`, `R2.a = R3.a` and `R1.a = R3.a` only the two
with the greatest selectivities count (`JoinGraph.counted`, decision 0015).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from thalweg.joinorder.text import Equalities, Equality, chosen, classes, parse_condition, reduced
from thalweg.ordering.types import Booleans, Floats

DEFAULT_SELECTIVITY = 0.1  # of an equality about which nothing is known, since System R


class GraphShape(StrEnum):
    """The shape of a join graph: the first that fits (two streams are linear, a triangle is complete)."""

    DISCONNECTED = "disconnected"
    LINEAR = "linear"
    STAR = "star"
    ACYCLIC = "acyclic"
    COMPLETE = "complete"
    CYCLIC = "cyclic"


@dataclass(frozen=True)
class JoinStream:
    """A stream: tuples a second, and for how many seconds each is kept."""

    name: str
    rate: float
    window: float = 1.0

    def __post_init__(self) -> None:
        for quantity, value in (("rate", self.rate), ("window", self.window)):
            if not 0.0 < value < math.inf:
                raise ValueError(f"the {quantity} of {self.name} is a number above 0, not {value}")
        if not 0.0 < self.rate * self.window < math.inf:
            raise ValueError(f"the window of {self.name} holds rate × window tuples, which is beyond all numbers")


@dataclass(frozen=True)
class JoinPredicate:
    """A join predicate between two streams, and which share of all pairs of tuples it holds for."""

    left: str
    right: str
    selectivity: float
    text: str = ""
    equality: Equality | None = None  # of attributes, if known: then it may follow from other equalities

    def __post_init__(self) -> None:
        if self.left == self.right:
            raise ValueError(
                f"a predicate joins {self.left} with itself; a self-join needs two streams: list {self.left} twice, "
                f"under two names"
            )
        if not 0.0 < self.selectivity <= 1.0:
            raise ValueError(
                f"the selectivity of {self} is above 0 and at most 1, not {self.selectivity}; it is the share of all "
                f"pairs of tuples that match"
            )

    def __str__(self) -> str:
        return self.text or f"{self.left} ⋈ {self.right}"


@dataclass(frozen=True)
class JoinGraph:
    """Streams and the predicates between them.

    >>> graph = JoinGraph.from_statistics(
    ...     rates={"R1": 75.36, "R2": 40.0, "R3": 53.94},
    ...     selectivities={("R1", "R3"): 0.26, ("R2", "R3"): [0.5, 0.2]},
    ... )
    >>> print(graph.draw())
    linear join of 3 streams
    R1  75.36/s × 1 s
    └─ 0.26 ─ R3  53.94/s × 1 s
       └─ 0.1 ─ R2  40/s × 1 s
    """

    streams: tuple[JoinStream, ...]
    predicates: tuple[JoinPredicate, ...]

    def __post_init__(self) -> None:
        if not self.streams:
            raise ValueError("a join graph needs streams")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ValueError(f"each stream needs a name of its own; {', '.join(twice)} appears more than once")
        if len(self.streams) > 1 and not self.predicates:
            raise ValueError("there are no join predicates; give at least one predicate")
        for predicate in self.predicates:
            for name in (predicate.left, predicate.right):
                self.position(name)

    @classmethod
    def from_statistics(
        cls,
        rates: Mapping[str, float],
        selectivities: Mapping[tuple[str, str], float | Sequence[float]],
        windows: float | Mapping[str, float] = 1.0,
    ) -> Self:
        """A join graph from known numbers; several selectivities for a pair are several predicates.

        >>> JoinGraph.from_statistics({"A": 1.0, "B": 2.0}, {("A", "B"): 0.5}, windows={"A": 10.0, "B": 60.0}).shape
        <GraphShape.LINEAR: 'linear'>
        """
        return cls(
            tuple(JoinStream(name, rate, _of(windows, name, "window")) for name, rate in rates.items()),
            tuple(
                JoinPredicate(left, right, selectivity)
                for (left, right), each in selectivities.items()
                for selectivity in ([each] if isinstance(each, int | float) else each)
            ),
        )

    @classmethod
    def from_text(
        cls,
        condition: str,
        rates: float | Mapping[str, float] = 1.0,
        selectivities: float | Mapping[str, float] = DEFAULT_SELECTIVITY,
        windows: float | Mapping[str, float] = 1.0,
        equalities: Equalities | str = Equalities.REDUCED,
    ) -> Self:
        """A join graph from the text of a join condition.

        `selectivities` are given for each equality by its text, or one number for all. The closed equalities give more
        orders than the reduced equalities, the default, and take longer to plan. An equality that follows from others
        and has no selectivity of its own takes the greatest of its class, so that it promises no more than is known.

        >>> text = "R1.pid = R2.pid AND R2.pid = R3.pid"
        >>> JoinGraph.from_text(text, rates={"R1": 5, "R2": 7, "R3": 9}, selectivities={
        ...     "R1.pid = R2.pid": 0.1, "R3.pid = R2.pid": 0.2}).shape
        <GraphShape.LINEAR: 'linear'>
        >>> closed = JoinGraph.from_text(text, equalities="closed")
        >>> closed.shape, len(closed.predicates)
        (<GraphShape.COMPLETE: 'complete'>, 3)
        """
        written = parse_condition(condition)
        wanted = chosen(written, equalities)
        names = list(rates) if isinstance(rates, Mapping) else _streams(written)
        for equality in written:
            for stream, _ in equality:
                _known(stream, names)
        return cls(
            tuple(JoinStream(name, _of(rates, name, "rate"), _of(windows, name, "window")) for name in names),
            tuple(_predicates(wanted, written, selectivities)),
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The streams' names."""
        return tuple(stream.name for stream in self.streams)

    @cached_property
    def rates(self) -> Floats:
        """Tuples a second of each stream."""
        return np.array([stream.rate for stream in self.streams], np.float64)

    @cached_property
    def sizes(self) -> Floats:
        """Tuples in each stream's window."""
        return self.rates * np.array([stream.window for stream in self.streams], np.float64)

    @cached_property
    def selectivities(self) -> Floats:
        """The selectivity between every two streams: the product over their predicates, 1 where there is none."""
        matrix = np.ones((len(self.streams), len(self.streams)))
        for predicate in self._counted_between_pairs() if self.redundant else self.predicates:
            left, right = self.position(predicate.left), self.position(predicate.right)
            product = max(
                matrix[left, right] * predicate.selectivity, sys.float_info.min
            )  # never 0, however many multiply
            matrix[left, right] = matrix[right, left] = product
        return matrix

    @cached_property
    def adjacent(self) -> Booleans:
        """Whether there is a predicate between two streams."""
        matrix = np.zeros((len(self.streams), len(self.streams)), np.bool_)
        for predicate in self.predicates:
            left, right = self.position(predicate.left), self.position(predicate.right)
            matrix[left, right] = matrix[right, left] = True
        return matrix

    @cached_property
    def connected(self) -> bool:
        """Whether predicates connect all streams, so that no order needs a Cartesian product."""
        return len(self.components) == 1

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """The streams that predicates connect with each other: all of them, if the join is connected."""
        found: list[tuple[str, ...]] = []
        for _, parent, stream in self._walk():
            name = self.names[stream]
            if parent < 0:
                found.append((name,))
            else:
                found[-1] += (name,)
        return tuple(found)

    @cached_property
    def shape(self) -> GraphShape:
        """Linear, star, acyclic, cyclic, complete or disconnected."""
        degrees = self.adjacent.sum(axis=0)
        streams, edges = len(self.streams), int(degrees.sum()) // 2
        if not self.connected:
            return GraphShape.DISCONNECTED
        if edges == streams - 1:
            if degrees.max() <= 2:  # noqa: PLR2004 - a path has at most two neighbours everywhere
                return GraphShape.LINEAR
            return GraphShape.STAR if degrees.max() == streams - 1 else GraphShape.ACYCLIC
        return GraphShape.COMPLETE if edges == streams * (streams - 1) // 2 else GraphShape.CYCLIC

    @property
    def acyclic(self) -> bool:
        """Whether the predicates form one tree."""
        return self.shape in {GraphShape.LINEAR, GraphShape.STAR, GraphShape.ACYCLIC}

    @cached_property
    def redundant(self) -> bool:
        """Whether some equalities follow from others."""
        equalities = [predicate.equality for predicate in self.predicates if predicate.equality]
        return len(reduced(equalities)) < len(equalities)

    def counted(self, streams: frozenset[str]) -> tuple[JoinPredicate, ...]:
        """The predicates that decide how many tuples a join of some streams makes.

        Of equalities that follow from each other only as many count as are needed to imply the others, namely the
        equalities with the greatest selectivities. That is right where each stream's values are contained in the values
        of the stream that has more of them, and does not depend on an order (Swami and Schiefer's rule; decision 0015).

        >>> text = "A.k = B.k AND B.k = C.k AND A.k = C.k"
        >>> sel = {"A.k = B.k": 0.01, "B.k = C.k": 0.001, "A.k = C.k": 0.001}
        >>> graph = JoinGraph.from_text(text, 1.0, sel, equalities="written")
        >>> [str(predicate) for predicate in graph.counted(frozenset("ABC"))]
        ['A.k = B.k', 'B.k = C.k']
        """
        return _counted(
            predicate for predicate in self.predicates if predicate.left in streams and predicate.right in streams
        )

    def _counted_between_pairs(self) -> Iterator[JoinPredicate]:
        """The predicates that count between each two streams."""
        pairs: dict[frozenset[str], list[JoinPredicate]] = {}
        for predicate in self.predicates:
            pairs.setdefault(frozenset((predicate.left, predicate.right)), []).append(predicate)
        for between in pairs.values():
            yield from _counted(between)

    def seen_from(self, name: str) -> Self:
        """The graph without redundant equalities: of each class the equalities nearest to a stream are kept.

        Where the stream's orders enter a class of equal attributes through one of its streams, every other stream of
        the class can follow at once: nothing is lost but the redundancy.

        >>> graph = JoinGraph.from_text("A.k = B.k AND B.k = C.k", equalities="closed")
        >>> [str(predicate) for predicate in graph.seen_from("C").predicates]
        ['B.k = C.k', 'A.k = C.k']
        """
        if not self.redundant:
            return self
        distance = {name: 0}
        waiting = [name]
        for near in waiting:  # grows while it is read
            for other in np.flatnonzero(self.adjacent[self.position(near)]).tolist():
                if self.names[other] not in distance:
                    distance[self.names[other]] = distance[near] + 1
                    waiting.append(self.names[other])
        far = len(self.streams)
        nearest = sorted(
            self.predicates,
            key=lambda each: (min(distance.get(each.left, far), distance.get(each.right, far)), -each.selectivity),
        )
        return replace(self, predicates=_without_redundant(nearest))

    def position(self, name: str) -> int:
        """The number of a stream."""
        return self.names.index(_known(name, self.names))

    def draw(self) -> str:
        """The graph as text: a tree of streams, then the predicates that close cycles.

        >>> print(JoinGraph.from_text("A.k = B.k AND B.l = C.l AND C.m = A.m AND C.n = D.n"))
        cyclic join of 4 streams
        A  1/s × 1 s
        └─ 0.1 ─ B  1/s × 1 s
           └─ 0.1 ─ C  1/s × 1 s
              └─ 0.1 ─ D  1/s × 1 s
        and A ─ 0.1 ─ C
        """
        lines = [f"{self.shape} join of {len(self.streams)} stream{'s' * (len(self.streams) > 1)}"]
        walk = list(self._walk())
        open_at: list[bool] = []  # for each depth, whether the branch goes on below
        for place, (depth, parent, stream) in enumerate(walk):
            label = "{0.name}  {0.rate:g}/s × {0.window:g} s".format(self.streams[stream])
            if parent < 0:
                lines.append(label)
                continue
            below = (each for each, *_ in walk[place + 1 :])
            last = next((each for each in below if each <= depth), 0) != depth
            open_at[depth - 1 :] = [not last]
            stem = "".join("│  " if more else "   " for more in open_at[: depth - 1])
            selectivity = self.selectivities[parent, stream]
            lines.append(f"{stem}{'└' if last else '├'}─ {selectivity:g} ─ {label}")
        tree = {frozenset((parent, stream)) for _, parent, stream in walk}
        for left, right in np.argwhere(np.triu(self.adjacent)).tolist():
            if {left, right} not in tree:
                lines.append(f"and {self.names[left]} ─ {self.selectivities[left, right]:g} ─ {self.names[right]}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.draw()

    def _walk(self) -> Iterator[tuple[int, int, int]]:
        """All streams, depth first: depth, parent and stream; the parent is -1 where a component begins."""
        neighbours = [np.flatnonzero(row).tolist() for row in self.adjacent]
        seen: set[int] = set()
        for root in range(len(self.streams)):
            waiting = [(0, -1, root)]
            while waiting:
                depth, parent, stream = waiting.pop()
                if stream not in seen:
                    seen.add(stream)
                    yield depth, parent, stream
                    waiting += [(depth + 1, stream, other) for other in reversed(neighbours[stream])]


def _counted(predicates: Iterable[JoinPredicate]) -> tuple[JoinPredicate, ...]:
    return _without_redundant(sorted(predicates, key=lambda predicate: -predicate.selectivity))


def _without_redundant(predicates: Sequence[JoinPredicate]) -> tuple[JoinPredicate, ...]:
    """The predicates that do not follow from the predicates before them."""
    waiting = list(reversed(reduced(predicate.equality for predicate in predicates if predicate.equality)))
    kept = []
    for predicate in predicates:
        if predicate.equality is None:
            kept.append(predicate)
        elif waiting and waiting[-1] == predicate.equality:
            kept.append(predicate)
            waiting.pop()
    return tuple(kept)


def _predicates(
    wanted: Sequence[Equality], written: Sequence[Equality], selectivities: float | Mapping[str, float]
) -> Iterator[JoinPredicate]:
    known: dict[Equality, float] = {}
    if isinstance(selectivities, Mapping):
        for text, selectivity in selectivities.items():
            [equality] = parse_condition(text)
            if equality not in wanted and equality not in written:
                raise ValueError(f"the join condition has no {str(equality)!r}; it has {', '.join(map(str, wanted))}")
            known[equality] = selectivity
    else:
        known = dict.fromkeys(written, selectivities)
    groups = classes(written)
    for equality in wanted:
        if equality not in known and equality in written:
            raise ValueError(f"what is the selectivity of {str(equality)!r}? Add it to the selectivities")
        group = next(group for group in groups if equality.left in group)
        selectivity = known[equality] if equality in known else max(known[each] for each in known if each.left in group)
        yield _predicate(equality, selectivity)


def _predicate(equality: Equality, selectivity: float) -> JoinPredicate:
    return JoinPredicate(equality.left.stream, equality.right.stream, selectivity, str(equality), equality)


def _streams(equalities: Sequence[Equality]) -> list[str]:
    """The streams that equalities speak of, by name."""
    return sorted({attribute.stream for equality in equalities for attribute in equality})


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        raise ValueError(f"there is no stream {name!r}{hint} Streams: {', '.join(names)}")
    return name


def _of(values: float | Mapping[str, float], name: str, quantity: str) -> float:
    """The value for a stream, from a single value for all streams or a value for each."""
    if not isinstance(values, Mapping):
        return float(values)
    if name not in values:
        raise ValueError(f"what is the {quantity} of {name}? Add it to the {quantity}s")
    return float(values[name])
