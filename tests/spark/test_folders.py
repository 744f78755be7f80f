"""Folders of Parquet and of JSON files as the source of a filter, as its sink, and as a lookup that is refreshed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.delta.test_delta import is_odd, kept, numbers

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id long, v long, k long"


@pytest.mark.parametrize("kind", [pytest.param("parquet", marks=pytest.mark.thorough), "json"])
def test_from_a_folder_to_a_folder_with_a_folder_to_look_up_in(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    source, target, wanted = (str(tmp_path / name) for name in ("source", "target", "wanted"))
    numbers(spark, 0, 2000).write.format(kind).save(source)
    spark.createDataFrame([(1,), (3,)], "k long").write.format(kind).save(wanted)
    keys = tw.lookup(spark.read.schema("k long").format(kind).load(wanted), on="k")

    def run() -> list[int]:
        rows = spark.readStream.schema(SCHEMA).format(kind).load(source)
        filtered = tw.where(rows, is_odd, "v > 20", keys)
        writer = filtered.writeStream.format(kind).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(target).awaitTermination()
        return sorted(row["id"] for row in spark.read.schema(SCHEMA).format(kind).load(target).collect())

    assert run() == kept(range(2000), {1, 3})
    spark.createDataFrame([(5,)], "k long").write.format(kind).mode("append").save(wanted)
    keys.refresh()
    numbers(spark, 2000, 3000).write.format(kind).mode("append").save(source)
    assert run() == kept(range(2000), {1, 3}) + kept(range(2000, 3000), {1, 3, 5})
