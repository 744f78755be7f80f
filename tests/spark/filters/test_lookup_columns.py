"""`tw.lookup(columns=...)`: a join whose probing is ordered with everything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.spark.filters import lower

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

on_spark = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])

CUSTOMERS = pa.table({"name": ["ant", "bee", "cat"], "city": ["Rome", None, "Bern"], "size": [1, 2, 3]})
GOODS = pa.table({"left": [0, 1, 1, 2], "right": ["ant", "bee", "cat", "cat"], "price": [1.5, 2.5, 3.5, 4.5]})

SQL = """
    SELECT d.id, d.a, d.s, c.city, c.size AS how_big, g.price FROM data d
    JOIN customers c ON d.s = c.name JOIN goods g ON d.a = g."left" AND d.s = g."right" WHERE d.a < 2 ORDER BY d.id
"""

below = tw.predicate(lambda a: a < 2, on="a", takes="numpy", name="below 2")


def predicates() -> list[Any]:
    return [
        tw.lookup(CUSTOMERS, on={"s": "name"}, columns={"city": "city", "size": "how_big"}),
        below,
        tw.lookup(GOODS, on={"a": "left", "s": "right"}, columns=["price"], name="goods"),
    ]


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    data = [(number, a, s) for number, (a, s) in enumerate(rows)]
    return spark.createDataFrame(data, "id long, a long, s string").repartition(2)


@pytest.mark.thorough
@on_spark
@given(
    rows=st.lists(
        st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from(["ant", "bee", "cat", "dog"])),
        min_size=1,
        max_size=60,
    ),
    order=st.permutations(range(3)),
    route_by=st.sampled_from([None, "auto", "s", ["a", "s"]]),
    sample=st.booleans(),
)
def test_the_rows_are_those_of_an_inner_join(
    spark: SparkSession,
    rows: list[tuple[Any, ...]],
    order: list[int],
    route_by: Any,  # noqa: ANN401
    sample: bool,  # noqa: FBT001 - given by Hypothesis
) -> None:
    kept = tw.where(frame_of(spark, rows), *(predicates()[one] for one in order), route_by=route_by, sample=sample)
    data = pa.table(
        {
            "id": range(len(rows)),
            "a": pa.array([a for a, _ in rows], pa.int64()),
            "s": pa.array([s for _, s in rows], pa.string()),
        }
    )
    with duckdb.connect() as connection:
        for name, table in (("data", data), ("customers", CUSTOMERS), ("goods", GOODS)):
            connection.register(name, table)
        expected = connection.sql(SQL).fetchall()
    names = ["id", "a", "s", "city", "how_big", "price"]
    assert sorted(kept.columns) == sorted(names)
    assert kept.columns[:3] == names[:3]
    assert sorted(tuple(row) for row in kept.select(*names).collect()) == expected


def test_columns_are_brought_to_the_survivors_alone(spark: SparkSession) -> None:
    frame = spark.range(1000).selectExpr("id", "id % 4 as a")
    kept = tw.where(frame, tw.lookup(pa.table({"a": [0, 1], "b": ["x", "y"]}), on="a", columns="b"), below, "id < 100")
    assert sorted(tuple(row) for row in kept.groupBy("b").count().collect()) == [("x", 25), ("y", 25)]
    plan = kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - the order is Spark's to keep
    assert plan.index("Inner") < plan.index("ArrowEvalPython")  # above it in the tree, hence after it


def test_one_lookup_alone_probes_once(spark: SparkSession) -> None:
    kept = tw.where(spark.range(10), tw.lookup(pa.table({"id": [3], "b": ["x"]}), on="id", columns=["b"]))
    assert [tuple(row) for row in kept.collect()] == [(3, "x")]
    plan = kept._jdf.queryExecution().optimizedPlan().toString()  # noqa: SLF001 - as above
    assert plan.count("Join Inner") == 1
    assert "LeftSemi" not in plan
    assert tw.explain(kept).to_dict()["wheres"][0]["order"] == ["id in lookup"]


def test_a_refresh_while_a_query_is_planned_loses_no_row(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept rows have the columns of the table in which their keys were found."""
    goods = tw.lookup(pa.table({"a": [0, 1], "price": [1.5, 2.5]}), on="a", columns="price")
    bring = lower._Lowering._bring  # noqa: SLF001 - the last step of planning

    def bring_later(lowering: Any, frame: DataFrame) -> DataFrame:  # noqa: ANN401 - as above
        goods.refresh(pa.table({"a": [1, 2], "price": [7.5, 8.5]}))
        return bring(lowering, frame)

    monkeypatch.setattr(lower._Lowering, "_bring", bring_later)  # noqa: SLF001 - as above
    kept = tw.where(frame_of(spark, [(0, "ant"), (1, "ant"), (2, "ant")]), goods, below, policy="as-written")
    assert sorted((row["a"], row["price"]) for row in kept.collect()) == [(0, 1.5), (1, 2.5)]


def test_what_cannot_be_right_is_refused(spark: SparkSession) -> None:
    frame = spark.range(10)
    table = pa.table({"id": [1, 2], "b": [3, 4]})
    wanted = tw.lookup(table, on="id", columns=["b"])
    for bad, message in (
        (tw.any_of(wanted, "id > 3"), "brings columns: give it to tw.where itself"),
        (tw.not_(wanted), "brings columns: give it to tw.where itself"),
        (tw.lookup(table, on="id", columns={"b": "ID"}), "brings a column 'ID', which the DataFrame has already"),
        (tw.lookup(spark.createDataFrame(table), on="id", columns=["c"]), "has no column 'c'; it has id, b"),
    ):
        with pytest.raises(ValueError, match=message):
            tw.where(frame, bad)
    with pytest.raises(ValueError, match=r"which predicate 'id in lookup' has already: write columns=\{'b'"):
        tw.where(frame, wanted, tw.lookup(table, on="id", columns=["b"]))
    with pytest.raises(ValueError, match=r"outside of tw\.condition"):
        tw.condition(wanted)
    with pytest.raises(ValueError, match="leave out columns= or negate"):
        tw.lookup(table, on="id", columns=["b"], negate=True)
    with pytest.raises(ValueError, match="two columns under one name: x, x"):
        tw.lookup(table, on="id", columns={"b": "x", "id": "x"})
    with pytest.raises(ValueError, match=r"more than once, such as .*: write table.dropDuplicates\(\['id'\]\)"):
        tw.lookup(pa.table({"id": [1, 1], "b": [1, 2]}), on="id", columns=["b"])


def test_columns_are_brought_in_a_first_call_where_the_lookup_runs_in_python(spark: SparkSession) -> None:
    frame = spark.range(10).selectExpr("id", "id % 5 AS a").localCheckpoint()
    wanted = tw.lookup(pa.table({"a": [3, 4], "b": ["x", "y"]}), on="a", columns=["b"])
    even = tw.predicate(lambda x: x % 2 == 0, on="id", takes="numpy", name="even")
    for conditions in ([], ["id > 3"]):
        for _ in range(2):
            kept = tw.where(frame, wanted, *conditions, even, route_by="a")
            assert sorted(map(tuple, kept.collect())) == [(4, 4, "y"), (8, 3, "x")]


@pytest.mark.thorough
@pytest.mark.parametrize("route_by", [None, "a"])
def test_streams_bring_columns_too(spark: SparkSession, tmp_path: Path, route_by: str | None) -> None:
    for number in range(2):
        part = spark.range(number * 100, (number + 1) * 100, numPartitions=1)
        part.selectExpr("id", "id % 10 as a").write.parquet(f"{tmp_path}/in/{number}")

    def read() -> DataFrame:
        stream = spark.readStream.schema("id long, a long").option("maxFilesPerTrigger", 1)
        return stream.parquet(f"{tmp_path}/in/*")

    wanted = tw.lookup(pa.table({"a": [3, 4], "b": ["x", "y"]}), on="a", columns=["b"])
    tests = (wanted, tw.predicate(lambda x: x % 2 == 0, on="id", takes="numpy", name="even"))
    expected = [(row, "y") for row in range(200) if row % 10 == 4]
    kept = tw.where(read(), *tests, route_by=route_by)
    query = kept.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/check").trigger(
        availableNow=True
    )  # fmt: skip
    assert query.start(f"{tmp_path}/out").awaitTermination(120)
    assert sorted(tuple(row) for row in spark.read.parquet(f"{tmp_path}/out").select("id", "b").collect()) == expected
    with pytest.raises(ValueError, match=r"whose plan is fixed: write tw\.stream"):
        wanted.refresh()
    fresh = tw.lookup(pa.table({"a": [3, 4], "b": ["x", "y"]}), on="a", columns=["b"])
    driven = tw.stream(read(), fresh, tests[1], checkpoint=tmp_path / "driven", route_by=route_by)
    assert driven.to_files(tmp_path / "files", availableNow=True).awaitTermination(120)
    found = spark.read.parquet(f"{tmp_path}/files").select("id", "b").collect()
    assert sorted(tuple(row) for row in found) == expected
    fresh.refresh(pa.table({"a": [5], "b": ["z"]}))
    assert np.array(fresh.keys.table["a"]).tolist() == [5]
