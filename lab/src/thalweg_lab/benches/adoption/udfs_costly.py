"""udfs-costly: the predicates of python-costly as Arrow UDFs joined by `&`, in the worst order.

Each run makes its UDFs anew, which takes Spark some 10 ms each; the predicates by hand are made once. So there is a
second contender, whose UDFs are made once, too, as those of a module are.
"""

from __future__ import annotations

import operator
from functools import partial, reduce
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
TRIES = 3  # of contenders that are close: a slow moment of the machine is longer than a run

BY_HAND, PLAIN = "tw.where with predicates by hand", "plain Spark"
MADE_ONCE = "Thalweg with UDFs that are made once"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """`tw.adapt` of a DataFrame that plain Spark's `where` made, against the same by hand, and against plain Spark."""
    import thalweg as tw

    tests = tests_of(COSTS, KEEPS, bytes_of(UNIT_SECONDS))
    worst = max(permutations(tests), key=lambda order: _cost([tests.index(test) for test in order]))
    by_hand = predicates_of(worst)

    def adapted(frame: DataFrame) -> DataFrame:
        return tw.adapt(plain.conjunction(frame, worst))

    udfs = [plain.scalar(test) for test in worst]

    def adapted_again(frame: DataFrame) -> DataFrame:
        return tw.adapt(frame.where(reduce(operator.and_, (udf("id") for udf in udfs))))

    far = {THALWEG: adapted, PLAIN: lambda frame: plain.conjunction(frame, worst)}
    close = {
        THALWEG: adapted,
        AGAIN: adapted,
        MADE_ONCE: adapted_again,
        BY_HAND: lambda frame: tw.where(frame, *by_hand),
    }
    note = f"{rows:,} rows, Arrow UDFs joined by &, worst first, a cost of 1 is about {UNIT_SECONDS * 1e6} µs"
    frame, small = spark.range(0, rows, 1, 2), spark.range(0, rows // 20, 1, 2)
    slow = compete(NAME, frame, far, min(rounds, FAR_ROUNDS), part_of(tick, 0, 2), note, small=small)
    found = compete(NAME, frame, close, rounds, part_of(tick, 1, 2), note, small=small, tries=TRIES)
    return [
        slow.faster(PLAIN, 4),
        found.faster(BY_HAND, 0.95),
        found.faster(BY_HAND, 0.95, MADE_ONCE),
        found.control(),
    ]


_cost = partial(expected_cost, costs=COSTS, keeps=KEEPS)
