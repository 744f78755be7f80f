"""native-worst: two regexes and a comparison that Spark evaluates, written in the worst order."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "native-worst"
ROWS, ROUNDS = 20_000_000, 5
COLUMNS = ("id", "id % 1000 as a", "concat('user-', id, '@example.org') as s")
WRITTEN = (  # by falling cost for a row dropped
    "s rlike '(u|s|e|r|-|[0-9])+@.*[.]org$'",  # slow, keeps all
    "s rlike '^user-[0-9]*7@'",  # quicker, keeps a tenth
    "a > 900",  # keeps a tenth
)

PLAIN, BEST = "plain Spark", "plain Spark in the best order"
WARM, WARM_AGAIN = "Thalweg, warm", "Thalweg, warm again"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Cold, with the sample in its time, and warm, against plain Spark as written and in the best order."""
    import thalweg as tw

    frame = spark.range(0, rows, 1, 2).selectExpr(*COLUMNS)
    with tempfile.TemporaryDirectory() as state:
        tw.where(frame, *WRITTEN, state=state, sample=True).count()

        def cold(frame: DataFrame) -> DataFrame:
            return tw.where(frame, *WRITTEN)

        def warm(frame: DataFrame) -> DataFrame:
            return tw.where(frame, *WRITTEN, state=state)

        contenders = {
            THALWEG: cold,
            AGAIN: cold,
            WARM: warm,
            WARM_AGAIN: warm,
            PLAIN: lambda frame: frame.where(" AND ".join(WRITTEN)),
            BEST: lambda frame: frame.where(" AND ".join(reversed(WRITTEN))),
        }
        note = f"{rows:,} rows, written {' AND '.join(WRITTEN)}"
        found = compete(NAME, frame, contenders, rounds, tick, note)
    return [
        found.faster(PLAIN, 5),
        found.faster(PLAIN, 10, WARM),
        found.faster(BEST, 0.9, WARM),
        found.control(),
        found.control(WARM, WARM_AGAIN),
    ]
