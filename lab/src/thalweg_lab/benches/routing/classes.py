"""Rows of classes, as in tables 5 and 6 of content-based-routing-2004, and predicates of a known cost.

A row's class is a function of its number, which a column tells too; predicates know the number alone. In each class one
predicate keeps a share A of the rows and the others keep B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.ordering.types import Booleans, Integers
from thalweg_lab.benches.filters.race import Make
from thalweg_lab.benches.filters.work import burn
from thalweg_lab.hashed_rows import uniform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPERATORS = 8
CLASSIFIER = "attrC"
CLASS_OF = "(id ^ shiftright(id, 7) ^ shiftright(id, 13)) & 7"
DECOYS = {  # a constant, a sequence number and random foreign keys, as in section 7.3
    "constant": "7",
    "sequence": "id",
    "fk1": "pmod(xxhash64(id, 1), 10000)",
    "fk2": "pmod(xxhash64(id, 2), 100)",
    "fk3": "pmod(xxhash64(id, 3), 8)",
}
ONE_ORDER = "one A-Greedy order"
PREDICATE_SECONDS = 5e-6  # a row
ALL_COLUMNS = "bit_xor(xxhash64(*))"  # a checksum of kept rows that are used in full, as they mostly are


def class_of(rows: Integers) -> Integers:
    """The class of each row, as `CLASS_OF` has it.

    >>> class_of(np.array([0, 1, 129])).tolist()
    [0, 1, 0]
    """
    classes: Integers = (rows ^ (rows >> 7) ^ (rows >> 13)) & (OPERATORS - 1)
    return classes


@dataclass(frozen=True)
class ByClass:
    """Keeps a share A of the rows of one class, and B of the others.

    >>> test = ByClass(number=2, load=10, a=0.0, b=1.0)
    >>> test(np.arange(8)).tolist()
    [True, True, False, True, True, True, True, True]
    """

    number: int
    load: int  # bytes hashed a row
    a: float
    b: float

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        burn(rows.size * self.load)
        limits = np.where(class_of(rows) == self.number, self.a, self.b)
        return np.asarray(uniform(rows, self.number + 1) < limits)


def rows_of_classes(spark: SparkSession, rows: int, decoys: Mapping[str, str] = DECOYS) -> DataFrame:
    """So many rows in two partitions, with their class and some decoys."""
    columns = {CLASSIFIER: CLASS_OF, **decoys}
    return spark.range(0, rows, 1, 2).selectExpr(
        "id", *(f"cast({expression} as int) as {name}" for name, expression in columns.items())
    )


class Routed:
    """Ways to filter that differ in `route_by`; the last DataFrame of each is there to be explained."""

    def __init__(self, predicates: list[Any]) -> None:
        self.predicates = predicates
        self.kept: dict[str, DataFrame] = {}

    def by(self, name: str, route_by: Any, **options: Any) -> Make:  # noqa: ANN401 - as `tw.where` takes them
        """A contender."""
        import thalweg as tw

        def make(frame: DataFrame) -> DataFrame:
            self.kept[name] = tw.where(frame, *self.predicates, route_by=route_by, **options)
            return self.kept[name]

        return make

    def explained(self, name: str) -> dict[str, Any]:
        """The explanation of a contender's last run."""
        import thalweg as tw

        about: dict[str, Any] = tw.explain(self.kept[name]).to_dict()["wheres"][0]
        return about

    def evaluations(self, name: str) -> float:
        """Evaluations a row in the last run of a contender, profiling included."""
        about = self.explained(name)
        seen = sum(line["rows_seen"] for line in about["predicates"])
        return float((seen + about["profiling_evaluations"]) / about["rows"])

    def fewer(self, name: str, than: str) -> tuple[float, str]:
        """By how many per cent a contender evaluates less than another, and both numbers as a note."""
        mine, others = self.evaluations(name), self.evaluations(than)
        return 100 * (1 - mine / others), f"a row, profiling included: {mine:.2f}, {others:.2f} with {than}"
