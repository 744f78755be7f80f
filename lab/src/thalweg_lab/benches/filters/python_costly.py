"""python-costly: six independent Python predicates of cost 40:4:20:2:10:1, written in the worst order."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete, part_of
from thalweg_lab.benches.filters.work import InOrder, Test, bytes_of, expected_cost, predicates_of, tests_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "python-costly"
ROWS, ROUNDS, FAR_ROUNDS = 500_000, 11, 3  # more rounds for contenders that are close
UNIT_SECONDS = 0.35e-6
COSTS = (40, 4, 20, 2, 10, 1)
KEEPS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)

CONJUNCTION = "plain & of Arrow UDFs"
CHAIN = "the best chain of iterator UDFs"
WRITTEN = "the chain as written"
BY_HAND, AS_WRITTEN = "the fused optimum, by hand", "the fused optimum, as-written"


def worst_and_best() -> tuple[list[Test], list[Test]]:
    """The tests in the order that costs most, and in the order that costs least."""
    cost = partial(expected_cost, costs=COSTS, keeps=KEEPS)
    tests = tests_of(COSTS, KEEPS, bytes_of(UNIT_SECONDS))
    orders = list(permutations(range(len(tests))))
    return [tests[number] for number in max(orders, key=cost)], [tests[number] for number in min(orders, key=cost)]


def note_on(rows: int) -> str:
    """What to know of the measured times."""
    return f"{rows:,} rows, cold, written worst first, a cost of 1 is about {UNIT_SECONDS * 1e6} µs"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Against `&`, against chains in the worst and the best order, and against the best order fused."""
    import thalweg as tw

    worst, best = worst_and_best()
    written, ideal = predicates_of(worst), predicates_of(best)

    def thalweg(frame: DataFrame) -> DataFrame:
        return tw.where(frame, *written)

    far = {
        THALWEG: thalweg,
        CONJUNCTION: lambda frame: plain.conjunction(frame, worst),
        WRITTEN: lambda frame: plain.chain(frame, worst),
    }
    close = {
        THALWEG: thalweg,
        AGAIN: thalweg,
        CHAIN: lambda frame: plain.chain(frame, best),
        BY_HAND: lambda frame: plain.chain(frame, [InOrder(best)]),
        AS_WRITTEN: lambda frame: tw.where(frame, *ideal, policy="as-written"),
    }
    note = note_on(rows)
    frame, small = spark.range(0, rows, 1, 2), spark.range(0, rows // 20, 1, 2)

    slow = compete(NAME, frame, far, min(rounds, FAR_ROUNDS), part_of(tick, 0, 2), note, small=small)
    found = compete(NAME, frame, close, rounds, part_of(tick, 1, 2), note, small=small)
    return [
        slow.faster(CONJUNCTION, 5),
        slow.faster(WRITTEN, 1),
        found.faster(CHAIN, 1.1),
        found.faster(found.best(BY_HAND, AS_WRITTEN), 0.95),
        found.control(),
    ]
