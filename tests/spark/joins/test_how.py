"""Outer, semi and anti joins against DuckDB."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.spark.joins.harness import (
    AT_THE_END,
    SECOND,
    START,
    Batches,
    made,
    made_with_an_end,
    run,
    sql,
    stream,
    write,
)

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOWS = {"A": 12, "B": 5, "C": 8}
CONDITIONS = {  # on one input, on both sides, and on candidates
    "AB": "A.k = B.k AND A.m > 1 AND B.m < 5 AND A.v < B.v + 300",
    "ABC": "A.k = B.k AND B.l = C.l AND A.m > 1 AND B.v <> 500 AND A.v < C.v + 300",
}


def joined(streams: dict[str, DataFrame], how: str, **options: Any) -> DataFrame:  # noqa: ANN401 - of tw.join
    names = "".join(streams)
    selected = "A" if how in {"semi", "anti"} else names
    return tw.join(
        streams,
        on=CONDITIONS[names],
        how=how,
        windows={name: f"{WINDOWS[name]} seconds" for name in names},
        event_time="ts",
        cells=3,
        select=[f"{name}.v AS {name.lower()}" for name in selected],
        **options,
    )


def answer(batches: Batches, how: str) -> Counter[tuple[Any, ...]]:
    """The results of plain SQL, without the rows that end the streams."""
    first, *others = batches
    latest, own = f"greatest({', '.join(f'{name}.ts' for name in batches)})", ", ".join(f"{name}.v" for name in batches)
    ages = [f"{latest} - {name}.ts < INTERVAL {WINDOWS[name]} SECONDS" for name in batches]
    on = " AND ".join([CONDITIONS["".join(batches)], *ages])
    if how in {"semi", "anti"}:
        text = f"SELECT {first}.v FROM {first} {how} JOIN ({' CROSS JOIN '.join(others)}) ON {on}"  # noqa: S608 - ours
    else:
        left, right = (first, others) if how != "right" else (" CROSS JOIN ".join([first, *others[:-1]]), others[-1:])
        text = f"SELECT {own} FROM ({left}) {how} JOIN ({' CROSS JOIN '.join(right)}) ON {on}"  # noqa: S608 - ours
    return Counter(row for row in sql(batches, text) if AT_THE_END not in row)


@pytest.mark.parametrize(
    ("names", "how"), [("AB", "full"), ("ABC", "left"), ("ABC", "semi"), ("ABC", "anti"), ("ABC", "right")]
)
def test_batch_jobs(rocks: SparkSession, names: str, how: str) -> None:
    batches = made_with_an_end(names)
    frames = {name: rocks.createDataFrame(pa.concat_tables(tables)) for name, tables in batches.items()}
    found = joined(frames, how, event_time_of=None).collect()
    expected = answer(batches, how)
    assert expected
    assert Counter(row for row in map(tuple, found) if AT_THE_END not in row) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(("names", "how"), [("AB", "full"), ("ABC", "left_outer"), ("AB", "semi"), ("AB", "anti")])
def test_streams(rocks: SparkSession, tmp_path: Path, names: str, how: str) -> None:
    """And Spark counts the results by time, in append mode: none of them is late."""
    from pyspark.sql import functions as f

    batches = made_with_an_end(names)
    write(batches, tmp_path)
    streams = {name: stream(rocks, tmp_path, name) for name in names}
    results = joined(streams, how, delay="4 seconds")
    columns = [column for column in results.columns if column != "event_time"]
    counted = results.groupBy(f.window("event_time", "1 second"), *columns).count()
    query = run(counted, tmp_path)
    assert sum(each.numRowsDroppedByWatermark for step in query.recentProgress for each in step.stateOperators) == 0
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rocks.read.parquet(str(tmp_path / "out")).collect():
        values = tuple(row[column] for column in columns)
        found[values] += 0 if AT_THE_END in values else row["count"]
    expected = answer(batches, how.removesuffix("_outer"))
    assert expected
    assert +found == expected
    about = tw.explain(query)
    assert f"join that preserves {'A, B' if how == 'full' else 'A'}" in str(about)


def in_windows(batches: Batches, watermark: int) -> dict[str, list[pa.Table]]:
    """The rows that are in their windows at a watermark."""
    return {
        name: [
            table.filter(pc.greater(table["ts"].cast(pa.int64()), watermark - WINDOWS[name] * SECOND))
            for table in tables
        ]
        for name, tables in batches.items()
    }


@pytest.mark.parametrize(
    ("names", "how"),
    [
        ("AB", "full"),
        *(pytest.param("ABC", how, marks=pytest.mark.thorough) for how in ("left", "right", "semi", "anti")),
    ],
)
def test_a_changelog_sums_to_the_current_results_after_each_batch(
    rocks: SparkSession, tmp_path: Path, names: str, how: str
) -> None:
    batches = made(names, 3, 40)
    write(batches, tmp_path)
    streams = {name: stream(rocks, tmp_path, name) for name in names}
    results = joined(streams, how, delay="4 seconds", event_time_of=None, output="changelog")
    changes: dict[int, list[Any]] = {}

    def take(frame: DataFrame, number: int) -> None:
        changes[number] = frame.collect()

    query = results.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination()
    current: Counter[tuple[Any, ...]] = Counter()
    for progress in query.recentProgress:
        number = progress.batchId
        for *values, change in changes[number]:
            current[tuple(values)] += change
        moment = datetime.fromisoformat(progress.eventTime["watermark"])
        watermark = round(moment.timestamp() * SECOND) or START - 100 * SECOND
        history = {name: tables[: number + 1] for name, tables in batches.items()}
        expected = answer(in_windows(history, watermark), how)
        assert expected
        assert min(current.values()) >= 0
        assert +current == expected


def test_errors_say_what_to_write(rocks: SparkSession) -> None:
    rate = rocks.readStream.format("rate").load().selectExpr("value", "timestamp AS ts")
    table = rocks.range(3).selectExpr("id AS value", "current_timestamp() AS ts")
    good: dict[str, Any] = {"on": "a.value = b.value", "event_time": "ts", "windows": "1 minute", "how": "left"}
    streams = {"a": rate, "b": rate}
    for given, changed, message in (
        (streams, {"how": "lefft"}, "how is 'lefft'; did you mean 'left'. Write one of inner, left"),
        ({"a": table, "b": rate}, {}, "preserves the rows of a, which is a table: it is never known"),
        (streams, {"windows": {"a": None, "b": "1 minute"}}, "a stream with the window None: it is never known"),
        (streams, {"on": "a.value = b.value AND a.value % 2 < b.value"}, "decides which rows have a match"),
        (streams, {"how": "semi", "select": ["b.value"]}, "semi joins have the columns of a only, not of b"),
        (streams, {"event_time_of": "b"}, "a row of a without a match has no time of b; write event_time_of='latest'"),
        ({"a": rate.withWatermark("ts", "1 minute"), "b": rate}, {}, "write delay= instead, or event_time_of=None"),
        (streams | {"c": rate}, {"on": "a.value = b.value AND a.value = c.value", "how": "full"}, "join two at a time"),
    ):
        with pytest.raises(ValueError, match=message):
            tw.join(given, **good | changed)
