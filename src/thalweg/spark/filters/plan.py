"""How a query's predicates run: a frozen value that can be printed, compared, and lowered to Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from thalweg.spark.filters.forms import Form, Place

if TYPE_CHECKING:
    from thalweg.spark.filters.branching import Branching
    from thalweg.spark.filters.evidence import Evidence


@dataclass(frozen=True)
class Stage:
    """Neighbours in the order that run in the same place."""

    place: Place
    predicates: tuple[int, ...]


@dataclass(frozen=True)
class FilterPlan:
    """How the predicates of a query run, and why so."""

    order: tuple[int, ...]
    stages: tuple[Stage, ...]
    why: str
    member_orders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # of disjunctions in Spark
    branchings: tuple[Branching, ...] = ()  # of conditions in Spark, by class
    attributes: tuple[str, ...] = ()  # columns that go to Python to tell classes apart
    evidence: Evidence | None = None


def stages_of(order: Sequence[int], forms: Sequence[Form]) -> tuple[Stage, ...]:
    """The order cut where the place changes; every join is a stage of its own."""
    return tuple(
        Stage(place, part)
        for place, group in groupby(order, key=lambda number: forms[number].place)
        for part in ([(number,) for number in group] if place is Place.JOIN else [tuple(group)])
    )
