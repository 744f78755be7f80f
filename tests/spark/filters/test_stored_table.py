"""A stored table is what it is, not what it is called: another table of the same name never gets its keys."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import thalweg as tw
from thalweg.spark.filters.stored_table import StoredTable
from thalweg.spark.filters.worker import stored_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def kept_by(frame: DataFrame, *predicates: Any, **options: Any) -> list[int]:  # noqa: ANN401
    return sorted(row["k"] for row in tw.where(frame, *predicates, **options).collect())


# A lookup in a negation runs in Python, where a refresh travels by file.


def test_another_table_of_the_same_name_has_its_own_keys(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(6).toDF("k")
    first = tw.lookup(table(0, 1), on="k")
    assert kept_by(frame, tw.not_(first), state=tmp_path) == [2, 3, 4, 5]
    first.refresh(table(4, 5))
    assert kept_by(frame, tw.not_(first), state=tmp_path) == [0, 1, 2, 3]
    second = tw.lookup(table(2), on="k")
    assert second.name == first.name
    assert kept_by(frame, tw.not_(second), state=tmp_path) == [0, 1, 3, 4, 5]
    tw.reset(tmp_path)
    assert kept_by(frame, tw.not_(tw.lookup(table(3), on="k")), state=tmp_path) == [0, 1, 2, 4, 5]


def test_a_refresh_reaches_all_copies_of_a_predicate(spark: SparkSession) -> None:
    """Two predicates of one name get different names within a query, and stay the predicates they are."""
    frame = spark.range(6).toDF("k")
    wanted = tw.lookup(table(0, 1, 2), on="k")
    other = tw.lookup(table(1, 2, 3), on="k")
    kept = tw.where(frame, tw.not_(tw.not_(wanted)), tw.not_(tw.not_(other)))
    assert sorted(row["k"] for row in kept.collect()) == [1, 2]
    other.refresh(table(0, 5))
    assert sorted(row["k"] for row in kept.collect()) == [0]
    wanted.refresh(table(5))
    assert sorted(row["k"] for row in kept.collect()) == [5]


def test_two_tables_of_one_name_in_one_disjunction(spark: SparkSession) -> None:
    frame = spark.range(6).toDF("k")
    first, second = tw.lookup(table(0), on="k"), tw.lookup(table(1), on="k")
    kept = tw.where(frame, tw.any_of(first, second))
    first.refresh(table(4))
    assert sorted(row["k"] for row in kept.collect()) == [1, 4]


def test_a_restarted_stream_takes_the_table_it_is_given(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(6).toDF("k").write.parquet(f"{tmp_path}/in/0")

    def run(wanted: Any, *, refresh: bool) -> None:  # noqa: ANN401
        source = spark.readStream.schema("k long").parquet(f"{tmp_path}/in/*")
        driven = tw.stream(source, tw.not_(wanted), checkpoint=tmp_path / "checkpoint", route_by="k")
        if refresh:
            wanted.refresh(table(5))
        assert driven.to_files(tmp_path / "out", availableNow=True).awaitTermination(120)

    run(tw.lookup(table(0), on="k"), refresh=True)
    assert sorted(row["k"] for row in spark.read.parquet(f"{tmp_path}/out").collect()) == [0, 1, 2, 3, 4]
    spark.range(10, 13).toDF("k").write.parquet(f"{tmp_path}/in/1")
    run(tw.lookup(table(11), on="k"), refresh=False)
    found = sorted(row["k"] for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert found == [0, 1, 2, 3, 4, 10, 12]


def test_a_refresh_that_fails_changes_nothing() -> None:
    wanted = tw.lookup(table(1), on="k")
    with pytest.raises(ValueError, match="more than once"):
        wanted.refresh(table(2, 2))
    with pytest.raises(TypeError, match="a stored table is a DataFrame"):
        wanted.refresh([3])
    assert wanted.keys.contains([pa.array([1, 2])]).to_pylist() == [True, False]


def test_a_table_whose_columns_change_under_a_running_query(spark: SparkSession, tmp_path: Path) -> None:
    """The refresh is refused, and the query goes on with the table that it had."""
    stored = str(tmp_path / "stored")
    spark.range(3).toDF("k").write.parquet(stored)
    spark.range(6).toDF("k").coalesce(1).write.parquet(f"{tmp_path}/in/0")
    wanted = tw.lookup(stored, on="k")
    source = spark.readStream.schema("k long").parquet(f"{tmp_path}/in/*")
    query = tw.stream(source, tw.not_(wanted), checkpoint=tmp_path / "checkpoint").to_files(tmp_path / "out")
    query.processAllAvailable()
    spark.range(6).toDF("renamed").write.mode("overwrite").parquet(stored)
    with pytest.raises(ValueError, match="the stored table has no column 'k'; it has renamed"):
        wanted.refresh()
    spark.range(6).selectExpr("string(id) AS k").write.mode("overwrite").parquet(stored)
    with pytest.raises(TypeError, match="predicate 'k in stored': key 'k' of the lookup table is string"):
        wanted.refresh()
    spark.range(2, 8).toDF("k").coalesce(1).write.parquet(f"{tmp_path}/in/1")
    query.processAllAvailable()
    query.stop()
    found = sorted(row["k"] for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert found == [3, 3, 4, 4, 5, 5, 6, 7]


def test_columns_that_are_brought_keep_their_types() -> None:
    wanted = StoredTable(pa.table({"k": [1], "v": [1.5]}), ("k",), ("v",), "p")
    wanted.refresh(pa.table({"k": pa.array([2], pa.int32()), "v": ["a"]}))  # no query has read it
    assert wanted.current.table["v"].to_pylist() == ["a"]
    with pytest.raises(TypeError, match="column 'v' of the stored table was string and is int64"):
        wanted.refresh(pa.table({"k": [3], "v": [7]}))
    wanted.refresh(pa.table({"k": [3], "v": ["b"]}))
    assert wanted.current.table["v"].to_pylist() == ["b"]


def test_threads_see_one_version_or_the_other() -> None:
    wanted = StoredTable(table(0, 100), ("k",), (), "p")
    seen, stop = list[list[bool]](), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.append(wanted.current.keys.contains([pa.array([0, 1, 100])]).to_pylist())

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(50):
        wanted.refresh(table(1 - number % 2, 100))
    stop.set()
    for thread in threads:
        thread.join()
    assert {tuple(each) for each in seen} <= {(True, False, True), (False, True, True)}


class Tables(RuleBasedStateMachine):
    """Tables of one name in two folders, as tasks see them: more steps than `test_state_machine.py` runs on Spark."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[tuple[StoredTable, set[int]]] = []
        self.queries: list[tuple[Callable[[], Any], int]] = []  # what a task gets, and its table

    keys = st.sets(st.integers(0, 9), max_size=6)
    folders = st.sampled_from(["first", "second"])

    @initialize()
    def start(self) -> None:
        import tempfile

        self.root = Path(tempfile.mkdtemp(prefix="thalweg-test-"))

    @rule(keys=keys)
    def make_table(self, keys: set[int]) -> None:
        self.tables.append((StoredTable(table(*keys), ("k",), (), "always the same name"), keys))

    @rule(keys=keys, which=st.integers(0, 5))
    def refresh(self, keys: set[int], which: int) -> None:
        if not self.tables:
            return
        number = which % len(self.tables)
        stored, _ = self.tables[number]
        stored.refresh(table(*keys))
        self.tables[number] = stored, keys

    @rule(which=st.integers(0, 5), folder=folders)
    def start_query(self, which: int, folder: str) -> None:
        """A query in a state folder: each of its tasks gets the keys as they were pickled at the start."""
        if not self.tables:
            return
        number = which % len(self.tables)
        pickled, arguments = self.tables[number][0].in_workers(str(self.root / folder)).__reduce__()
        self.queries.append((lambda: pickled(*arguments), number))

    @rule(folder=folders)
    def reset_folder(self, folder: str) -> None:
        tw.reset(self.root / folder)

    @rule()
    def start_worker(self) -> None:
        """A new worker process knows nothing."""
        stored_keys._tables.clear()  # noqa: SLF001 - what a process remembers
        stored_keys._refreshed.clear()  # noqa: SLF001

    @rule()
    def restart_program(self) -> None:
        """The queries end; new ones of the same names in the same folders must not see what they left."""
        self.tables.clear()
        self.queries.clear()

    @invariant()
    def every_query_sees_its_own_table(self) -> None:
        for task, number in self.queries:
            keys = task()
            keys.begin_task()
            expected = [key in self.tables[number][1] for key in range(10)]
            assert keys(pa.array(range(10))).to_pylist() == expected


Tables.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None
)
TestTables = Tables.TestCase
