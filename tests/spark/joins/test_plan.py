"""What is decided about a join before the first row is read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from thalweg.spark.joins.plan import CHANGELOG, suggest_settings
from thalweg.spark.start import LOCAL_SOCKETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Settings:
    """A session with no more than settings."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    @property
    def conf(self) -> Settings:
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._settings.get(name, default)


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are suggested on Linux")
def test_a_setting_that_spark_needs_when_it_starts_is_suggested() -> None:
    slow: SparkSession = Settings({CHANGELOG: "true", "spark.sql.shuffle.partitions": "2"})  # type: ignore[assignment]
    (note,) = suggest_settings(slow, 2, is_streaming=True)
    assert LOCAL_SOCKETS in note
    assert suggest_settings(slow, 2, is_streaming=False) == ()


def test_a_session_that_thalweg_started_needs_no_suggestion(spark: SparkSession) -> None:
    notes = suggest_settings(spark, 2, is_streaming=True)
    assert not any(LOCAL_SOCKETS in note for note in notes)
