"""The base class of all planners: a planner chooses a probe order for each stream of a join graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from thalweg.joinorder.cost import Cost, Measure, order_cost
from thalweg.joinorder.graph import JoinGraph
from thalweg.kernels import JOINORDER, count_handled
from thalweg.ordering.types import Booleans, Integers

STEPS_PER_PROFILE_TUPLE = 40  # the unit in which `count_handled` counts: a plain step of a planner takes about 1 µs


@dataclass(frozen=True)
class Orders:
    """For each stream of a join graph, the order in which its new tuples probe the others."""

    graph: JoinGraph
    measure: Measure
    planner: str
    algorithm: str  # the algorithm that the planner used
    sequences: tuple[tuple[int, ...], ...]  # for each stream: itself, then the streams it probes

    def __getitem__(self, name: str) -> tuple[str, ...]:
        """The streams that a stream's new tuples probe, in order."""
        return tuple(self.graph.names[stream] for stream in self.sequences[self.graph.position(name)][1:])

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The cost of each stream's probes, a second."""
        return tuple(self.cost(name).probe for name in self.graph.names)

    @property
    def total(self) -> float:
        """The cost of all probes, a second (equation 3, the part that depends on the orders)."""
        return sum(self.costs)

    def cost(self, name: str) -> Cost:
        """The cost of a stream's new tuples, a second: inserts, purges and probes."""
        return order_cost(self.graph, (name, *self[name]), self.measure)

    def __str__(self) -> str:
        lines = (f"{name} → {' → '.join(self[name])}" for name in self.graph.names)
        return "\n".join(f"{line}  ({cost:.4g} {self.measure}/s)" for line, cost in zip(lines, self.costs, strict=True))


class Planner(ABC):
    """Chooses probe orders. Concrete planners say how."""

    name: ClassVar[str]
    knows_redundancy: ClassVar[bool] = False  # whether `sequences` counts equalities that follow from others right

    def plan(self, graph: JoinGraph, measure: Measure | str = Measure.TUPLES) -> Orders:
        """A probe order for every stream of the graph; where equalities are redundant, of the graph seen from it."""
        kind = Measure(measure)
        if graph.redundant and not self.knows_redundancy:
            each = [self.sequences(graph.seen_from(name), kind)[start] for start, name in enumerate(graph.names)]
            sequences = np.array(each, np.int64)
        else:
            sequences = self.sequences(graph, kind)
        return Orders(graph, kind, self.name, self.name, tuple(map(tuple, sequences.tolist())))

    @abstractmethod
    def sequences(self, graph: JoinGraph, measure: Measure) -> Integers:
        """The orders: a row for each stream, which begins with the stream."""


def is_legal(joinable: Booleans, sequence: Integers) -> bool:
    """Whether every stream of an order has a predicate with a stream before it: there is no Cartesian product."""
    joined: Booleans = np.tril(joinable[np.ix_(sequence, sequence)], -1)
    return bool(joined[1:].any(axis=1).all())


def count_steps(steps: int) -> None:
    """Note how many steps a planner's kernel is about to take, so that kernels are compiled once that pays."""
    count_handled(steps // STEPS_PER_PROFILE_TUPLE, JOINORDER)
