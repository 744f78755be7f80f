"""decoys: which classifier is in use where the skew is weaker, and five other columns tell nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.filters.work import bytes_of, predicates_of
from thalweg_lab.benches.routing.classes import (
    CLASSIFIER,
    DECOYS,
    ONE_ORDER,
    OPERATORS,
    PREDICATE_SECONDS,
    ByClass,
    Routed,
    rows_of_classes,
)
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "decoys"
ROWS, ROUNDS = 1_000_000, 2
A, B = 0.25, 0.79  # of table 6
CLASSES = "classes"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """The share of the rows, once a classifier was first in use, that the right classifier routes."""
    load = round(bytes_of(PREDICATE_SECONDS))
    routed = Routed(predicates_of([ByClass(number, load, A, B) for number in range(OPERATORS)]))
    frame = rows_of_classes(spark, rows)
    names = [CLASSIFIER, *DECOYS]
    expected = routed.by(ONE_ORDER, None)(frame).selectExpr("count(*)", "sum(id)").collect()
    right = after = learning = 0
    for done in range(rounds):
        tick(done, rounds)
        if routed.by(CLASSES, names)(frame).selectExpr("count(*)", "sum(id)").collect() != expected:
            raise AssertionError(f"{NAME}: classes kept other rows than one order")
        about = routed.explained(CLASSES)
        parts = [part for stage in about["routing"]["stages"] for part in stage["rows_by"]]
        right += sum(part["rows"] for part in parts if part["attributes"] == [CLASSIFIER])
        after += sum(part["rows"] for part in parts)
        learning += about["rows"] - sum(part["rows"] for part in parts)
    tick(rounds, rounds)
    fewer, each = routed.fewer(CLASSES, ONE_ORDER)
    note = (
        f"{rounds} cold runs of {rows:,} rows, A/B = 25/79, decoys {', '.join(DECOYS)}; {learning / rounds:,.0f} rows "
        f"a run until the first classifier; {fewer:.0f}% fewer evaluations {each}"
    )
    share = 100 * right / after if after else 0.0
    return [at_least(NAME, "per cent of the rows after learning by the right classifier", share, 98, note)]
