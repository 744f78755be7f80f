"""session: `tw.Session` with one to eight standing queries over a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.micro_batches import Stream, measured
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "session"
QUERIES, HELD_OUT = (1, 8), 4
GROUPS = 50


def measure(spark: SparkSession, tick: Tick) -> list[Result]:
    """The costs of sessions."""
    return measured(NAME, spark, tick, start, QUERIES, HELD_OUT)


def start(spark: SparkSession, stream: Stream, rows: int, queries: int, folder: str) -> StreamingQuery:
    """Start a session."""
    session = tw.Session(spark, checkpoint=f"{folder}/session")
    keyed = stream(rows).selectExpr("timestamp AS ts", "value", f"value % {GROUPS} AS k")
    session.stream("S", keyed, event_time="ts")
    for number in range(queries):
        text = f"SELECT k, count(*) AS n FROM S WHERE k > {number} GROUP BY k WINDOW [2 seconds]"  # noqa: S608 - ours
        session.query(text, to=discard)
    return session.start(availableNow=True)


def discard(_results: DataFrame, _number: int) -> None:
    """Take results, and do nothing with them."""
