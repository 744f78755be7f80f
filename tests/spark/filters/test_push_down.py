"""Nothing that Spark pushes to the data's source is lost: PartitionFilters and PushedFilters are at least Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.spark import runs
from thalweg.spark.filters.forms import Place
from thalweg.spark.filters.pruning import partition_columns
from thalweg.spark.filters.run import FilterRun
from thalweg.spark.plan_text import keys_in_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.filters.plan import FilterPlan

SIDES = 4
ROWS = 2000  # more than a choice of classes needs


@pytest.fixture(scope="module", autouse=True)
def _whole_plans(spark: SparkSession) -> Iterator[None]:
    """Plans whose lists of filters are not abbreviated."""
    spark.conf.set("spark.sql.maxMetadataStringLength", "100000")
    yield
    spark.conf.unset("spark.sql.maxMetadataStringLength")


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = f"{tmp_path_factory.mktemp('partitioned')}/table"
    rows = spark.range(ROWS, numPartitions=1).selectExpr(
        "id",
        "id % 4 AS a",
        "cast(id AS string) AS s",
        f"id % {SIDES} AS side",
        f"concat('side-', id % {SIDES}) AS text",
        "concat('zone ', id % 2) AS zone",
        "date_sub(current_date(), cast(id % 5 AS int)) AS day",
    )
    rows.write.partitionBy("day", "zone").parquet(place)
    return place


@pytest.fixture(scope="module")
def table(spark: SparkSession, place: str) -> DataFrame:
    return spark.read.parquet(place)


def filters_in(plan: str) -> dict[str, set[str]]:
    """The filters that reach the source, without the numbers of columns."""
    scan = next(line for line in plan.splitlines() if "FileScan" in line)
    found = {}
    for name in ("PartitionFilters", "PushedFilters"):
        text = re.search(rf"{name}: \[(.*?)\](?:,|$)", scan)
        parts = re.sub(r"#\d+L?", "", text[1] if text else "")
        found[name] = {part.strip() for part in re.split(r", (?![^(]*\))", parts) if part.strip()}
    return found


def pushed(frame: DataFrame) -> dict[str, set[str]]:
    return filters_in(frame._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - there is no other way


def plain(frame: DataFrame, conditions: list[str]) -> DataFrame:
    return frame.where(" AND ".join(f"({condition})" for condition in conditions))


def assert_nothing_is_lost(ours: dict[str, set[str]], plain: dict[str, set[str]]) -> None:
    """Ours are all filters of plain Spark, which has some."""
    assert any(plain.values())
    for name, filters in plain.items():
        assert filters <= ours[name], name


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def is_even(id: Any) -> Any:  # noqa: A002, ANN401 - a NumPy array
    return id % 2 == 0


def others(kind: str, cost: float | None = None) -> list[Any]:
    """Predicates that Spark does not hand to the source."""
    even = tw.predicate(is_even, takes="numpy", name="even", cost=cost)
    in_table = tw.lookup(pa.table({"a": [0, 1, 2]}), on="a", cost=cost)
    mixed = tw.any_of(even, tw.expr("length(s) > 5", cost=cost), cost=cost)
    kinds: dict[str, list[Any]] = {
        "alone": [],
        "python": [even],
        "lookup": [in_table],
        "both": [even, in_table],
        "mixed": [mixed],
    }
    return kinds[kind]


OTHERS = ("python", "lookup", "both", "mixed")

CONDITIONS = (
    ["day >= current_date() - 7"],
    ["day >= date_sub(current_date(), 7)", "id > 1 + 2"],
    ["day = date'2024-01-01'", "a = 1", "s > '1'"],
    ["day IS NOT NULL AND day < current_date()", "s LIKE '1%'"],
    ["day IN (current_date(), date'2024-01-01')", "a <=> 2"],
    ["year(day) > 2000", "a BETWEEN 1 AND 2", "cast(s AS int) > 3"],
)


@pytest.mark.parametrize("kind", ["alone", *OTHERS])
@pytest.mark.parametrize("conditions", CONDITIONS, ids=lambda conditions: conditions[0])
def test_conditions_reach_the_source(table: DataFrame, conditions: list[str], kind: str) -> None:
    assert_nothing_is_lost(pushed(tw.where(table, *others(kind), *conditions)), pushed(plain(table, conditions)))


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("first", ["a > 0", "cast(s AS int) >= 0"])
def test_later_filters_reach_the_source(table: DataFrame, first: str, kind: str) -> None:
    later = "day = date'2024-01-01' AND id > 3"
    ours = tw.where(table, first, *others(kind)).where(later)
    assert_nothing_is_lost(pushed(ours), pushed(table.where(first).where(later)))


def test_a_column_that_nobody_needs_is_not_read(table: DataFrame) -> None:
    kept = tw.where(table, *others("python"), "a > 0").select("id")
    plan = kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - as above
    assert "s#" not in next(line for line in plan.splitlines() if "FileScan" in line).split("Batched")[0]


# ------------------------------------------------------------------------------------------ evidence

# Conditions that the source can use: Spark evaluates the first four for partitions, and no row.
FOR_SOURCE = [
    "day >= current_date() - 7",
    "year(day) > 2000",
    "upper(zone) <> 'ZONE 2'",
    "(day = current_date() AND s rlike '1') OR (zone = 'zone 1' AND s rlike '2')",
    "id > 1 + 2",
    "a BETWEEN 1 AND 2 OR a IS NULL",
    "s LIKE '1%'",
    "NOT contains(s, 'x')",
    "startswith(s, '1')",
]
# Of these it gets a test for NULL alone; the second may raise.
FOR_SPARK = ["s rlike '1'", "cast(s AS int) > 3", "length(text) > 0"]
DEAR = 1000  # times the cost of a Python predicate or a lookup: by it, conditions would come last


def options(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {
        "sampled": {},
        "by classes": {"route_by": "text"},
        "dropping": {"on_error": "drop"},
        "quarantine": {"on_error": "quarantine", "quarantine": tmp_path / "quarantine"},
    }


def dear(conditions: list[str]) -> list[Any]:
    return [tw.expr(condition, cost=DEAR) for condition in conditions]


def plan_of(kept: DataFrame) -> FilterPlan:
    [run] = runs.find(keys_in_plan(kept))
    assert isinstance(run, FilterRun)
    return run.plan


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("how", ["sampled", "by classes", "dropping", "quarantine"])
def test_no_evidence_keeps_conditions_from_the_source(table: DataFrame, tmp_path: Path, how: str, kind: str) -> None:
    conditions = [*FOR_SOURCE, *FOR_SPARK]
    wanted = pushed(plain(table, conditions))
    predicates, more = [*others(kind, cost=1), *dear(conditions)], options(tmp_path)[how]
    sampled = tw.where(table, *predicates, **more, sample=True, state=tmp_path / "state")
    again = tw.where(table, *predicates, **more, state=tmp_path / "state")
    assert ("sampled" in plan_of(sampled).why, "as learnt" in plan_of(again).why) == (True, True)
    for kept in (sampled, again):
        assert_nothing_is_lost(pushed(kept), wanted)
        if how != "quarantine":  # for which Python comes last
            first, *_, last = plan_of(kept).stages
            assert (first.place, len(first.predicates)) == (Place.SPARK, len(FOR_SOURCE))
            assert (last.place, len(last.predicates)) == (Place.SPARK, len(FOR_SPARK))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", OTHERS)
def test_measured_times_keep_no_condition_from_the_source(table: DataFrame, kind: str) -> None:
    conditions = [*FOR_SOURCE, *FOR_SPARK]
    assert_nothing_is_lost(
        pushed(tw.where(table, *others(kind), *conditions, sample=True)), pushed(plain(table, conditions))
    )


@pytest.mark.parametrize("kind", OTHERS)
def test_later_filters_reach_the_source_with_evidence(table: DataFrame, kind: str) -> None:
    first, later = ["a >= 0", "s rlike '1'"], "day = date'2024-01-01' AND id > 3"
    ours = tw.where(table, *others(kind, cost=1), *dear(first), sample=True).where(later)
    assert_nothing_is_lost(pushed(ours), pushed(plain(table, first).where(later)))


def test_a_lookup_comes_ahead_of_python_whose_errors_wait(table: DataFrame) -> None:
    later = "day = date'2024-01-01' AND id > 3"
    even, in_table = tw.predicate(is_even, takes="numpy", cost=1), tw.lookup(pa.table({"a": [0, 1]}), on="a", cost=DEAR)
    orders: dict[Literal["raise", "drop"], list[Place]] = {
        "raise": [Place.JOIN, Place.PYTHON],
        "drop": [Place.PYTHON, Place.JOIN],
    }
    for on_error, places in orders.items():
        kept = tw.where(table, even, in_table, on_error=on_error, sample=True)
        assert [stage.place for stage in plan_of(kept).stages] == places
        assert_nothing_is_lost(pushed(kept.where(later)), pushed(table.where(later)))


def test_after_comes_before_the_source(table: DataFrame) -> None:
    even = tw.predicate(is_even, takes="numpy", name="even")
    kept = tw.where(table, even, tw.expr("id > 3", after=["even"]), tw.expr("length(text) > 0", after=["even"]))
    assert [stage.place for stage in plan_of(kept).stages] == [Place.PYTHON, Place.SPARK]
    assert pushed(kept)["PushedFilters"] == set()


def test_branches_keep_no_condition_from_the_source(table: DataFrame, tmp_path: Path) -> None:
    slow = [f"text rlike '^.*s?i?d?e-[^{side}]$'" for side in range(SIDES - 1)]
    conditions = [*slow, "startswith(text, 'side')", "text LIKE '%e-_'", "year(day) > 2000", "a >= 0"]
    for sample in (True, False):  # the second plan has the branches that the first has saved
        kept = tw.where(
            table, *(tw.expr(each, cost=1) for each in conditions), route_by="side", sample=sample, state=tmp_path
        )
        assert "CASE WHEN" in kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - as above
        assert_nothing_is_lost(pushed(kept), pushed(plain(table, conditions)))
        assert ids(kept) == ids(table.where(f"side = {SIDES - 1}"))


def test_pruned_partitions_hold_the_same_rows(table: DataFrame, tmp_path: Path) -> None:
    wanted = ["day >= current_date() - 3", "cast(s AS int) % 2 = 0", "upper(zone) = 'ZONE 0'", "s rlike '[1-7]$'"]
    expected = ids(plain(table, wanted).where("id % 2 = 0 AND a < 3"))
    for more in ({}, {"sample": True, "state": tmp_path}, {"state": tmp_path}):
        kept = tw.where(table, *others("both", cost=1), *dear(wanted), **more)
        assert ids(kept) == expected
    with_null = table.selectExpr("id", "nullif(s, '14') AS s")  # behind Python, the condition brings a test for NULL
    kept = tw.where(with_null, *others("python", cost=1), *dear(["NOT (s rlike '2$')"]), sample=True)
    assert ids(kept) == ids(with_null.where("id % 2 = 0 AND NOT (s rlike '2$')"))


def test_a_stream_takes_its_filters_to_the_source(
    spark: SparkSession, table: DataFrame, place: str, tmp_path: Path
) -> None:
    conditions = [*FOR_SOURCE, *FOR_SPARK]
    predicates = [*others("both", cost=1), *dear(conditions)]
    tw.where(table, *predicates, sample=True, state=tmp_path / "state")  # the stream starts with its evidence
    source = spark.readStream.schema(table.schema).parquet(place)
    kept = tw.where(source, *predicates, state=tmp_path / "state")

    def pushed_in_stream(frame: DataFrame, name: str) -> dict[str, set[str]]:
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / name))
        query: Any = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return filters_in(query._jsq.explainInternal(False))  # noqa: FBT003, SLF001 - Spark prints it, or tells nothing

    assert_nothing_is_lost(pushed_in_stream(kept, "ours"), pushed_in_stream(plain(source, conditions), "plain"))


# ------------------------------------------------------------------------------------------ partition columns


def partition_names(frame: DataFrame) -> set[str]:
    numbers = partition_columns(frame)
    output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001 - no public way
    columns = [output.apply(place) for place in range(output.size())]
    return {column.name() for column in columns if column.exprId().id() in numbers}


def test_partition_columns_are_known_by_other_names(spark: SparkSession, table: DataFrame, place: str) -> None:
    assert partition_names(table) == {"day", "zone"}
    renamed = table.withColumnRenamed("day", "d").selectExpr("*", "date_trunc('month', d) AS month").filter("id > 3")
    assert partition_names(renamed) == {"d", "month", "zone"}
    mixed = table.selectExpr("concat(zone, s) AS both", "day", "1 AS one", "zone = 'x' AS is_x", "'a, b AS c#1' AS e")
    assert partition_names(mixed) == {"day", "is_x"}
    table.createOrReplaceTempView("partitioned")
    assert partition_names(
        spark.sql("SELECT p.zone AS z, q.day, q.id FROM partitioned p JOIN partitioned q USING (id)")
    ) == {
        "z",
        "day",
    }
    assert partition_names(spark.readStream.schema(table.schema).parquet(place)) == {"day", "zone"}
    assert partition_names(spark.range(3)) == set()
    spark.catalog.dropTempView("partitioned")


def test_partitions_of_other_sources(spark: SparkSession, place: str) -> None:
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        frame = spark.read.parquet(place)
        assert "BatchScan" in frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - as above
        assert partition_names(frame) == {"day", "zone"}
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")
