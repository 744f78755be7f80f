"""native: eight conditions that Spark evaluates, each of which rejects one class of rows."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.benches.routing.classes import CLASS_OF, CLASSIFIER, OPERATORS, Routed
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "native"
ROWS, ROUNDS = 3_000_000, 5
KEPT = 5  # per cent of the rows of its class that a condition keeps
ONE_ORDER = "one order from a sample"
WARM, WARM_AGAIN = "Thalweg, warm", "Thalweg, warm again"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """One branch for each class against one order: cold, with the sample in its time, and warm."""
    marks = [
        f"if({CLASSIFIER} = {number} and pmod(xxhash64(id, {number}), 100) >= {KEPT}, 'x', 'o')"
        for number in range(OPERATORS)
    ]
    frame = (
        spark.range(0, rows, 1, 2)
        .selectExpr("cast(id as int) as id", f"cast({CLASS_OF} as int) as {CLASSIFIER}")
        .selectExpr("id", CLASSIFIER, f"concat('user-', {', '.join(marks)}, '@example.org') as s")
        .cache()
    )
    before = (f"[ox]{{{number}}}" for number in range(OPERATORS))
    conditions = [f"s rlike '^(u|s|e|r|-)+{mark}o.*[.]org$'" for mark in before]
    routed = Routed(list(conditions))
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as plain:
        routed.by(WARM, "auto", state=warm, sample=True)(frame)
        routed.by(ONE_ORDER, None, state=plain, sample=True)(frame)
        contenders = {
            THALWEG: routed.by(THALWEG, "auto", sample=True),
            AGAIN: routed.by(AGAIN, "auto", sample=True),
            ONE_ORDER: routed.by(ONE_ORDER, None, sample=True),
            WARM: routed.by(WARM, "auto", state=warm),
            WARM_AGAIN: routed.by(WARM_AGAIN, "auto", state=warm),
            f"{ONE_ORDER}, warm": routed.by(f"{ONE_ORDER}, warm", None, state=plain),
        }
        note = f"{rows:,} cached rows, {OPERATORS} regexes, each keeps {KEPT}% of one class and all of the others"
        try:
            frame.count()
            found = compete(NAME, frame, contenders, rounds, tick, note)
        finally:
            frame.unpersist()
        stages = routed.explained(THALWEG)["routing"]["stages"]
    branches = sum(len(stage["classes"]) - 1 for stage in stages)
    return [
        at_least(NAME, "branches in the plan", branches, OPERATORS, note),
        found.faster(ONE_ORDER, 1.3),
        found.faster(f"{ONE_ORDER}, warm", 1.5, WARM),
        found.control(),
        found.control(WARM, WARM_AGAIN),
    ]
