"""join: `tw.join` of two to four streams by one key, a match of each row in each of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.micro_batches import Stream, measured
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "join"
STREAMS, HELD_OUT = (2, 4), 3
NAMES = "ABCD"


def measure(spark: SparkSession, tick: Tick) -> list[Result]:
    """The costs of joins."""
    return measured(NAME, spark, tick, start, STREAMS, HELD_OUT)


def start(_spark: SparkSession, stream: Stream, rows: int, streams: int, folder: str) -> StreamingQuery:
    """Start a join of streams that have so many rows together."""
    names = NAMES[:streams]
    joined = tw.join(
        {name: stream(rows // streams) for name in names},
        on=" AND ".join(f"A.value = {name}.value" for name in names[1:]),
        windows="2 seconds",
        event_time="timestamp",
        delay="1 second",
        select=["A.value"],
    )
    writer = joined.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()
