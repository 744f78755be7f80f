"""no-skew: the same predicates where classes are alike, so that routing has to switch itself off."""

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
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "no-skew"
ROWS, ROUNDS = 1_200_000, 9
SHARE = 0.05 ** (1 / OPERATORS)  # that each keeps: 5% in all, as in table 6


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Time against one adaptive order."""
    load = round(bytes_of(PREDICATE_SECONDS))
    routed = Routed(predicates_of([ByClass(number, load, SHARE, SHARE) for number in range(OPERATORS)]))
    contenders = {
        THALWEG: routed.by(THALWEG, "auto"),
        AGAIN: routed.by(AGAIN, "auto"),
        ONE_ORDER: routed.by(ONE_ORDER, None),
    }
    note = (
        f"{rows:,} cached rows, cold, {OPERATORS} predicates of 5 µs that keep {SHARE:.0%} of every class, six columns"
    )
    frame, small = rows_of_classes(spark, rows).cache(), rows_of_classes(spark, rows // 20)
    try:
        frame.count()  # making the columns is no part of it
        found = compete(NAME, frame, contenders, rounds, tick, note, small=small, checksum=ALL_COLUMNS)
    finally:
        frame.unpersist()
    return [found.faster(ONE_ORDER, 0.98), found.control()]
