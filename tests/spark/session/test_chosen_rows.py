from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from tests.spark.session.harness import SECOND, Batch, Driver, QueryText, expected, rows_in_memory, with_end

from thalweg.spark.session import chosen_rows, results, views
from thalweg.spark.session.chosen_rows import ChosenQuery, ChosenRows, rows_of_rounds
from thalweg.sql.query import RoundWindow
from thalweg.sql.rounds import first_round, last_round

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [
    QueryText("SELECT k, x FROM A WHERE x > 1", 5),
    QueryText("SELECT s AS t, ts, k FROM A WHERE x > 1 AND k = 1", 5),
    QueryText("SELECT k FROM A", 5),
    QueryText("SELECT x, x AS again FROM A AS other WHERE s LIKE 'a%'", 6, 2),
    QueryText("SELECT y FROM B WHERE y > 100", 5),
]
BATCHES: list[Batch] = with_end(
    [
        {
            "A": [(place % 2, place, "ab"[place % 2], (4 * number + place) * SECOND) for place in range(5)],
            "B": [(1, place, (4 * number + place) * SECOND) for place in range(3)],
        }
        for number in range(3)
    ]
)


@given(
    st.lists(st.integers(-100, 100)), st.integers(1, 30), st.integers(1, 30), st.sets(st.integers(-40, 40), max_size=5)
)
def test_rows_of_rounds_are_those_of_the_arithmetic(
    times: list[int], length: int, slide: int, rounds: set[int]
) -> None:
    window = RoundWindow(max(length, slide), slide)
    rows, numbers = rows_of_rounds(np.array(times, np.int64), window.length, slide, sorted(rounds))
    assert list(zip(rows.tolist(), numbers.tolist(), strict=True)) == [
        (row, number)
        for row, time in enumerate(times)
        for number in range(first_round(time, window), last_round(time, window) + 1)
        if number in rounds
    ]


def written(rows: ChosenRows, folder: Path) -> dict[str, list[dict[str, Any]]]:
    files = rows.write(str(folder))
    assert all(file.rows == parquet.read_metadata(file.path).num_rows and file.seconds > 0 for file in files)
    return {file.token: parquet.read_table(file.path).drop_columns(["round_start"]).to_pylist() for file in files}


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_files_of_other_programs_lack_columns_or_have_narrower_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(chosen_rows, "ROWS_AT_ONCE", at_once)
    first = pa.table({"time": [1, 2], "A:x": pa.array([7, 8], pa.int32()), "is:1": [True, None], "is:2": [True, True]})
    second = pa.table({"time": [3, 40], "A:x": [9, 10], "A:y": ["a", "b"], "is:1": [True, True]})
    paths = []
    for number, table in enumerate((first, second)):
        paths.append(str(tmp_path / f"{number}.parquet"))
        parquet.write_table(table, paths[-1])
    queries = (
        ChosenQuery("one", ("is:1",), (("A:x", "x"), ("A:y", "y"))),
        ChosenQuery("two", ("is:1", "is:2"), (("A:x", "x"),)),
        ChosenQuery("none", ("is:3",), (("A:x", "x"),)),
    )
    types = {"A:x": pa.int64(), "A:y": pa.string()}
    found = written(ChosenRows(tuple(paths), types, (1,), 20, 20, queries), tmp_path)
    assert [{"x": row["x"], "y": row["y"]} for row in found["one"]] == [{"x": 7, "y": None}, {"x": 9, "y": "a"}]
    assert [row["x"] for row in found["two"]] == [7]
    assert found.keys() == {"one", "two"}


def test_such_results_need_no_job_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in TEXTS]
    with patch.object(results, "written_files") as job:
        driver.run(*BATCHES)
    assert not job.called
    for query, text in zip(queries, TEXTS, strict=True):
        assert rows_in_memory(query) == expected(text, BATCHES)


@pytest.mark.thorough
def test_very_many_rows_are_left_to_spark_with_the_same_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "ROWS_OF_ONE_TASK", 0)
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in TEXTS]
    with patch.object(results, "chosen_rows", side_effect=lambda endings, *_: [] if not endings else 1 / 0):
        driver.run(*BATCHES)
    for query, text in zip(queries, TEXTS, strict=True):
        assert rows_in_memory(query) == expected(text, BATCHES)


def test_the_columns_of_results_are_as_spark_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    """Spark is not asked for the columns of a query that puts out columns of its stream, but would say the same."""
    session = Driver(spark, tmp_path).session
    for text in TEXTS:
        query = session.query(str(text))
        with patch.object(type(query.compiled), "chosen_columns", None):
            assert query.schema == session._schema(query.compiled)  # noqa: SLF001
