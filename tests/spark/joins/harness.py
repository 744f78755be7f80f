"""Rows of streams as files, the answer of DuckDB to a join of them, and how a join of them runs on Spark."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, patch

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from thalweg.mjoin.pack import unpack
from thalweg.spark.joins.messages import Message
from thalweg.spark.joins.spec import JoinSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECOND = 1_000_000  # microseconds
START = 1_000_000_000 * SECOND
BATCH_SECONDS = 10
AT_THE_END = -1  # the value of rows that end streams
TOO_SLOW = "Python worker failed to connect back"  # within the ten seconds of Spark: the machine is very busy
Batches = Mapping[str, Sequence[pa.Table]]


def made(names: Sequence[str], batches: int, rows: int, seed: int = 0, keys: int = 6) -> dict[str, list[pa.Table]]:
    """Random rows with duplicates, NULL keys and times out of order by up to four seconds between batches."""
    random = np.random.default_rng(seed)
    found: dict[str, list[pa.Table]] = {}
    for name in names:
        for batch in range(batches):
            times = START + batch * BATCH_SECONDS * SECOND + random.integers(0, 14 * SECOND, rows)
            found.setdefault(name, []).append(
                pa.table(
                    {
                        "k": pa.array(random.integers(0, keys, rows), mask=random.random(rows) < 0.1),
                        "l": pa.array(random.integers(0, keys, rows).astype(str)),
                        "m": pa.array(random.integers(0, keys, rows).astype(np.int32)),
                        "v": random.integers(0, 1000, rows),
                        "ts": pa.array(times, pa.timestamp("us", "UTC")),
                    }
                )
            )
    return found


def write(batches: Batches, folder: Path) -> None:
    """A file for each batch, oldest first for a stream that reads a file at a time."""
    for name, tables in batches.items():
        for number, table in enumerate(tables):
            path = folder / name / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(table, path)
            os.utime(path, (10**9 + number, 10**9 + number))


def stream(spark: SparkSession, folder: Path, name: str, files: int = 1) -> DataFrame:
    """The files of a folder, so many a micro-batch."""
    schema = spark.read.parquet(str(folder / name)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder / name))


def answer(
    batches: Batches, on: str, windows: Mapping[str, int | None], *, current_at: int | None = None
) -> Counter[tuple[Any, ...]]:
    """The results by the values of `v`, in the order of the names; of the current join, if a watermark is given."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, tables in batches.items():
            connection.register(name, pa.concat_tables(tables))
        timed = [name for name, window in windows.items() if window is not None]
        latest = f"greatest({', '.join(f'{name}.ts' for name in timed)}, {timed[0]}.ts)"
        conditions = [f"{latest} - {name}.ts < INTERVAL {windows[name]} SECONDS" for name in timed]
        if current_at is not None:
            conditions += [f"epoch_us({name}.ts) > {current_at - (windows[name] or 0) * SECOND}" for name in timed]
        values = ", ".join(f"{name}.v" for name in batches)
        found = connection.execute(
            f"SELECT {values} FROM {', '.join(batches)} WHERE {on} AND {' AND '.join(conditions)}"  # noqa: S608 - ours
        ).fetchall()
    return Counter(found)


def given(rows: Sequence[Any], names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[f"{name}_v"] for name in names) for row in rows)


def run(joined: DataFrame, folder: Path, tries: int = 2) -> StreamingQuery:
    """Run a stream to the end of its files into a folder of files."""
    from pyspark.errors import StreamingQueryException

    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if TOO_SLOW not in str(error) or not tries:
            raise
        return run(joined, folder, tries - 1)
    return query


def made_with_an_end(names: str) -> dict[str, list[pa.Table]]:
    """Random rows and, much later, a row of each stream that matches nothing and moves the watermark."""
    batches = made(names, 3, 40)
    for number, name in enumerate(names):
        end = pa.table(
            {
                "k": pa.array([1000 + number]),
                "l": pa.array([name]),
                "m": pa.array([3], pa.int32()),
                "v": pa.array([AT_THE_END]),
                "ts": pa.array([START + 100 * BATCH_SECONDS * SECOND], pa.timestamp("us", "UTC")),
            }
        )
        batches[name].append(end)
    return batches


def sql(batches: Batches, text: str) -> list[tuple[Any, ...]]:
    """The answer of DuckDB to a query."""
    with duckdb.connect() as connection:
        for name, tables in batches.items():
            connection.register(name, pa.concat_tables(tables))
        return connection.execute(text).fetchall()


class FakeState:
    """The state of a cell, which can be copied, so that a micro-batch can be repeated."""

    def __init__(self, value: tuple[Any, ...] | None = None, segments: dict[Any, Any] | None = None) -> None:
        self.value, self.segments = value, dict(segments or {})

    def handle(self) -> Mock:
        handle = Mock()
        value, segments = handle.getValueState.return_value, handle.getMapState.return_value
        value.get.side_effect = lambda: self.value
        value.update.side_effect = lambda new: setattr(self, "value", new)
        segments.exists.side_effect = lambda: bool(self.segments)
        segments.getValue.side_effect = self.segments.get
        segments.updateValue.side_effect = self.segments.__setitem__
        segments.removeKey.side_effect = self.segments.pop
        return handle

    def copy(self) -> FakeState:
        return FakeState(self.value, self.segments)


def step_cell(
    spec: JoinSpec, state: FakeState, batch: int, messages: Sequence[Message], watermark: int = 0
) -> list[dict[str, Any]]:
    """The results of a micro-batch of the operator, without Spark; the watermark is in milliseconds."""
    import pandas as pd

    from thalweg.spark.joins import operator

    timers = Mock()
    timers.getCurrentWatermarkInMs.return_value = watermark
    timers.getCurrentProcessingTimeInMs.return_value = 0
    columns = ([str(each.kind) for each in messages], [each.input for each in messages], [m.payload for m in messages])
    rows = pd.DataFrame(dict(zip(("kind", "input", "payload"), columns, strict=True)))
    properties = {"streaming.sql.batchId": str(batch), "sql.streaming.queryId": "query"}
    with patch.object(operator, "task_property", lambda name: properties.get(name, "")):
        processor = operator.JoinProcessor(spec)
        processor.init(state.handle())
        results = [
            unpack(payload)
            for frame in processor.handleInputRows((spec.layout.labels[0],), iter([rows]), timers)
            for payload in frame["payload"]
        ]
        processor.close()
    return [row for part in results for row in part.to_pylist()]
