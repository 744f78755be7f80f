"""How much traffic flows through all four routers of a network, over the last ten minutes, at every moment.

Packets pass routers R1 to R4; each router reports the packets that it has seen. The packets that all four have seen are
a join of four streams on the packet's number, each with a window of ten minutes; their traffic is the sum of their
sizes. The join's changelog has a row with change 1 when a packet has been seen by all, and a row with change -1 when
one of the four reports is older than ten minutes, so the sum is a plain aggregation (example 1 of a-greedy-2004).

    .venv/bin/python examples/common_traffic.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import thalweg as tw
from thalweg.spark.start import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUTERS = ("R1", "R2", "R3", "R4")
SEEN_BY = {"R1": 0.9, "R2": 0.2, "R3": 0.6, "R4": 0.8}  # shares of the packets; few pass R2
MINUTES, PACKETS = 25, 400  # packets a minute
MICROSECONDS = 60_000_000  # in a minute


def common_traffic(routers: dict[str, DataFrame]) -> DataFrame:
    """The current traffic that all routers have seen, as one row."""
    flows = tw.join(
        routers,
        on="R1.pid = R2.pid AND R2.pid = R3.pid AND R3.pid = R4.pid",
        windows="10 minutes",
        event_time="ts",
        delay="1 minute",
        output="changelog",
        select=["R1.size AS size"],
    )
    return flows.selectExpr("size * change AS traffic").groupBy().sum("traffic")


def write_reports(folder: Path, minutes: int = MINUTES) -> None:
    """Write the routers' reports, a file a minute: packets that routers have seen within some seconds."""
    random = np.random.default_rng(0)
    start = 1_700_000_000_000_000
    for minute in range(minutes):
        pid = minute * PACKETS + np.arange(PACKETS)
        size = random.integers(40, 1500, PACKETS)
        sent = start + minute * MICROSECONDS + random.integers(0, MICROSECONDS, PACKETS)
        for router, share in SEEN_BY.items():
            seen = random.random(PACKETS) < share
            times = pa.array(sent[seen] + random.integers(0, 5_000_000, int(seen.sum())), pa.timestamp("us", "UTC"))
            path = folder / router / f"{minute:03d}.parquet"
            path.parent.mkdir(exist_ok=True)
            parquet.write_table(pa.table({"pid": pid[seen], "size": size[seen], "ts": times}), path)
            os.utime(path, (start / 1e6 + minute, start / 1e6 + minute))


def run(spark: SparkSession, folder: Path, files_a_batch: int = 5) -> tuple[list[int | None], DataFrame]:
    """The traffic after each micro-batch, and the streaming DataFrame that it comes from."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    reader = spark.readStream.schema("pid long, size long, ts timestamp").option("maxFilesPerTrigger", files_a_batch)
    traffic = common_traffic({router: reader.parquet(str(folder / router)) for router in ROUTERS})
    seen: list[int | None] = []

    def note(total: DataFrame, _number: int) -> None:
        seen.append(total.collect()[0][0])

    query = traffic.writeStream.outputMode("complete").foreachBatch(note).trigger(availableNow=True).start()
    query.awaitTermination()
    return seen, traffic


def main() -> None:
    """Run it on a small local Spark."""
    spark = spark_session("common-traffic")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        write_reports(Path(folder))
        totals, traffic = run(spark, Path(folder))
    for number, total in enumerate(totals):
        print(f"after micro-batch {number}: {total:,} bytes")  # noqa: T201 - a program's output
    print(tw.explain(traffic))  # noqa: T201 - as above
    spark.stop()


if __name__ == "__main__":
    main()
