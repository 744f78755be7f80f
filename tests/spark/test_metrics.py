from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES = 9


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> DataFrame:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(BATCHES):
        path = folder / f"{number}.parquet"
        parquet.write_table(pa.table({"id": list(range(number * 10, number * 10 + 10))}), path)
        os.utime(path, (10**9 + number, 10**9 + number))
    return spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder))


def collect(kept: DataFrame, _: int) -> None:
    kept.collect()


even = tw.predicate(lambda id: id % 2 == 0, takes="numpy", name="even")  # noqa: A006


@pytest.mark.parametrize("driven", [True, False])
def test_every_micro_batch_is_told(spark: SparkSession, source: DataFrame, tmp_path: Path, *, driven: bool) -> None:
    """Also of a query that ends before anybody looks."""
    told: list[dict[str, Any]] = []
    metrics = tw.Metrics(spark, told.append)
    if driven:
        stream = tw.stream(source, even, checkpoint=tmp_path / "checkpoint")
        query: Any = stream.foreach_batch(collect, availableNow=True)
    else:
        writer = tw.where(source, even).writeStream.format("noop")
        query = writer.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    metrics.close()
    assert [each["batch"] for each in told] == list(range(BATCHES))
    assert all(each["wheres"][0]["as_written"] == ["even"] for each in told)
    assert metrics.latest[str(query.id)]["wheres"][0]["rows"] == 10 * BATCHES


@pytest.mark.thorough
def test_an_error_of_the_function_is_told(
    spark: SparkSession, source: DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(told: dict[str, Any]) -> None:
        raise ZeroDivisionError(f"of batch {told['batch']}")

    metrics = tw.Metrics(spark, fails)
    with caplog.at_level(logging.ERROR):
        stream = tw.stream(source, even, checkpoint=tmp_path / "checkpoint")
        query = stream.foreach_batch(collect, availableNow=True)
        assert query.awaitTermination(120)
        with pytest.raises(ZeroDivisionError, match="of batch 0"):
            metrics.close()
    assert "the metrics of a micro-batch were not told" in caplog.text
    assert len(metrics.errors) == BATCHES
