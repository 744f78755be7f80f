from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import thalweg as tw
from thalweg.spark.filters.file_sink import FileSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Any:  # noqa: ANN401 - a streaming DataFrame
    for number in range(2):
        frame = spark.range(number * 10, number * 10 + 10, numPartitions=2).selectExpr("id", "id % 3 as batch")
        frame.write.parquet(f"{tmp_path}/in/{number}")
    stream = spark.readStream.schema("id long, batch long").option("maxFilesPerTrigger", 1)
    return stream.parquet(f"{tmp_path}/in/*")


def test_the_files_have_the_users_columns_and_no_others(spark: SparkSession, source: Any, tmp_path: Path) -> None:  # noqa: ANN401
    driven = tw.stream(source, "batch < 2", checkpoint=tmp_path / "checkpoint")
    assert driven.to_files(tmp_path / "out", availableNow=True).awaitTermination(120)
    found = spark.read.parquet(f"{tmp_path}/out")
    assert found.columns == ["id", "batch"]
    assert sorted(map(tuple, found.collect())) == [(row, row % 3) for row in range(20) if row % 3 < 2]


def test_a_second_writer_is_refused(spark: SparkSession, source: Any, tmp_path: Path) -> None:  # noqa: ANN401
    first = tw.stream(source, "batch < 2", checkpoint=tmp_path / "first")
    assert first.to_files(tmp_path / "out", availableNow=True).awaitTermination(120)
    second = tw.stream(source, "batch = 2", checkpoint=tmp_path / "second")
    with pytest.raises(ValueError, match=r"is written by another query, with the checkpoint .*first"):
        second.to_files(tmp_path / "out", availableNow=True)
    assert spark.read.parquet(f"{tmp_path}/out").count() == 14
    again = tw.stream(source, "batch < 2", checkpoint=tmp_path / "first")
    assert again.to_files(tmp_path / "out", availableNow=True).awaitTermination(120)


def test_a_micro_batch_that_comes_again_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    sink = FileSink(spark, f"{tmp_path}/out", f"{tmp_path}/checkpoint", "json", {})
    sink.claim()
    for number, rows in ((0, 5), (1, 4), (1, 3), (11, 2), (1, 1)):
        sink.write(spark.range(rows, numPartitions=2), number)
    assert spark.read.json(f"{tmp_path}/out").count() == 5 + 1 + 2


def test_a_folder_of_this_machine_is_claimed_without_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop would start a process for each file and folder."""
    sinks = [FileSink(spark, f"{tmp_path}/out", f"{tmp_path}/{name}", "parquet", {}) for name in ("first", "second")]
    with patch.object(FileSink, "_system", side_effect=AssertionError):
        sinks[0].claim()
        sinks[0].claim()
        with pytest.raises(ValueError, match=r"is written by another query, with the checkpoint .*first"):
            sinks[1].claim()
        (tmp_path / "file").touch()
        with pytest.raises(OSError, match=r"owner\.json cannot be written"):
            FileSink(spark, f"{tmp_path}/file", f"{tmp_path}/first", "parquet", {}).claim()


def test_hadoop_finds_what_was_claimed_without_it(spark: SparkSession, tmp_path: Path) -> None:
    FileSink(spark, f"{tmp_path}/out", f"{tmp_path}/first", "parquet", {}).claim()
    FileSink(spark, f"file://{tmp_path}/out", f"file://{tmp_path}/first", "parquet", {}).claim()
    with pytest.raises(ValueError, match="is written by another query"):
        FileSink(spark, f"file://{tmp_path}/out", f"file://{tmp_path}/second", "parquet", {}).claim()
