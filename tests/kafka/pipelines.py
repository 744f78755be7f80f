"""Three queries from topics of Kafka to topics of Kafka: a filter, a join and a session, until all rows are read.

A program of its own, so that a test can kill it, start it again and see whether a result is missing. The filter also
writes files, in which every row is exactly once.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import thalweg as tw
from thalweg.spark.start import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_A_BATCH = 300
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "id long, k long, v long, ts timestamp"


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


def start(spark: SparkSession, server: str, folder: str) -> list[StreamingQuery]:
    """Start the three queries; each ends when it has read the rows that were there when it started."""

    def topic(name: str) -> DataFrame:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", server).option("subscribe", name)
        rows = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", ROWS_A_BATCH).load()
        return rows.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS row").select("row.*")

    def write(frame: DataFrame, name: str) -> StreamingQuery:
        packed = frame.selectExpr("to_json(struct(*)) AS value")
        writer = packed.writeStream.format("kafka").option("kafka.bootstrap.servers", server).option("topic", name)
        return writer.option("checkpointLocation", f"{folder}/{name}").trigger(availableNow=True).start()

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
        files.trigger(availableNow=True).start(f"{folder}/kept-files"),
        write(joined, "joined"),
        session.start(availableNow=True),
    ]


def main(server: str, folder: str, jars: str) -> None:
    settings: dict[str, Any] = {"spark.jars": jars, "spark.sql.streaming.stateStore.providerClass": ROCKS}
    spark = local_session("pipelines", **settings)
    for query in start(spark, server, folder):
        query.awaitTermination()
        print(json.dumps({"batches": len(query.recentProgress)}))  # noqa: T201 - for the log of the test
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
