from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    QueryText,
    expected,
    rows_in_folder,
    rows_in_memory,
    with_end,
)

import thalweg as tw
from thalweg.spark.plan_text import plan_text
from thalweg.spark.session import engine
from thalweg.spark.session.sinks import ROWS_IN_A_PLAN, Delivery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT = QueryText("SELECT k, x FROM A WHERE x > 1", 5)
BATCHES: list[Batch] = with_end(
    [{"A": [(number, place, "a", (4 * number + place) * SECOND) for place in range(5)]} for number in range(2)]
)
EXPECTED = expected(TEXT, BATCHES)


class Killed(BaseException):
    """Ends a session, as the end of its process does."""


def run_with_a_kill(driver: Driver) -> None:
    """Run all micro-batches; the session dies when the results of the last one are delivered, but nothing is saved."""
    driver.run(*BATCHES[:-1])
    with patch.object(engine, "save_position", side_effect=Killed), pytest.raises(Killed):
        driver.run(BATCHES[-1])


def rows_in_csv(folder: Path) -> Counter[tuple[int, ...]]:
    """The outputs of results, without the bounds of rounds."""
    rows: Counter[tuple[int, ...]] = Counter()
    for file in folder.glob("*.csv"):
        with file.open() as lines:
            rows.update(tuple(map(int, row[2:])) for row in csv.reader(lines))
    return rows


def test_every_kind_of_sink(spark: SparkSession, tmp_path: Path) -> None:
    """Files are exact, although the last micro-batch comes twice."""
    by_number: dict[int, list[tuple[int, ...]]] = {}

    def keep(results: DataFrame, number: int) -> None:
        by_number[number] = [tuple(row)[2:] for row in results.collect()]

    driver = Driver(spark, tmp_path)

    def add_queries() -> tw.Session:
        session = driver.session
        for to in (
            None,
            tmp_path / "parquet",
            tw.Session.files(tmp_path / "csv", "csv"),
            tw.Session.files(tmp_path / "snappy", compression="snappy"),
            keep,
            tw.Session.writer("json", path=str(tmp_path / "json")),
        ):
            session.query(str(TEXT), to=to)
        return session

    add_queries()
    run_with_a_kill(driver)
    driver.open()
    session = add_queries()
    driver.run(BATCHES[-1])
    outputs = Counter(result[2:] for result in EXPECTED.elements())
    assert rows_in_folder(tmp_path / "parquet") == EXPECTED
    assert rows_in_csv(tmp_path / "csv") == outputs
    assert rows_in_folder(tmp_path / "snappy") == EXPECTED
    assert Counter(row for rows in by_number.values() for row in rows) == outputs
    assert set(
        Counter(
            tuple(row)[2:]
            for row in spark.read.json(str(tmp_path / "json")).select("round_start", "round_end", "k", "x").collect()
        )
    ) == set(outputs)
    in_memory = rows_in_memory(session.queries[0])  # of this session alone
    assert in_memory.total() > 0
    assert in_memory <= EXPECTED
    with pytest.raises(TypeError, match="not kept in memory"):
        session.queries[1].results()
    table = session.queries[0].results()
    assert table is not None
    assert table.column_names == ["round_start", "round_end", "k", "x"] == session.queries[0].schema.names


def test_a_writer_that_fails_loses_no_result(spark: SparkSession, tmp_path: Path) -> None:
    driver, target = Driver(spark, tmp_path), tmp_path / "target"
    driver.session.query(str(TEXT), to=tw.Session.writer("parquet", path=str(target)))
    driver.run(*BATCHES[:-1])
    aside = target.rename(tmp_path / "aside") if target.exists() else None
    target.write_text("a file is in the way")
    with pytest.raises(Exception, match="target"):
        driver.run(BATCHES[-1])
    target.unlink()
    if aside is not None:
        aside.rename(target)
    driver.open()
    driver.session.query(str(TEXT), to=tw.Session.writer("parquet", path=str(target)))
    driver.run(BATCHES[-1])
    assert rows_in_folder(target) == EXPECTED


def test_a_folder_has_one_writer(spark: SparkSession, tmp_path: Path) -> None:
    first, second = Driver(spark, tmp_path / "first"), Driver(spark, tmp_path / "second")
    for driver in (first, second):
        driver.session.query(str(TEXT), to=tmp_path / "out")
    first.session.make_engine()
    first.session.make_engine()  # the same one may, again
    with pytest.raises(ValueError, match="is written by another query"):
        second.session.make_engine()
    with pytest.raises(ValueError, match="is written by another query"):  # also while it runs
        first.session.query(str(TEXT), to=tmp_path / "out")
    assert len(first.session.queries) == 1


def test_what_is_no_sink_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="to= is a folder, a function"):
        Driver(spark, tmp_path).session.query(str(TEXT), to=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_few_results_are_collected_without_a_job(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """A DataFrame of few results is equal to that of their files, in rows and columns."""
    columns = {
        "round_start": pa.array([0, 1_700_000_000_000_000, None], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, None, False]),
        "n": pa.array([1, None, 3], pa.int32()),
        "money": pa.array([Decimal("1.25"), None, Decimal(-3)], pa.decimal128(10, 2)),
        "name": pa.array(["a", None, "c"]),
        "raw": pa.array([b"a", None, b"c"]),
        "day": pa.array([date(2024, 2, 29), None, date(1970, 1, 1)]),
        "x": pa.array([0.5, None, float("inf")]),
    }
    file = f"{tmp_path}/results.parquet"
    parquet.write_table(pa.table(columns), file)
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        schema = spark.read.parquet(file).schema
        few = Delivery(spark, 0, (file,), schema, may_be_repeated=False, rows=3).frame()
        many = Delivery(spark, 0, (file,), schema, may_be_repeated=False, rows=ROWS_IN_A_PLAN + 1).frame()
        jobs = next_job(spark)
        found = few.collect()
        assert next_job(spark) == jobs
        assert found == many.collect()
        assert next_job(spark) > jobs
        assert few.schema == many.schema == schema
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_results_of_nested_types_come_from_files(spark: SparkSession, tmp_path: Path) -> None:
    file = f"{tmp_path}/results.parquet"
    parquet.write_table(pa.table({"listed": [[1, 2], None]}), file)
    delivery = Delivery(spark, 0, (file,), spark.read.parquet(file).schema, may_be_repeated=False, rows=2)
    assert [tuple(row) for row in delivery.frame().collect()] == [([1, 2],), (None,)]
    assert "FileScan" in plan_text(delivery.frame())


def next_job(spark: SparkSession) -> int:
    """The number of Spark's next job."""
    number: int = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()  # noqa: SLF001 - nothing else tells
    return number
