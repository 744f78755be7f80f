"""Joins three streams of files into a folder of files, on the Spark that its arguments name, until all files are read.

A program of its own, so that tests can kill it, start it again and see whether anything is lost or there twice.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    settings: dict[str, bool | float | str | None] = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": False,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.streaming.stateStore.providerClass": ROCKS,
    }
    return builder.config(map=settings).getOrCreate()


def stream(spark: SparkSession, folder: str) -> DataFrame:
    schema = "k long, l long, v long, ts timestamp"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)


def main(master: str, folder: str) -> None:
    spark = session(master)
    joined = tw.join(
        {name: stream(spark, f"{folder}/{name}") for name in "ABC"},
        on="A.k = B.k AND B.l = C.l",
        windows="25 seconds",
        event_time="ts",
        delay="5 seconds",
        cells=2,
        select=["A.v", "B.v", "C.v"],
        state=f"{folder}/state",
    )
    writer = joined.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{folder}/out")
    query.awaitTermination()
    about = tw.explain(query).to_dict()["joins"][0]
    Path(folder, "about.json").write_text(json.dumps(about))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
