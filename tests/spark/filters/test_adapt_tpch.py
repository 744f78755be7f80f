"""The 22 queries of TPC-H through `tw.adapt(spark.sql(query))`: the rows are those of plain Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg.spark.filters import sample_worth
from thalweg_lab import tpch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL, LARGE = 0.01, 0.1  # scales

QUERIES = dict[int, str]


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QUERIES]:
    yield from queries_on_views(spark, tmp_path_factory, SMALL)


@pytest.fixture(scope="module")
def large(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QUERIES]:
    yield from queries_on_views(spark, tmp_path_factory, LARGE)


def queries_on_views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, scale: float) -> Iterator[QUERIES]:
    if not tpch.PACKAGES.exists():
        pytest.skip("run make tpch for the tables of TPC-H")
    folder = tmp_path_factory.mktemp("tpch")
    queries = tpch.generate(folder, scale)
    tpch.create_views(spark, folder)
    yield queries
    tpch.drop_views(spark)


def rounded(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows in an order of their own; sums of floating-point numbers depend on the order of their operands."""
    return sorted(
        tuple(f"{value:.6g}" if isinstance(value, float) and not math.isnan(value) else str(value) for value in row)
        for row in frame.collect()
    )


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(1, 23))
def test_small_tables_give_the_same_rows(
    spark: SparkSession, small: QUERIES, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", 0.0)  # so that samples are taken
    written = spark.sql(small[number])
    assert rounded(tw.adapt(written)) == rounded(written)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 23))
@pytest.mark.parametrize("sampled", [False, True])
def test_large_tables_give_the_same_rows(
    spark: SparkSession,
    large: QUERIES,
    number: int,
    sampled: bool,  # noqa: FBT001 - a parameter of pytest
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sampled:
        monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", 0.0)
    written = spark.sql(large[number])
    assert rounded(tw.adapt(written)) == rounded(written)
