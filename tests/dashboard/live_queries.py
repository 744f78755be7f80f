"""Starts queries of all three kinds on Spark, with the page's events; a program for the tests in a browser.

Its first argument is the folder of events, its second a folder of its own, its third the name of a predicate. It ends
when its standard input does.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

import thalweg as tw
from thalweg.spark.start import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_SECOND = 4000
REGIME = 80_000  # rows of the stream, after which the predicates' drop rates change places, again and again
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # mix the bits of a number
SPIN = 300  # rounds of work a row, so that the order matters


def slow(values: np.ndarray[Any, Any], *, is_first: bool) -> np.ndarray[Any, Any]:
    """Keeps one of ten rows in every second regime, and nine of ten in the others."""
    for _ in range(SPIN):
        np.sin(values.astype(np.float64))
    before = values // REGIME % 2 == 0
    mixed = values.astype(np.uint64) * np.uint64(MULTIPLIERS[is_first]) >> np.uint64(40)  # alike in all partitions
    digit = mixed % np.uint64(10)
    kept: np.ndarray[Any, Any] = np.where(before == is_first, digit > 0, digit == 0)
    return kept


def filters(spark: SparkSession, folder: str, name: str) -> Any:  # noqa: ANN401 - a streaming query
    """Two predicates, whose drop rates change places every twenty seconds."""
    first = tw.predicate(lambda value: slow(value, is_first=True), on="value", takes="numpy", name=name)
    last = tw.predicate(lambda value: slow(value, is_first=False), on="value", takes="numpy", name="last digits")
    stream = spark.readStream.format("rate").option("rowsPerSecond", ROWS_A_SECOND).load()
    kept = tw.where(stream, first, last)
    return kept.writeStream.format("noop").option("checkpointLocation", f"{folder}/where").start()


def joined(spark: SparkSession, folder: str) -> Any:  # noqa: ANN401 - a streaming query
    """Three streams that join on their numbers."""
    sources = {
        name: spark.readStream.format("rate").option("rowsPerSecond", rate).load().withColumnRenamed("timestamp", "ts")
        for name, rate in (("R1", 40), ("R2", 20), ("R3", 10))
    }
    flows = tw.join(
        sources, on="R1.value = R2.value AND R2.value = R3.value", windows="1 minute", event_time="ts", delay="1 second"
    )
    return flows.writeStream.format("noop").option("checkpointLocation", f"{folder}/join").start()


def session(spark: SparkSession, folder: str) -> tw.Session:
    """Two standing queries of one stream."""
    made = tw.Session(spark, checkpoint=f"{folder}/session")
    stream: DataFrame = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    made.stream("TCP", stream, event_time="timestamp")
    for number in range(2):
        condition = f"TCP.value % 2 = {number}"
        made.query("SELECT TCP.value FROM TCP WHERE " + condition + " WINDOW [2 seconds]", name=f"odd {number}")  # noqa: S608
    made.start()
    return made


def main() -> None:
    """Run until the standard input ends."""
    events, folder, name = sys.argv[1:4]
    options: dict[str, Any] = {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    }
    spark = spark_session("live-queries", cores=4, **options)  # three queries run at a time
    page = tw.dashboard(folder=events, serve=False)
    queries = [filters(spark, folder, name), joined(spark, folder)]
    standing = session(spark, folder)
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    ended.wait()
    standing.stop()
    for query in queries:
        query.stop()
    page.close()
    spark.stop()


if __name__ == "__main__":
    main()
