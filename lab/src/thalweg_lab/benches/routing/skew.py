"""skew: eight predicates of 5 µs a row and the strongest skew of table 6, A/B = 5/100."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.benches.filters.work import bytes_of, predicates_of
from thalweg_lab.benches.routing.classes import (
    ALL_COLUMNS,
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

NAME = "skew"
ROWS, ROUNDS = 600_000, 5
A, B = 0.05, 1.0


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Evaluations and time against one adaptive order, learning included."""
    load = round(bytes_of(PREDICATE_SECONDS))
    routed = Routed(predicates_of([ByClass(number, load, A, B) for number in range(OPERATORS)]))
    contenders = {
        THALWEG: routed.by(THALWEG, "auto"),
        AGAIN: routed.by(AGAIN, "auto"),
        ONE_ORDER: routed.by(ONE_ORDER, None),
    }
    note = f"{rows:,} rows, cold, {OPERATORS} predicates of 5 µs, A/B = 5/100, route_by='auto' among six columns"
    frame, small = rows_of_classes(spark, rows), rows_of_classes(spark, rows // 20)
    found = compete(NAME, frame, contenders, rounds, tick, note, small=small, checksum=ALL_COLUMNS)
    fewer, each = routed.fewer(THALWEG, ONE_ORDER)
    return [
        at_least(NAME, f"per cent fewer evaluations than {ONE_ORDER}", fewer, 60, f"{note}; last round; {each}"),
        found.faster(ONE_ORDER, 2),
        found.control(),
    ]
