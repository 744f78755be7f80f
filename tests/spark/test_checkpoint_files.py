from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import thalweg as tw
from thalweg.spark.checkpoint_files import SETTING, renamed_by_file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def no_choice(spark: SparkSession) -> Iterator[None]:
    """The session of the tests has made a choice for all its queries."""
    chosen = str(spark.conf.get(SETTING))
    spark.conf.unset(SETTING)
    yield
    spark.conf.set(SETTING, chosen)


def test_a_session_renames_files_of_its_checkpoint_by_the_file_system(spark: SparkSession, tmp_path: Path) -> None:
    with renamed_by_file_system(spark):
        assert str(spark.conf.get(SETTING)).endswith(".FileSystemBasedCheckpointFileManager")
        running = spark.readStream.format("rate").load().writeStream.format("noop")
        query = running.option("checkpointLocation", f"{tmp_path}/checkpoint").start()
    try:
        manager = query._jsq.streamingQuery().offsetLog().fileManager().getClass().getSimpleName()  # noqa: SLF001
    finally:
        query.stop()
    assert "FileSystemBased" in manager or "Checksum" in manager  # which wraps it, if checksums are on
    assert spark.conf.get(SETTING, None) is None


def test_so_are_the_logs_of_file_sources(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).selectExpr("timestamp_seconds(id) AS ts", "1 AS x").write.parquet(f"{tmp_path}/rows")
    session = tw.Session(spark, checkpoint=tmp_path / "checkpoint")
    rows = spark.readStream.schema("ts timestamp, x int").parquet(f"{tmp_path}/rows")
    session.stream("A", rows, event_time="ts")
    session.query("SELECT x FROM A WINDOW [1]")
    running = session.start(availableNow=True)
    running.awaitTermination()
    source = running._jsq.streamingQuery().uniqueSources().head()._1()  # noqa: SLF001 - Python has no other way
    log = source.getClass().getDeclaredField("metadataLog")
    log.setAccessible(True)
    manager = log.get(source).fileManager().getClass().getSimpleName()
    assert "FileSystemBased" in manager or "Checksum" in manager
    assert spark.conf.get(SETTING, None) is None


def test_what_the_user_has_chosen_stays(spark: SparkSession) -> None:
    spark.conf.set(SETTING, "chosen")
    try:
        with renamed_by_file_system(spark):
            assert spark.conf.get(SETTING) == "chosen"
        assert spark.conf.get(SETTING) == "chosen"
    finally:
        spark.conf.unset(SETTING)


def test_another_default_file_system_is_left_to_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.spark.checkpoint_files.paths_are_local", lambda _: False)
    with renamed_by_file_system(spark):
        assert spark.conf.get(SETTING, None) is None
