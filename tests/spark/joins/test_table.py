"""Tables that change while the query runs."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.spark.joins.harness import Batches, FakeState, answer, made, run, step_cell, stream, write

import thalweg as tw
from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.mjoin.pack import pack
from thalweg.mjoin.shares import Shares
from thalweg.sealed import SavedStateError
from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import Message, MessageKind
from thalweg.spark.joins.packing import PackingTask
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import JoinSpec, oldest_version
from thalweg.spark.joins.state import CellState
from thalweg.spark.joins.table import ChangingTable, Follower
from thalweg.spark.joins.table_versions import (
    NEEDED_SECONDS,
    SECOND,
    UNCLAIMED_SECONDS,
    VersionFiles,
    number_of,
    version_files,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ON, WINDOWS = "A.k = T.k AND T.k = B.k", {"A": 20, "T": None, "B": 20}


def write_table(folder: Path, values: dict[int, int]) -> pa.Table:
    """A table of keys and values, in one file that replaces the file before."""
    rows = pa.table({"k": list(values), "v": list(values.values())})
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.parquet"):
        path.unlink()
    parquet.write_table(rows, folder / f"{len(values)}-{sum(values.values())}.parquet")
    return rows


def joined_with(spark: SparkSession, folder: Path, table: object, **options: Any) -> DataFrame:  # noqa: ANN401
    streams = {"A": stream(spark, folder, "A"), "T": table, "B": stream(spark, folder, "B")}
    return tw.join(
        streams,  # type: ignore[arg-type]  # some tables are wrong
        on=ON,
        windows={"A": "20 seconds", "B": "20 seconds"},
        event_time="ts",
        delay="5 seconds",
        cells=2,
        **options,
    )


def rows_given(spark: SparkSession, folder: Path) -> Counter[tuple[Any, ...]]:
    rows = spark.read.parquet(str(folder / "out")).select("A_v", "T_v", "B_v").collect()
    return Counter(tuple(row) for row in rows)


def values_of(batches: Batches, table: pa.Table) -> Counter[tuple[Any, ...]]:
    return answer({"A": batches["A"], "T": [table], "B": batches["B"]}, ON, WINDOWS)


def test_a_version_holds_from_a_micro_batch_on(rocks: SparkSession, tmp_path: Path) -> None:
    """The table is refreshed, and then another program goes on, which reads the table anew.

    Results whose last row comes before a version have the version before, all others the new one.
    """
    batches = made("AB", 4, 20)
    expected, before = Counter[tuple[Any, ...]](), None
    table, joined = None, None
    for until, values in ((2, {0: 100, 1: 101, 2: 102}), (3, {1: 201, 2: 102, 3: 203}), (4, {2: 302, 4: 304})):
        now = {name: tables[:until] for name, tables in batches.items()}
        write(now, tmp_path)
        version = write_table(tmp_path / "T", values)
        if until == 3 and table is not None:
            table.refresh()
        else:
            table = tw.table(rocks.read.parquet(str(tmp_path / "T")))
            joined = joined_with(rocks, tmp_path, table, state=tmp_path / "state")
        assert joined is not None
        run(joined, tmp_path)
        expected += values_of(now, version) - (values_of(before, version) if before else Counter())
        assert rows_given(rocks, tmp_path) == expected
        before = now
    assert joined is not None
    about = tw.explain(joined)
    held = about.to_dict()["joins"][0]["tables"]["T"]
    assert held["from_batch"] > 2  # there are three micro-batches with rows before
    assert f"table T: as read at {held['read_at']} since micro-batch {held['from_batch']}; read" in str(about)


def test_arguments_that_are_refused_say_what_to_write(rocks: SparkSession, tmp_path: Path) -> None:
    write(made("AB", 1, 5), tmp_path)
    write_table(tmp_path / "T", {0: 100})
    frame = rocks.read.parquet(str(tmp_path / "T"))
    with pytest.raises(ValueError, match="write state='folder'"):
        joined_with(rocks, tmp_path, tw.table(frame))
    with pytest.raises(ValueError, match=r"T may have changed since.*joined\.join\(table, \.\.\., 'left'\)"):
        joined_with(rocks, tmp_path, tw.table(frame), state=tmp_path, how="left")
    with pytest.raises(TypeError, match="takes a static DataFrame, or a function that gives a DataFrame, not list"):
        tw.table([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a stream is an input of tw\.join as it is"):
        tw.table(stream(rocks, tmp_path, "A"))
    with pytest.raises(ValueError, match="refresh is a time above 0"):
        tw.table(frame, refresh="0 seconds")
    with pytest.raises(
        ValueError, match=r"the new table has the columns k bigint, and queries need .* k bigint, v big"
    ):
        tw.table(frame).refresh(frame.select("k"))


class FakeFrame:
    """A DataFrame that can be read, of one column."""

    isStreaming = False  # noqa: N815 - Spark's name
    columns = ("k",)

    def __init__(self, *values: int, fails: bool = False) -> None:
        self._values, self._fails = list(values), fails

    @property
    def schema(self) -> Any:  # noqa: ANN401
        from pyspark.sql.types import LongType, StructField, StructType

        return StructType([StructField("k", LongType())])

    def select(self, *_columns: str) -> FakeFrame:
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        if self._fails:
            raise OSError("the table is not there\nand much more")
        return pa.table({"k": pa.array(self._values, pa.int64())})


def following(folder: Path, table: ChangingTable) -> VersionFiles:
    files = VersionFiles(str(folder), "join", "run", 1)
    table.follow(Follower(files, lambda frame: frame, ["k"], lambda: None))
    return files


def published(files: VersionFiles) -> list[list[int]]:
    return [files.read(name)["k"].to_pylist() for name in sorted(StateFolder(files.folder).versions())]


def test_versions_are_written_when_the_table_has_changed(tmp_path: Path) -> None:
    tables = [FakeFrame(0), FakeFrame(1), FakeFrame(1), FakeFrame(), FakeFrame(2, 3)]
    table = tw.table(lambda: tables.pop(0))  # type: ignore[arg-type, return-value]
    files = following(tmp_path, table)
    for _ in range(3):
        table.refresh()
    assert published(files) == [[1], [], [2, 3]]


def test_a_refresh_that_fails_changes_nothing_and_is_told(tmp_path: Path) -> None:
    tables = [FakeFrame(0), FakeFrame(1), FakeFrame(fails=True), FakeFrame(2), FakeFrame(fails=True)]
    table = tw.table(lambda: tables.pop(0), refresh="10 minutes")  # type: ignore[arg-type, return-value]
    seconds = []

    def sleep(interval: float) -> None:
        seconds.append(interval)
        if not tables:
            raise StopIteration

    with patch("threading.Thread"):
        files = following(tmp_path, table)
    with patch.object(time, "sleep", sleep), pytest.raises(StopIteration):
        table.keep_fresh(600.0)
    assert seconds == [600.0] * 4
    assert published(files) == [[1], [2]]
    assert table.failure == "OSError: the table is not there"


def test_versions_are_kept_as_long_as_a_micro_batch_may_need_them(tmp_path: Path) -> None:
    files, earlier_run = VersionFiles(str(tmp_path), "join", "run", 1), VersionFiles(str(tmp_path), "join", "other", 1)
    rows = pack(pa.record_batch({"k": [1]}))
    now = 2 * UNCLAIMED_SECONDS * SECOND
    old, week = now - 2 * NEEDED_SECONDS * SECOND, now - UNCLAIMED_SECONDS * SECOND
    for number in (old, old + 1, old + 2):
        files.write(number, rows)
    for number in (week - 1, week + 1):
        earlier_run.write(number, rows)

    def kept(taken: str | None, at: int) -> list[int]:
        files.retire(taken, at)
        return sorted(number_of(name) for name in StateFolder(files.folder).versions())

    assert kept(None, now) == [week + 1, old, old + 1, old + 2]
    assert kept(f"{files.prefix}{old + 1:020d}", old + 5) == [week + 1, old, old + 1, old + 2]
    assert kept(f"{files.prefix}{old + 1:020d}", now) == [week + 1, old + 1, old + 2]


def test_a_version_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    files = VersionFiles(str(tmp_path), "join", "run", 1)
    with pytest.raises(FileNotFoundError, match=r"which the driver and all workers must share; call refresh\(\)"):
        files.read("join-1-run-7")
    (tmp_path / "join-1-run-7").write_bytes(b"something else")
    with pytest.raises(SavedStateError, match=r"no saved version of a table.*call refresh\(\)"):
        files.read("join-1-run-7")


def test_the_oldest_version_that_some_cell_has() -> None:
    reports: list[dict[str, Any]] = [{"tables": {"T": {"file": "b"}}}, {"tables": {"T": {"file": "a"}}}, {"counts": {}}]
    assert oldest_version(reports, "T", 2) == "a"
    assert oldest_version(reports, "T", 3) is None


STREAM = pa.schema([("k", pa.int64()), ("t", pa.int64())])
TABLE = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def given_by_cell(spec: JoinSpec, state: FakeState, batch: int, messages: list[Message]) -> list[tuple[int, int]]:
    """The results of a micro-batch."""
    return sorted((row["a"], row["v"]) for row in step_cell(spec, state, batch, messages))


def rows_of(*keys_and_times: tuple[int, int]) -> Message:
    rows = [dict(zip(STREAM.names, row, strict=True)) for row in keys_and_times]
    return Message(MessageKind.ROWS, "A", pack(pa.RecordBatch.from_pylist(rows, STREAM)))


def test_all_rows_of_a_micro_batch_meet_the_newest_version_also_when_it_is_repeated(tmp_path: Path) -> None:
    inputs = (Input("A", STREAM, "t", TimeWindow(10)), Input("T", TABLE))
    query = JoinQuery(inputs, (frozenset([("A", "k"), ("T", "k")]),), select=(("A", "t", "a"), ("T", "v", "v")))
    layout = Layout(query, Shares((1,), {name: frozenset([0]) for name in "AT"}))
    files = VersionFiles(str(tmp_path / "tables"), "join", "run", 1)
    spec = JoinSpec(JoinPlan("key", layout, str(tmp_path), tables=("T",), versions={"T": files}))
    for number, value in enumerate((100, 200, 300)):
        files.write(number, pack(pa.RecordBatch.from_pylist([{"k": 1, "v": value}], TABLE)))

    def told(number: int) -> Message:
        ((message,),) = (list(PackingTask(layout, "T", None).tell_version(f"file:/x/{files.prefix}{number:020d}")),)
        (row,) = message.to_pylist()
        return Message(MessageKind(row["kind"]), row["input"], row["payload"])

    state = FakeState()
    assert given_by_cell(spec, state, 0, [rows_of((1, 0)), told(0)]) == [(0, 100)]
    assert given_by_cell(spec, state, 1, [rows_of((1, 1), (2, 1))]) == [(1, 100)]
    before = state.copy()
    second = [rows_of((1, 2)), told(2), rows_of((1, 3)), told(1)]
    assert given_by_cell(spec, state, 2, second) == [(2, 300), (3, 300)]
    assert given_by_cell(spec, before, 2, second) == [(2, 300), (3, 300)]
    assert CellState.from_bytes((before.value or (b"",))[0]).tables == {"T": (f"{files.prefix}{2:020d}", 2)}
    assert given_by_cell(spec, before, 3, [rows_of((1, 4))]) == [(4, 300)]


def test_versions_are_found_from_any_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = (Input("A", STREAM, "t", TimeWindow(10)), Input("T", TABLE))
    query = JoinQuery(inputs, (frozenset([("A", "k"), ("T", "k")]),), select=(("A", "t", "a"),))
    layout = Layout(query, Shares((1,), {name: frozenset([0]) for name in "AT"}))
    spark = Mock()
    files = version_files("state [1]", layout, "run", "T")
    assert files.folder == str(tmp_path / "state [1]" / "join-tables")
    files.listed(spark)
    load = spark.readStream.format.return_value.schema.return_value.load
    load.assert_called_once_with(rf"file://{tmp_path}/state \[1\]/join-tables/{files.prefix}*")
    assert version_files("hdfs://host/state", layout, "run", "T").folder == "hdfs://host/state/join-tables"
