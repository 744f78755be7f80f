"""The worked example of section 3.1 of om-plan-charts-2005, as a user runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000  # microseconds
SECONDS = 240  # that a test waits for Spark on a busy machine
PRINTED = [(10, 1), (7, 2), (8, 3), (25, 4), (10, 5), (8, 6), (9, 7), (26, 8), (11, 9), (7, 10), (20, 11)]
TIMES = [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]  # of these tuples, in seconds
LATER = ((0, 0), 61)  # a tuple that ends the third round
ROWS_A_FILE = 4


def test_the_rounds_of_section_3_1(spark: SparkSession, tmp_path: Path) -> None:
    """Selection a1 >= 10, then projection on a1, with a window of 20 seconds; the paper prints each round as a set."""
    (tmp_path / "s").mkdir()
    rows = [*zip(PRINTED, TIMES, strict=True), LATER]
    for first in range(0, len(rows), ROWS_A_FILE):
        listed = [{"a1": a1, "a2": a2, "ts": time * SECOND} for (a1, a2), time in rows[first : first + ROWS_A_FILE]]
        table = pa.Table.from_pylist(listed)
        file = tmp_path / "s" / f"{first}.parquet"
        parquet.write_table(table.set_column(2, "ts", table["ts"].cast(pa.timestamp("us", "UTC"))), file)
        os.utime(file, (10**9 + first, 10**9 + first))  # Spark reads the oldest files first
    reader = spark.readStream.schema("a1 long, a2 long, ts timestamp").option("maxFilesPerTrigger", 1)

    session = tw.Session(spark, checkpoint=tmp_path / "checkpoint")
    session.stream("s", reader.parquet(str(tmp_path / "s")), event_time="ts")
    query = session.query("SELECT s.a1 FROM s WHERE s.a1 >= 10 WINDOW [20 seconds]")
    session.start(availableNow=True)
    assert session.await_termination(SECONDS)

    results = query.results()
    assert results is not None
    rounds: dict[tuple[int, int], list[int]] = {}
    for start, end, a1 in zip(*(column.to_pylist() for column in results.columns), strict=True):
        rounds.setdefault((round(start.timestamp()), round(end.timestamp())), []).append(a1)
    assert {bounds: sorted(found) for bounds, found in rounds.items()} == {
        (0, 20): [10, 10, 25],
        (20, 40): [11, 26],
        (40, 60): [20],
    }
