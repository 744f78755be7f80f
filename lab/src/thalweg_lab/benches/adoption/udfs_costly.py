"""udfs-costly: the predicates of python-costly as Arrow UDFs joined by `&`, in the worst order."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.python_costly import COSTS, KEEPS, UNIT_SECONDS
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete, part_of
from thalweg_lab.benches.filters.work import bytes_of, expected_cost, predicates_of, tests_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "udfs-costly"
ROWS, ROUNDS, FAR_ROUNDS = 500_000, 7, 3

BY_HAND, PLAIN = "tw.where with predicates by hand", "plain Spark"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """`tw.adapt` of a DataFrame that plain Spark's `where` made, against the same by hand, and against plain Spark."""
    import thalweg as tw

    tests = tests_of(COSTS, KEEPS, bytes_of(UNIT_SECONDS))
    worst = max(permutations(tests), key=lambda order: _cost([tests.index(test) for test in order]))
    by_hand = predicates_of(worst)

    def adapted(frame: DataFrame) -> DataFrame:
        return tw.adapt(plain.conjunction(frame, worst))

    far = {THALWEG: adapted, PLAIN: lambda frame: plain.conjunction(frame, worst)}
    close = {THALWEG: adapted, AGAIN: adapted, BY_HAND: lambda frame: tw.where(frame, *by_hand)}
    note = f"{rows:,} rows, Arrow UDFs joined by &, worst first, a cost of 1 is about {UNIT_SECONDS * 1e6} µs"
    frame, small = spark.range(0, rows, 1, 2), spark.range(0, rows // 20, 1, 2)
    slow = compete(NAME, frame, far, min(rounds, FAR_ROUNDS), part_of(tick, 0, 2), note, small=small)
    found = compete(NAME, frame, close, rounds, part_of(tick, 1, 2), note, small=small)
    return [slow.faster(PLAIN, 4), found.faster(BY_HAND, 0.95), found.control()]


_cost = partial(expected_cost, costs=COSTS, keeps=KEEPS)
