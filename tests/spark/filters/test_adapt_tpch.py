"""The 22 queries of TPC-H through `tw.adapt(spark.sql(query))`: the rows are those of plain Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg.spark.filters.left_alone import ALL_CHEAP, ONE_SLOW, SINGLE, SUBQUERY
from thalweg_lab import tpch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL, LARGE = 0.01, 0.1  # scales
ADAPTED = {2, 4, 5, 6, 10, 12, 14, 15, 16, 17}  # queries with several conditions on one table

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
def test_small_tables_give_the_same_rows(spark: SparkSession, small: QUERIES, number: int) -> None:
    check(spark, small[number], number)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 23))
def test_large_tables_give_the_same_rows(spark: SparkSession, large: QUERIES, number: int) -> None:
    check(spark, large[number], number)


def check(spark: SparkSession, query: str, number: int) -> None:
    """The very DataFrame by default; with samples the same rows, by a plan with adaptive filters where there can be."""
    written = spark.sql(query)
    assert tw.adapt(written) is written
    left = tw.explain(written).to_dict()["left"]
    assert {each["reason"] for each in left} <= {SINGLE, ALL_CHEAP, ONE_SLOW, SUBQUERY}
    adapted = tw.adapt(written, sample=True)
    assert (adapted is not written) == (number in ADAPTED)
    if number in ADAPTED:
        assert all("sampled" in where["why"] for where in tw.explain(adapted).to_dict()["wheres"])
        assert rounded(adapted) == rounded(written)
