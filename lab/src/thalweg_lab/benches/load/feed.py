"""Streams of files that come when they are told to: a micro-batch at once, or file after file in real time.

All streams have the same rows: numbered values whose event times follow each other, so that a row has one match in each
other stream, however many rows come together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "value long, timestamp timestamp"
ROW_BYTES = 16  # two numbers
FIRST_SECOND = 1_700_000_000  # of event time
BURST_FILES = 2  # of a stream that come at once: a task for each of two cores
FILES_PER_INTERVAL = 10  # of a stream, in real time
MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class File:
    """A file of each stream, with so many rows in each, and the time at which it came."""

    rows: int
    seconds: tuple[float, float]  # of event time
    came: float


class Feed:
    """Folders of files, a folder for each stream."""

    def __init__(self, folder: str, streams: int) -> None:
        self._waiting = Path(folder, "waiting")  # a place where Spark does not look
        self._streams = [Path(folder, "streams", str(number)) for number in range(streams)]
        for path in (*self._streams, *(self._waiting / stream.name for stream in self._streams)):
            path.mkdir(parents=True)
        self._files = 0
        self._rows = 0  # of each stream
        self._second = 0.0  # of event time
        self._ends: list[tuple[float, int]] = []  # of each file: the end of its event time, and the rows of a stream

    def frames(self, spark: SparkSession) -> list[DataFrame]:
        """The streams."""
        return [spark.readStream.schema(SCHEMA).parquet(str(path)) for path in self._streams]

    def burst(self, rows: int, seconds: float = 1.0) -> int:
        """Let rows come at once, in a second of event time or in several; returns how many rows of all streams came."""
        files = self._write(BURST_FILES, rows, seconds)
        for file, *_ in files:
            self._let_come(file)
        return sum(file_rows for _, file_rows, _ in files) * len(self._streams)

    def pace(self, rate: float, interval: float, intervals: int) -> list[File]:
        """Let rows come in real time, from the next full interval of the clock on; returns the files that came."""
        length = interval / FILES_PER_INTERVAL
        files = self._write(FILES_PER_INTERVAL * intervals, round(rate * interval * intervals), interval * intervals)
        begin = (time.time() // interval + 1) * interval
        came = []
        for place, (file, rows, seconds) in enumerate(files):
            time.sleep(max(begin + (place + 1) * length - time.time(), 0.0))
            self._let_come(file)
            came.append(File(rows, seconds, time.time()))
        return came

    def rows_of_last(self, seconds: float) -> int:
        """How many rows of a stream have event times in the last seconds."""
        return sum(rows for end, rows in self._ends if end > self._second - seconds)

    def _write(self, files: int, rows: int, seconds: float) -> Sequence[tuple[str, int, tuple[float, float]]]:
        """Write files of each stream where Spark does not see them: their names, rows and event times."""
        each, length, written = max(round(rows / len(self._streams) / files), 1), seconds / files, []
        for _ in range(files):
            begin, end = self._second, self._second + length
            times = (FIRST_SECOND + np.linspace(begin, end, each, endpoint=False) + length / each / 2) * MICROSECONDS
            table = pa.table(
                {
                    "value": np.arange(self._rows, self._rows + each),
                    "timestamp": pa.array(times.astype(np.int64), pa.timestamp("us", tz="UTC")),
                }
            )
            name, first = f"{self._files:06d}.parquet", self._waiting / self._streams[0].name
            parquet.write_table(table, first / name, use_dictionary=False)
            moment = 10**9 + self._files
            os.utime(first / name, (moment, moment))  # Spark reads the oldest first
            for stream in self._streams[1:]:
                os.link(first / name, self._waiting / stream.name / name)
            written.append((name, each, (begin, end)))
            self._ends.append((end, each))
            self._files, self._rows, self._second = self._files + 1, self._rows + each, end
        self._second = float(round(self._second))  # of sums of tenths
        return written

    def _let_come(self, file: str) -> None:
        for stream in self._streams:
            (self._waiting / stream.name / file).rename(stream / file)
