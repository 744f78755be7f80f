"""Three queries from topics of Kafka to topics of Kafka: a filter, a join and a session, until one of them fails.

A program of its own, so that a test can kill it, start it again and see whether a result is missing. The filter also
writes files, in which every row is exactly once.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np
from tests.fast_spark import fast_session

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_A_BATCH = 400
POLL_SECONDS = 0.5
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "id long, k long, v long, ts timestamp"


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


def start(spark: SparkSession, server: str, folder: str) -> list[StreamingQuery]:
    """Start the three queries."""

    def topic(name: str) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", server).option("subscribe", name)
        rows = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", ROWS_A_BATCH).load()
        return rows.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS row").select("row.*")

    def write(frame: DataFrame, name: str) -> StreamingQuery:
        packed = frame.selectExpr("to_json(struct(*)) AS value")
        writer = packed.writeStream.format("kafka").option("kafka.bootstrap.servers", server).option("topic", name)
        return writer.option("checkpointLocation", f"{folder}/{name}").start()

    def kept() -> DataFrame:
        return tw.where(topic("A"), is_odd, "v > 20", "k % 3 <> 0")

    files = kept().writeStream.format("parquet").option("checkpointLocation", f"{folder}/files")
    joined = tw.join(
        {"A": topic("A"), "B": topic("B")},
        on="A.k = B.k",
        windows="5 seconds",
        event_time="ts",
        delay="10 minutes",
        select=["A.id AS a", "B.id AS b"],
    )
    session = tw.Session(spark, checkpoint=f"{folder}/session")
    session.stream("A", topic("A"), event_time="ts", delay="10 minutes")
    session.query(
        "SELECT k, count(*) AS n, sum(v) AS total FROM A GROUP BY k WINDOW [10 seconds]",
        to=tw.Session.writer("kafka", topic="rounds", **{"kafka.bootstrap.servers": server}),
    )
    return [
        write(kept(), "kept"),
        files.start(f"{folder}/kept-files"),
        write(joined, "joined"),
        session.start(),
    ]


def main(server: str, folder: str, jars: str) -> None:
    with fast_session(
        "pipelines", **{"spark.jars": jars, "spark.sql.streaming.stateStore.providerClass": ROCKS}
    ) as spark:
        queries = start(spark, server, folder)
        while all(query.isActive for query in queries):
            time.sleep(POLL_SECONDS)
        for query in queries:
            if (error := query.exception()) is not None:
                raise error


if __name__ == "__main__":
    main(*sys.argv[1:])
