"""Nothing that Spark pushes to the data's source is lost: PartitionFilters and PushedFilters are at least Spark's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    place = f"{tmp_path_factory.mktemp('partitioned')}/table"
    rows = spark.range(40, numPartitions=1).selectExpr(
        "id", "id % 4 AS a", "cast(id AS string) AS s", "date_sub(current_date(), cast(id % 10 AS int)) AS day"
    )
    rows.write.partitionBy("day").parquet(place)
    return spark.read.parquet(place)


def pushed(frame: DataFrame) -> dict[str, set[str]]:
    """The filters that reach the source, without the numbers of columns."""
    plan = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - there is no other way to see it
    scan = next(line for line in plan.splitlines() if "FileScan" in line)
    found = {}
    for name in ("PartitionFilters", "PushedFilters"):
        text = re.search(rf"{name}: \[(.*?)\](?:,|$)", scan)
        parts = re.sub(r"#\d+L?", "", text[1] if text else "")
        found[name] = {part.strip() for part in re.split(r", (?![^(]*\))", parts) if part.strip()}
    return found


even = tw.predicate(lambda id: id % 2 == 0, takes="numpy", name="even")  # noqa: A006
in_table = tw.lookup(pa.table({"a": [0, 1, 2]}), on="a")

CONDITIONS = (
    ["day >= current_date() - 7"],
    ["day >= date_sub(current_date(), 7)", "id > 1 + 2"],
    ["day = date'2024-01-01'", "a = 1", "s > '1'"],
    ["day IS NOT NULL AND day < current_date()", "s LIKE '1%'"],
    ["day IN (current_date(), date'2024-01-01')", "a <=> 2"],
    ["year(day) > 2000", "a BETWEEN 1 AND 2", "cast(s AS int) > 3"],
)
OTHERS: tuple[tuple[Any, ...], ...] = ((), (even,), (in_table,), (even, in_table), (tw.any_of(even, "length(s) > 5"),))


@pytest.mark.parametrize("others", OTHERS, ids=["alone", "python", "lookup", "both", "mixed"])
@pytest.mark.parametrize("conditions", CONDITIONS, ids=lambda conditions: conditions[0])
def test_conditions_reach_the_source(table: DataFrame, conditions: list[str], others: tuple[Any, ...]) -> None:
    plain = pushed(table.where(" AND ".join(f"({condition})" for condition in conditions)))
    ours = pushed(tw.where(table, *others, *conditions))
    for name, filters in plain.items():
        assert filters <= ours[name], name


@pytest.mark.parametrize("others", OTHERS[1:], ids=["python", "lookup", "both", "mixed"])
@pytest.mark.parametrize("first", ["a > 0", "cast(s AS int) >= 0"])
def test_later_filters_reach_the_source(table: DataFrame, first: str, others: tuple[Any, ...]) -> None:
    later = "day = date'2024-01-01' AND id > 3"
    plain, ours = pushed(table.where(first).where(later)), pushed(tw.where(table, first, *others).where(later))
    for name, filters in plain.items():
        assert filters <= ours[name], name


def test_a_column_that_nobody_needs_is_not_read(table: DataFrame) -> None:
    kept = tw.where(table, even, "a > 0").select("id")
    plan = kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - as above
    assert "s#" not in next(line for line in plan.splitlines() if "FileScan" in line).split("Batched")[0]


def test_pruned_partitions_hold_the_same_rows(table: DataFrame, tmp_path: Path) -> None:
    wanted = ["day >= current_date() - 3", "cast(s AS int) % 2 = 0"]
    kept = tw.where(table, even, *wanted, state=tmp_path)
    expected = table.where(" AND ".join(wanted)).where("id % 2 = 0")
    assert sorted(row["id"] for row in kept.collect()) == sorted(row["id"] for row in expected.collect())
