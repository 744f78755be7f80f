"""Rows that come too late for a query: they are counted, and kept aside exactly once with all their columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    QueryText,
    expected,
    late_places,
    late_rows,
    late_rows_in_folder,
    rows_in_folder,
    rows_kept_aside,
    with_end,
    write_files,
)

import thalweg as tw
from thalweg.spark.folder import StateFolder
from thalweg.spark.session.position import SessionPosition, save_position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 240  # that a test waits for Spark on a busy machine
SHORT = QueryText("SELECT x FROM A WHERE x > 3", 5)  # does not read the columns k and s
LONG = QueryText("SELECT k, count(*) AS n FROM A GROUP BY k", 20)
JOINED = QueryText("SELECT A.x, B.y FROM A JOIN B ON A.k = B.k", 10)
QUERIES = {"short": SHORT, "long": LONG, "joined": JOINED}


def batch(number: int, *late: int) -> Batch:
    """Rows of ten seconds of each stream, and then rows of A of other seconds."""
    times = [(10 * number + offset) * SECOND for offset in (1, 4, 9)] + [second * SECOND for second in late]
    return {
        "A": [(place % 2, number + place, "ab"[place % 2], time) for place, time in enumerate(times)],
        "B": [(place % 2, place, time) for place, time in enumerate(times[:3])],
    }


BATCHES = with_end([batch(0), batch(1), batch(2, 3, 12, 19), batch(3, 21), batch(4, 2, 38, 44)])


class KilledError(Exception):
    """What ends a micro-batch before its position is saved."""


def test_late_rows_are_counted_for_each_query_and_kept_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends in the middle of a micro-batch whose late rows were written, and is started again."""
    driver = Driver(spark, tmp_path, late=tmp_path / "late")
    write_files(tmp_path, BATCHES)

    def save_some(folder: StateFolder, position: SessionPosition) -> None:
        if position.batch == 2:
            raise KilledError("there is no power")
        save_position(folder, position)

    def start(session: tw.Session) -> None:
        for name, query in QUERIES.items():
            session.query(str(query), name=name, to=tmp_path / name)
        session.start(availableNow=True)

    with monkeypatch.context() as patch:
        patch.setattr("thalweg.spark.session.engine.save_position", save_some)
        start(driver.session)
        with pytest.raises(Exception, match="there is no power"):
            driver.session.await_termination(SECONDS)
    assert late_rows_in_folder(tmp_path / "late" / "A")  # of the micro-batch that is run again
    session = driver.open()
    start(session)
    assert session.await_termination(SECONDS)
    about = {query["name"]: query for query in tw.explain(session).to_dict()["sessions"][0]["queries"]}
    for name, query in QUERIES.items():
        assert about[name]["late_rows"] == late_rows(query, BATCHES) > 0
        assert rows_in_folder(tmp_path / name) == expected(query, BATCHES)
    assert len({frozenset(late_places(query, BATCHES, "A")) for query in QUERIES.values()}) == len(QUERIES)
    assert late_rows_in_folder(tmp_path / "late" / "A") == rows_kept_aside(QUERIES.values(), BATCHES, "A")
    assert not (tmp_path / "late" / "B").exists()
    file = next((tmp_path / "late" / "A").glob("*/*.parquet"))
    assert parquet.read_schema(file).names == ["k", "x", "s", "ts"]


def test_rows_in_time_are_not_late_for_a_query_that_is_added_or_resumed(spark: SparkSession, tmp_path: Path) -> None:
    """Its first round is one of which no row has come: it does not take the rows of the round before, which go on."""
    driver = Driver(spark, tmp_path, late=tmp_path / "late")
    paused = driver.session.query(str(LONG))
    driver.run(BATCHES[0])
    paused.pause()
    added = driver.session.query(str(LONG))
    driver.run(BATCHES[1])
    paused.resume()
    driver.run(*BATCHES[2:])
    assert driver.engine is not None
    for query in (paused, added):
        assert driver.engine.position.queries[query.compiled.token].late == late_rows(LONG, BATCHES) > 0
    assert late_rows_in_folder(tmp_path / "late" / "A") == rows_kept_aside([LONG], BATCHES, "A")


def test_a_single_word_is_no_folder_for_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"late is 'count', or a folder .* write './counted'"):
        tw.Session(spark, checkpoint=tmp_path, late="counted")


def test_columns_that_cannot_be_kept_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp", "INTERVAL '1' MONTH AS month")
    tw.Session(spark, checkpoint=tmp_path).stream("R", stream, event_time="timestamp")
    with pytest.raises(TypeError, match="column 'month' of stream 'R'"):
        tw.Session(spark, checkpoint=tmp_path, late=tmp_path / "late").stream("R", stream, event_time="timestamp")
