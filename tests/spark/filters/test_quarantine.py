from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@tw.predicate(on="id", takes="rows")
def fails_on_five(id: int) -> bool:  # noqa: A002 - the column's name
    if id % 10 == 5:
        raise ValueError("five")
    return True


def test_a_repeated_micro_batch_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        spark.range(number * 10, number * 10 + 10, numPartitions=1).write.parquet(f"{tmp_path}/in/{number}")
    may_fail = True

    def write(frame: DataFrame, number: int) -> None:
        frame.collect()
        if number == 1 and may_fail:
            raise RuntimeError("the power went out")

    for attempt in range(2):
        may_fail = attempt == 0
        source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/in/*")
        kept = tw.where(source, fails_on_five, on_error="quarantine", quarantine=tmp_path / "aside")
        writer = kept.writeStream.foreachBatch(write).option("checkpointLocation", f"{tmp_path}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        if may_fail:
            with pytest.raises(Exception, match="the power went out"):
                query.awaitTermination(120)
        else:
            assert query.awaitTermination(120)
    assert sorted(row["id"] for row in spark.read.parquet(f"{tmp_path}/aside").collect()) == [5, 15]


def test_two_actions_on_one_frame_write_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    kept = tw.where(spark.range(20), fails_on_five, on_error="quarantine", quarantine=tmp_path / "aside")
    assert [kept.count(), len(kept.collect())] == [18, 18]
    assert sorted(row["id"] for row in spark.read.parquet(f"{tmp_path}/aside").collect()) == [5, 15]


@pytest.mark.parametrize("place", ["folder", "table"])
def test_the_users_columns_stay(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """Columns called like ours, and nested fields of one name."""

    @tw.predicate(on=["left.x", "right.x", "reason"], takes="rows")
    def fails(left: int, right: int, reason: str) -> Any:  # noqa: ANN401
        raise ValueError(f"{left} {right} {reason}")

    spark.sql(f"CREATE DATABASE IF NOT EXISTS aside2 LOCATION '{tmp_path}/db'")
    try:
        frame = spark.sql("SELECT named_struct('x', 1) AS left, named_struct('x', 2) AS right, 'why' AS reason")
        target = f"{tmp_path}/aside" if place == "folder" else "aside2.failed"
        assert tw.where(frame, fails, on_error="quarantine", quarantine=target).count() == 0
        if place == "table":
            spark.catalog.refreshTable(target)
        found = spark.read.parquet(target) if place == "folder" else spark.table(target)
        [row] = found.collect()
        values = row.asDict()
        assert values.pop("_reason").startswith("ValueError: 1 2 why (line ")
        assert values == {
            "left.x": 1,
            "right.x": 2,
            "reason": "why",
            "predicate": "fails",
        }
    finally:
        spark.sql("DROP DATABASE aside2 CASCADE")
