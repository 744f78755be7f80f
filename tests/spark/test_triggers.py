"""Triggers without micro-batches are refused in one line, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_stream(spark: SparkSession, folder: Path, trigger: dict[str, Any]) -> None:
    rows = spark.readStream.format("rate").load()
    tw.stream(rows, "value > 3", checkpoint=folder / "checkpoint").to_files(folder / "out", **trigger)


def start_session(spark: SparkSession, folder: Path, trigger: dict[str, Any]) -> None:
    session = tw.Session(spark, checkpoint=folder / "checkpoint")
    session.stream("A", spark.readStream.format("rate").load(), event_time="timestamp")
    session.query("SELECT value FROM A WINDOW [10 seconds]", to=folder / "out")
    session.start(**trigger)


@pytest.mark.parametrize("start", [start_stream, start_session])
@pytest.mark.parametrize("trigger", [{"realTime": "5 seconds"}, {"continuous": "1 second"}], ids=str)
def test_refused_in_one_line(
    spark: SparkSession,
    tmp_path: Path,
    start: Callable[[SparkSession, Path, dict[str, Any]], None],
    trigger: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r"has no micro-batches.*write processingTime=") as caught:
        start(spark, tmp_path, trigger)
    assert "\n" not in str(caught.value)
    assert not spark.streams.active
