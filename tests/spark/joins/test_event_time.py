"""Joins followed by stateful operators: results have an event time with a watermark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.joins.harness import made_with_an_end, run, sql, stream, write

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS: dict[str, Any] = {"windows": "8 seconds", "event_time": "ts", "delay": "4 seconds", "cells": 2}
AT_ONCE = "greatest(A.ts, B.ts) - least(A.ts, B.ts) < INTERVAL 8 SECONDS"


@pytest.mark.parametrize(
    ("event_time_of", "time"),
    [("latest", "greatest(A.ts, B.ts)"), pytest.param("A", "A.ts", marks=pytest.mark.thorough)],
)
def test_windows_of_results_are_counted_in_append_mode(
    rocks: SparkSession, tmp_path: Path, event_time_of: str, time: str
) -> None:
    from pyspark.sql import functions as f

    batches = made_with_an_end("AB")
    write(batches, tmp_path)
    streams = {name: stream(rocks, tmp_path, name) for name in "AB"}
    joined = tw.join(streams, "A.k = B.k", **OPTIONS, select=["A.v"], event_time_of=event_time_of)
    assert joined.columns == ["A_v", "event_time"]
    counts = joined.groupBy(f.window("event_time", "3 seconds")).count().select("window.start", "count")
    query = run(counts, tmp_path)
    assert sum(each.numRowsDroppedByWatermark for step in query.recentProgress for each in step.stateOperators) == 0
    found = rocks.read.parquet(str(tmp_path / "out")).selectExpr("unix_micros(start)", "count").collect()
    expected = sql(
        batches,
        f"SELECT epoch_us({time}) // 3000000 * 3000000 AS start, count(*) FROM A JOIN B ON A.k = B.k "  # noqa: S608
        f"WHERE {AT_ONCE} GROUP BY start",
    )
    assert expected
    assert Counter(map(tuple, found)) == Counter(expected)


@pytest.mark.thorough
def test_a_join_follows_a_join(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made_with_an_end("ABC")
    write(batches, tmp_path)
    streams = {name: stream(rocks, tmp_path, name) for name in "ABC"}
    first = tw.join(
        {"A": streams["A"], "B": streams["B"]}, "A.k = B.k", **OPTIONS, select=["A.v AS a", "B.v AS b", "B.l AS l"]
    )
    both = tw.join(
        {"AB": first, "C": streams["C"]},
        "AB.l = C.l",
        windows="5 seconds",
        event_time={"AB": "event_time", "C": "ts"},
        delay="4 seconds",
        cells=2,
        select=["AB.a AS a", "AB.b AS b", "C.v AS c"],
    )
    run(both, tmp_path)
    found = rocks.read.parquet(str(tmp_path / "out")).select("a", "b", "c").collect()
    expected = sql(
        batches,
        f"""SELECT A.v, B.v, C.v FROM A, B, C WHERE A.k = B.k AND B.l = C.l AND {AT_ONCE}
        AND abs(epoch_us(greatest(A.ts, B.ts)) - epoch_us(C.ts)) < 5000000""",  # noqa: S608 - ours
    )
    assert expected
    assert Counter(map(tuple, found)) == Counter(expected)


def test_errors_say_what_to_write(rocks: SparkSession) -> None:
    rate = rocks.readStream.format("rate").load().selectExpr("value", "timestamp AS ts", "value AS event_time")
    streams = {"a": rate, "b": rate}
    arguments: dict[str, Any] = {"on": "a.value = b.value", "event_time": "ts", "windows": "1 minute"}
    with pytest.raises(
        ValueError, match=r"event_time_of is 'c'.* Write 'latest', None, or a stream that has a time: a"
    ):
        tw.join(streams, **arguments, event_time_of="c")
    with pytest.raises(ValueError, match=r"is called 'event_time', as its event time is; give it another name"):
        tw.join(streams, **arguments, select=["a.event_time AS event_time"])
    marked = {"a": rate.withWatermark("ts", "1 minute"), "b": rate}
    with pytest.raises(ValueError, match="a has withWatermark already; leave that out, and write delay= instead"):
        tw.join(marked, **arguments, event_time_of="a")
    never = {"windows": {"a": None, "b": "1 minute"}}
    with pytest.raises(ValueError, match=r"whose window is not a duration.* write event_time_of='latest'"):
        tw.join(streams, **arguments | never, event_time_of="a")
    without = tw.join(streams, **arguments, event_time_of=None, select=["a.event_time AS event_time"])
    assert without.columns == ["event_time"]
