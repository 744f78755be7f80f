"""Sessions as users run them: on streams, with restarts, stops, and errors in what they are told."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    Episode,
    QueryText,
    expected,
    read_all,
    rows_in_folder,
    rows_in_memory,
    with_end,
    write_files,
)

import thalweg as tw
from thalweg.spark.session.program import Program
from thalweg.sql.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECONDS = 240  # that a test waits for Spark on a busy machine
ALL = QueryText("SELECT k, x, s FROM A", 5)
LARGE = QueryText("SELECT k, count(*) AS n FROM A WHERE x > 3 GROUP BY k", 10, 5)
JOINED = QueryText("SELECT A.x, B.y, label FROM A JOIN B ON A.k = B.k JOIN T ON A.k = T.k WHERE is_odd(x)", 10)


def batch(number: int) -> Batch:
    """Rows of four seconds each, some of them earlier."""
    times = [(4 * number + offset) * SECOND for offset in (1, 4, -3, 2)]
    return {
        "A": [(place % 3, number + place, "ab"[place % 2], moment) for place, moment in enumerate(times)],
        "B": [(place % 3, place, moment) for place, moment in enumerate(times)],
    }


BATCHES = with_end([batch(number) for number in range(4)])


def wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.thorough
def test_restarts_with_other_queries(spark: SparkSession, tmp_path: Path) -> None:
    """The same queries go on, new ones begin with unseen rounds, and removed ones are gone."""
    driver = Driver(spark, tmp_path)
    write_files(tmp_path, BATCHES[:2])

    def run(session: tw.Session) -> None:
        session.start(availableNow=True)
        assert session.await_termination(SECONDS)

    for text, name in [(ALL, "all"), (JOINED, "joined"), (LARGE, "large")]:
        driver.session.query(str(text), to=tmp_path / name)
    run(driver.session)
    session = driver.open()
    session.query(str(LARGE), to=tmp_path / "large")
    session.query(str(JOINED).lower().replace("t.k", "T.k"), to=tmp_path / "joined")  # by meaning, not by layout
    added = session.query("SELECT count(*) AS n FROM A WINDOW [5]")
    write_files(tmp_path, BATCHES)
    run(session)
    assert rows_in_folder(tmp_path / "all") == expected(ALL, BATCHES, [Episode(0, 2)])
    assert rows_in_folder(tmp_path / "large") == expected(LARGE, BATCHES)
    assert rows_in_folder(tmp_path / "joined") == expected(JOINED, BATCHES)
    count = QueryText("SELECT count(*) AS n FROM A", 5)
    assert rows_in_memory(added) == expected(count, BATCHES, [Episode(2, len(BATCHES))])


@pytest.mark.thorough
def test_a_stop_fails_no_query(spark: SparkSession, tmp_path: Path) -> None:
    """The micro-batch that is cut off is run again."""
    waits, goes = tmp_path / "waits", tmp_path / "goes"

    @tw.predicate(takes="numpy", name="waits")
    def wait(value: Any) -> Any:  # noqa: ANN401 - an array of NumPy
        waits.touch()
        while not goes.exists():
            time.sleep(0.02)
        return value > 0

    driver = Driver(spark, tmp_path)
    write_files(tmp_path, BATCHES)

    def add_queries(session: tw.Session) -> None:
        session.predicate("waits", wait)
        session.query(str(ALL), to=tmp_path / "all")
        session.query("SELECT x FROM A WHERE waits(x) WINDOW [5]", to=tmp_path / "waiting")

    add_queries(driver.session)
    driver.session.start(availableNow=True)
    wait_for(waits.exists)
    driver.session.stop()
    goes.touch()
    session = driver.open()
    add_queries(session)
    session.start(availableNow=True)
    assert session.await_termination(SECONDS)
    assert "failed" not in str(session.explain())
    positive = QueryText("SELECT x FROM A WHERE x > 0", 5)
    assert rows_in_folder(tmp_path / "all") == expected(ALL, BATCHES)
    assert rows_in_folder(tmp_path / "waiting") == expected(positive, BATCHES)


def test_control_of_a_session_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Queries come, go, rest and change between micro-batches of a running stream, and disturb no other query."""
    driver = Driver(spark, tmp_path)
    session = driver.session
    steady = session.query(str(ALL), to=tmp_path / "all")
    paused = session.query(str(LARGE))
    removed = session.query("SELECT count(*) AS n FROM A WINDOW [5]")
    write_files(tmp_path, BATCHES[:1])
    running = session.start()
    try:
        read_all(running)
        paused.pause()
        removed.remove()
        steady.change(memory_weight=0.1, partitions=4)
        added = session.query("SELECT k FROM A WHERE x > 3 WINDOW [5]", name="added")
        write_files(tmp_path, BATCHES[1:2], 1)
        read_all(running)
        paused.resume()
        write_files(tmp_path, BATCHES[2:], 2)
        read_all(running)
    finally:
        session.stop()
    count, few = QueryText("SELECT count(*) AS n FROM A", 5), QueryText("SELECT k FROM A WHERE x > 3", 5)
    assert rows_in_folder(tmp_path / "all") == expected(ALL, BATCHES)
    assert rows_in_memory(paused) == expected(LARGE, BATCHES, [Episode(0, 1), Episode(2, len(BATCHES))])
    assert rows_in_memory(removed) == expected(count, BATCHES, [Episode(0, 1)])
    assert rows_in_memory(added) == expected(few, BATCHES, [Episode(1, len(BATCHES))])
    assert [query.name for query in session.queries] == [steady.name, paused.name, "added"]


def test_spark_connect_is_refused_in_one_line(tmp_path: Path) -> None:
    connected: Any = SimpleNamespace()  # a session of Connect has no session of the JVM
    with pytest.raises(TypeError, match=r"^tw.Session needs a classic session: .* with tw.where or tw.join$"):
        tw.Session(connected, checkpoint=tmp_path)


def test_conditions_are_shared(spark: SparkSession, tmp_path: Path) -> None:
    session = Driver(spark, tmp_path).session
    texts = [
        "SELECT k FROM A WHERE x > 5 AND s = 'a' WINDOW [5]",
        "SELECT p.x FROM A AS p WHERE p.s = 'a' AND 10 / p.k > 2 WINDOW [5]",
        "SELECT p.x FROM A AS p, A AS q WHERE p.k = q.k AND q.x > 5 WINDOW [10]",
    ]
    queries = [session.query(text).compiled for text in texts]
    assert [each.sql for each in Program(tuple(queries)).conditions] == ["`x` > 5", "`s` = 'a'"]
    assert [query.is_plain for query in queries] == [True, False, False]
    assert Program(tuple(queries)).pane("A") == 5 * SECOND


def test_keys_of_several_types_are_joined_as_written(spark: SparkSession, tmp_path: Path) -> None:
    """'1' = 1 and 1 = '01', but not '1' = '01': no equality follows from others, and Thalweg's own join is left out."""
    session = Driver(spark, tmp_path).session
    text = "SELECT p.x FROM A AS p, B, A AS q WHERE p.{0} = B.k AND B.k = q.{0} WINDOW [5]"
    same, several = (session.query(text.format(key)).compiled.space for key in ("k", "s"))
    assert sum("MultiJoin" in repr(join) for join in same.joins) == 1
    assert not any("MultiJoin" in repr(join) for join in several.joins)
    assert len(several.joins) < len(same.joins) - 1  # p and q first needs an equality that is not written


# ---------------------------------------------------------------------------------------------------- what is refused


def refusals(spark: SparkSession, session: tw.Session) -> list[tuple[type[Exception], str, Callable[[], object]]]:
    """The error, its words, and what is refused."""
    table = spark.range(3)
    stream = spark.readStream.format("rate").load()
    return [
        (TypeError, r"write session.table\('R', df\)", lambda: session.stream("R", table, event_time="id")),
        (TypeError, r"write session.stream\('R', df", lambda: session.table("R", stream)),
        (ValueError, "has no column 'ts'", lambda: session.stream("R", stream, event_time="ts")),
        (TypeError, "cast it to timestamp", lambda: session.stream("R", stream, event_time="value")),
        (ValueError, "an identifier", lambda: session.stream("R S", stream, event_time="timestamp")),
        (ValueError, "already", lambda: session.stream("a", stream, event_time="timestamp")),
        (ValueError, "already", lambda: session.table("A", table)),
        (ValueError, "two columns of one name", lambda: session.stream("R", doubled(stream), event_time="timestamp")),
        (TypeError, "tw.predicate", lambda: session.predicate("odd", lambda value: value)),  # type: ignore[arg-type]
        (ValueError, "an identifier", lambda: session.predicate("is odd", tw.predicate(lambda value: value))),
        (ValueError, "already", lambda: session.predicate("Is_Odd", tw.predicate(lambda value: value))),
        (TypeError, "a DataFrame, not 5", lambda: session.stream("R", 5, event_time="ts")),  # type: ignore[arg-type]
        (TypeError, "a DataFrame, not 5", lambda: session.table("R", 5)),  # type: ignore[arg-type]
        (ValueError, "needs a query before it starts", session.start),
        (RuntimeError, "is not running", session.await_termination),
        (ValueError, "no column 'y'", lambda: session.query("SELECT y FROM A WINDOW [5]")),
        (TypeError, "a query is a text", lambda: session.query(5)),  # type: ignore[arg-type]
        (TypeError, "name of a query", lambda: session.query(str(ALL), name=5)),  # type: ignore[arg-type]
        (ValueError, "no data source", lambda: session.query(str(ALL), to=tw.Session.writer("nowhere"))),
        (ValueError, "no data source", lambda: session.query(str(ALL), to=tw.Session.files("results", "nowhere"))),
        (QueryError, "Cannot resolve routine", lambda: session.query("SELECT no_such_thing(x) AS n FROM A WINDOW [5]")),
    ]


def doubled(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("timestamp", "value", "value AS VALUE")


def test_what_cannot_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    session = Driver(spark, tmp_path).session
    for error, words, refused in refusals(spark, session):
        with pytest.raises(error, match=words):
            refused()
    assert session.queries == ()


def test_streams_do_not_change_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    driver.session.query(str(ALL))
    driver.session.start()
    try:
        with pytest.raises(RuntimeError, match="stop it before"):
            driver.session.table("U", spark.range(3))
        with pytest.raises(RuntimeError, match="stop it before"):
            driver.session.start()
    finally:
        driver.session.stop()
