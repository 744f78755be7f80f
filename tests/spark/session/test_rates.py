from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.charts import TupleRates
from thalweg.sealed import seal
from thalweg.spark.session import rates
from thalweg.spark.session.rates import FASTEST, KIND, VERSION, known_rates, task_times, tuple_rates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, JOINED_ROWS = 2_000, 200
MEASURED = TupleRates(equality=123.0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Path]]:
    """The files of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return lambda: sorted((tmp_path / "thalweg").glob("*"))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows of each measurement, whose result is always the same."""
    found: list[tuple[int, int]] = []

    def measure(_spark: SparkSession, rows: int, joined_rows: int) -> TupleRates:
        found.append((rows, joined_rows))
        return MEASURED

    monkeypatch.setattr(rates, "measure_rates", measure)
    return found


def test_rates_are_measured_and_kept(spark: SparkSession, cache: Callable[[], list[Path]]) -> None:
    assert known_rates(spark) is None
    found = tuple_rates(spark, ROWS, JOINED_ROWS)
    assert all(0 < rate <= FASTEST for rate in found.to_json().values())
    assert found != TupleRates()
    assert len(cache()) == 1
    assert known_rates(spark) == found


def test_each_partition_has_the_time_of_its_task(spark: SparkSession) -> None:
    """The group of jobs that the thread had is as it was before."""
    context = spark.sparkContext
    context.setLocalProperty(rates.GROUP, "mine")
    try:
        times = task_times(spark.range(0, 1000, 1, 5).selectExpr("id + 1"))
        assert context.getLocalProperty(rates.GROUP) == "mine"
    finally:
        context.setLocalProperty(rates.GROUP, None)  # type: ignore[arg-type]
    assert len(times) == 5
    assert all(each.whole >= 0 and each.processor > 0 for each in times)


def test_the_usual_rates_serve_and_are_not_kept_if_spark_forgets_its_tasks(
    spark: SparkSession, cache: Callable[[], list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MOST_TASKS", 3)
    assert tuple_rates(spark, ROWS, JOINED_ROWS) == TupleRates()
    assert not cache()


def test_the_cache_is_used_the_second_time(
    spark: SparkSession, cache: Callable[[], list[Path]], measured: list[tuple[int, int]]
) -> None:
    assert [tuple_rates(spark, ROWS, JOINED_ROWS) for _ in range(2)] == [MEASURED] * 2
    assert measured == [(ROWS, JOINED_ROWS)]
    assert len(cache()) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"no rates", seal(KIND, VERSION - 1, b"{}"), seal(KIND, VERSION, b"{}"), seal(KIND, VERSION, b"[1]")],
    ids=["empty", "damaged", "of another version", "without rates", "of another kind"],
)
def test_a_file_that_cannot_be_used_is_measured_anew(
    spark: SparkSession, cache: Callable[[], list[Path]], measured: list[tuple[int, int]], content: bytes
) -> None:
    tuple_rates(spark)
    (file,) = cache()
    file.write_bytes(content)
    assert known_rates(spark) is None
    assert tuple_rates(spark) == MEASURED == known_rates(spark)
    assert len(measured) == 2


def test_each_machine_and_version_has_rates_of_its_own(
    spark: SparkSession,
    cache: Callable[[], list[Path]],
    measured: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tuple_rates(spark)
    for attribute in ("node", "python_version"):
        monkeypatch.setattr(f"platform.{attribute}", lambda: "another")
        assert known_rates(spark) is None
        tuple_rates(spark)
    monkeypatch.setitem(vars(spark), "version", "5.0.0")
    tuple_rates(spark)
    assert len(measured) == len(cache()) == 4


def test_a_machine_without_a_cache_measures_every_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[tuple[int, int]]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [tuple_rates(spark) for _ in range(2)] == [MEASURED] * 2
    assert len(measured) == 2
