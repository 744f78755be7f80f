"""session: `tw.Session` with 1 to 100 standing queries over a stream, and rounds of a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.loaded_query import QueryKind, Setting
from thalweg_lab.benches.load.sweep import Effort, swept
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUERIES, HELD_OUT = (1, 10, 100), (30,)
EFFORT = Effort(rows=(10_000, 200_000), interval=2.0)
GROUPS = 50


def start(
    spark: SparkSession, frames: Sequence[DataFrame], setting: Setting, folder: str, trigger: dict[str, Any]
) -> StreamingQuery:
    """Start a session, whose results are moved into folders: a function would need a DataFrame for each query."""
    session = tw.Session(spark, checkpoint=f"{folder}/session")
    keyed = frames[0].selectExpr("timestamp AS ts", "value", f"value % {GROUPS} AS k")
    session.stream("S", keyed, event_time="ts")
    for number in range(setting.parts):
        text = f"SELECT k, count(*) AS n FROM S WHERE k > {number % GROUPS} GROUP BY k WINDOW [1 second]"  # noqa: S608 - ours
        session.query(text, to=f"{folder}/results/{number}")
    return session.start(**trigger)


SESSION = QueryKind("session", ("query", "queries"), start, gives_rounds=True)


def measure(spark: SparkSession, tick: Tick, *, effort: Effort = EFFORT) -> list[Result]:
    """The costs of sessions, and how their rate and latency change with the number of queries."""
    fitted, held_out = ([Setting(number) for number in numbers] for numbers in (QUERIES, HELD_OUT))
    return swept(spark, SESSION, fitted, held_out, effort, tick)
