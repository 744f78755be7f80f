from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_query_that_is_stopped_within_a_micro_batch_has_not_failed(spark: SparkSession, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    @tw.predicate(on="id", takes="rows", name="waits")
    def waits(_: int) -> bool:
        begun.touch()
        time.sleep(60)  # the query is stopped before
        return True

    (tmp_path / "in").mkdir()
    spark.range(3).write.mode("append").parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    query = tw.stream(frame, waits, checkpoint=str(tmp_path / "checkpoint")).to_files(tmp_path / "out")
    while not begun.exists():
        assert query.isActive
        time.sleep(0.05)
    query.stop()
    assert not query.isActive
    assert query.exception() is None
