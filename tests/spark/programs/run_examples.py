"""Runs the examples on the Spark that its first argument names, and prints what they find as JSON.

A program of its own, because a process has one kind of Spark session.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples"
ROWS, MINUTES = 2000, 14


def load(name: str) -> Any:  # noqa: ANN401 - a module, whose functions are not known here
    """An example as a module; workers cannot import it."""
    from pyspark import cloudpickle

    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def traffic(spark: SparkSession, folder: str) -> int:
    """The traffic at the end. The example itself notes it in its own process, and Connect runs functions elsewhere."""
    example = load("common_traffic")
    reports = Path(folder, "reports")
    reports.mkdir()
    example.write_reports(reports, MINUTES)
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    reader = spark.readStream.schema("pid long, size long, ts timestamp").option("maxFilesPerTrigger", MINUTES // 2)
    total = example.common_traffic({router: reader.parquet(str(reports / router)) for router in example.ROUTERS})
    writer = total.toDF("bytes").writeStream.format("memory").queryName("traffic").outputMode("complete")
    query = writer.option("checkpointLocation", f"{folder}/traffic").trigger(availableNow=True).start()
    query.awaitTermination()
    ((found,),) = spark.table("traffic").collect()
    return int(found)


def stream(spark: SparkSession, folder: str) -> list[int] | str:
    """What `tw.stream` keeps, or the error that says that it is not there."""
    try:
        load("screen_messages").screen_stream(spark, folder, ROWS // 4, batches=4).awaitTermination()
    except (TypeError, ValueError) as error:
        return str(error)
    return ids(spark.read.parquet(f"{folder}/flagged"))


def run(spark: SparkSession, folder: str) -> dict[str, Any]:
    """What each example finds."""
    found: dict[str, Any] = {"batch": ids(load("screen_messages").screen(spark, ROWS))}
    found["stream"] = stream(spark, folder)
    tw.enable(spark)
    found["plain"] = ids(load("plain_spark").screen(spark, ROWS))
    tw.disable(spark)
    found["traffic"] = traffic(spark, folder)
    return found


def main(place: str, folder: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]") if place == "connect" else SparkSession.builder.master(place)
    spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    print(json.dumps(run(spark, folder)))  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
