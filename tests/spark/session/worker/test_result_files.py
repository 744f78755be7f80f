from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from thalweg.spark.session.worker.result_files import QueryFile, ResultFiles, of_no_rows

ROUNDS = pa.array([1, 1, 2, 2], pa.int64())
COLUMNS = pa.StructArray.from_arrays(
    [
        pa.array([True, False, True, True]),
        pa.array([True, True, False, True]),
        pa.array([10, None, 11, 12], pa.int32()),
        pa.array(["a", "b", None, "d"]),
    ],
    names=["0", "1", "2", "3"],
)
IS_LARGE, IS_EVEN, X, S = range(4)
BATCH = pa.RecordBatch.from_pydict({"round": ROUNDS, "branch": pa.array([0] * 4, pa.int32()), "0": COLUMNS})
TUMBLING: Any = {"length": 20, "slide": 20}


def written(writer: ResultFiles, batches: list[pa.RecordBatch]) -> dict[str, pa.Table]:
    """What each query's file holds, by token; the driver is told of every file once, with its rows."""
    (told,) = list(writer(iter(batches)))
    assert told.schema.names == ["query", "file", "results", "rounds", "seconds"]
    tables = {}
    for row in told.to_pylist():
        assert row["seconds"] > 0
        if row["file"] is None:
            assert row["results"] == []
            continue
        assert row["query"] not in tables
        tables[row["query"]] = parquet.read_table(Path(writer.folder, row["file"]))
        ends = tables[row["query"]].column("round_end").cast(pa.int64()).to_pylist()
        (slide,) = [query.slide for query in writer.queries if query.token == row["query"]]
        assert Counter(dict(row["results"])) == Counter(end // slide for end in ends)
    return tables


def test_each_query_gets_its_rows_and_columns(tmp_path: Path) -> None:
    large = QueryFile("large", 0, (IS_LARGE,), ((X, "x"),), **TUMBLING)
    both = QueryFile("both", 0, (IS_LARGE, IS_EVEN), ((S, "s"), (X, "y")), **TUMBLING)
    tables = written(ResultFiles(str(tmp_path), (large, both)), [BATCH, BATCH])
    assert tables["large"].column("x").to_pylist() == [10, 11, 12] * 2
    assert tables["both"].column_names == ["round_start", "round_end", "s", "y"]
    assert tables["both"].column("y").to_pylist() == [10, 12] * 2
    assert tables["both"].column("s").to_pylist() == ["a", "d"] * 2


def test_rows_have_the_bounds_of_their_round(tmp_path: Path) -> None:
    sliding = QueryFile("sliding", 0, (), ((X, "x"),), length=20, slide=5)
    table = written(ResultFiles(str(tmp_path), (sliding,)), [BATCH])["sliding"]
    assert table.column("round_start").cast(pa.int64()).to_pylist() == [-15, -15, -10, -10]
    assert table.column("round_end").cast(pa.int64()).to_pylist() == [5, 5, 10, 10]
    assert table.schema.field("round_end").type == pa.timestamp("us", "UTC")


def test_no_file_for_a_query_without_rows(tmp_path: Path) -> None:
    none = QueryFile("none", 0, (IS_LARGE,), ((X, "x"),), **TUMBLING)
    assert written(ResultFiles(str(tmp_path), (none,)), [BATCH.slice(1, 1)]) == {}
    assert written(ResultFiles(str(tmp_path), (none,)), []) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_runs_twice_overwrites_nothing(tmp_path: Path) -> None:
    writer = ResultFiles(str(tmp_path), (QueryFile("q", 0, (), ((X, "x"),), **TUMBLING),))
    first, second = written(writer, [BATCH]), written(writer, [BATCH])
    assert first["q"].equals(second["q"])
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_of_the_rows_is_raised_and_no_file_is_told(tmp_path: Path) -> None:
    def batches() -> object:
        yield BATCH
        raise ZeroDivisionError

    writer = ResultFiles(str(tmp_path), (QueryFile("q", 0, (), ((X, "x"),), **TUMBLING),))
    with pytest.raises(ZeroDivisionError):
        list(writer(batches()))  # type: ignore[arg-type]


def test_rows_of_several_branches_come_together(tmp_path: Path) -> None:
    numbers = pa.array([0, 1, 1, 0], pa.int32())
    empty = pa.nulls(4, COLUMNS.type)
    columns = [pc.if_else(pc.equal(numbers, branch), COLUMNS, empty) for branch in (0, 1)]
    mixed = pa.RecordBatch.from_arrays([ROUNDS, numbers, *columns], names=["round", "branch", "0", "1"])
    first = QueryFile("first", 0, (), ((X, "x"),), **TUMBLING)
    second = QueryFile("second", 1, (), ((S, "s"),), **TUMBLING)
    tables = written(ResultFiles(str(tmp_path), (first, second)), [mixed])
    assert tables["first"].column("x").to_pylist() == [10, 12]
    assert tables["second"].column("s").to_pylist() == ["b", None]


def test_the_driver_is_told_of_rounds_even_if_having_drops_their_rows(tmp_path: Path) -> None:
    query = QueryFile("all", 0, (IS_LARGE,), ((X, "x"),), **TUMBLING, tells_rounds=True)
    (told,) = list(ResultFiles(str(tmp_path), (query,))(iter([BATCH.slice(1, 1)])))
    assert told.drop_columns("seconds").to_pylist() == [{"query": "all", "file": None, "results": [], "rounds": [1]}]


def test_the_result_of_no_rows_comes_once_for_each_round() -> None:
    outputs = pa.table({"0": pa.array([0], pa.int64()), "having": [True]})
    query = QueryFile("all", 0, (1,), ((0, "n"),), **TUMBLING)
    table = of_no_rows(outputs, [3, 5], query)
    assert table.column("n").to_pylist() == [0, 0]
    assert table.column("round_end").cast(pa.int64()).to_pylist() == [60, 100]
    unkept = outputs.set_column(1, "having", pa.array([None], pa.bool_()))
    assert of_no_rows(unkept, [3, 5], query).num_rows == 0
