"""Streams of packets as files, and standing queries over them: the work of all contenders.

Every micro-batch holds whole rounds: its times are in (b * SECONDS, (b + 1) * SECONDS]. So a program that works on
micro-batches alone has the same results as one that knows rounds. After the last micro-batch comes a row of each stream
that no query selects, much later, so that all rounds end. Such a row may also come at the end of each micro-batch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

STREAMS = ("TCP", "UDP", "SF")
SECONDS = 10  # of event time in a micro-batch; windows divide it
SECOND = 1_000_000  # microseconds
HOSTS = 1000
SMALLEST, LARGE, LARGEST = 40, 1000, 1500  # sizes of packets; a large packet has a larger size than LARGE
FLAGS = ("S", "SA", "F", "R", "P")
COLUMNS = ("ts", "src", "dest", "size", "flags")

TEN = {
    "tcp to 2": "SELECT src, dest FROM TCP WHERE dest = 2 WINDOW [1]",
    "tcp large": "SELECT src, dest, size FROM TCP WHERE size > 1400 WINDOW [1]",
    "tcp by source": "SELECT src, count(*) AS n, sum(size) AS total FROM TCP WHERE dest < 50 GROUP BY src WINDOW [2]",
    "udp to 2": "SELECT src, dest FROM UDP WHERE dest = 2 WINDOW [1]",
    "udp by host": "SELECT dest, max(size) AS largest FROM UDP WHERE size > 700 GROUP BY dest WINDOW [5]",
    "small syn": "SELECT src, dest, size FROM SF WHERE flags LIKE 'S%' AND size < 100 WINDOW [1]",
    "sf to 2": "SELECT count(*) AS n FROM SF WHERE dest = 2 WINDOW [1]",
    "replies": (
        "SELECT TCP.src AS host, UDP.size AS size FROM TCP, UDP "
        "WHERE TCP.src = UDP.dest AND TCP.dest = 2 AND UDP.size > 1000 WINDOW [1]"
    ),
    "three": (
        "SELECT TCP.src AS host, UDP.size AS udp_size, SF.size AS sf_size FROM TCP, UDP, SF "
        "WHERE TCP.src = UDP.dest AND UDP.dest = SF.dest AND TCP.dest < 20 AND UDP.size > 1400 AND SF.size < 80 "
        "WINDOW [1]"
    ),
    "by host": (
        "SELECT TCP.dest AS dest, count(*) AS n FROM TCP, SF WHERE TCP.src = SF.src AND SF.size > 1450 "
        "AND TCP.size > 1400 GROUP BY TCP.dest WINDOW [5]"
    ),
}


def hundred() -> dict[str, str]:
    """A hundred queries of one stream, from twenty distinct conditions."""
    conditions = [
        *(f"dest = {host}" for host in range(5)),
        *(f"size > {size}" for size in (700, 900, 1100, 1300, 1450)),
        *(f"src < {host}" for host in (10, 30, 100, 300)),
        *(f"flags = '{flag}'" for flag in FLAGS),
        "flags LIKE 'S%'",
    ]
    columns = ("src", "dest", "size", "flags", "src, size")
    random = np.random.default_rng(7)
    queries = {}
    for number in range(100):
        first, second = random.choice(len(conditions), 2, replace=False).tolist()
        picked = columns[number % len(columns)]
        queries[f"q{number}"] = (
            f"SELECT {picked} FROM TCP WHERE {conditions[first]} AND {conditions[second]} WINDOW [1]"  # noqa: S608 - ours
        )
    return queries


@dataclass(frozen=True)
class Packets:
    """How many rows each stream has in each micro-batch, and which."""

    rows: Mapping[str, Sequence[int]]
    large: Mapping[str, Sequence[float]] | None = None  # shares of large packets; without it all sizes are as frequent
    hosts: int = HOSTS
    ends_rounds: bool = False  # whether all rounds of a micro-batch end in it, and not with the next one's first row

    @property
    def batches(self) -> int:
        """How many micro-batches there are, without the last one that only ends rounds."""
        return len(next(iter(self.rows.values())))


def packets(
    stream: str, batch: int, rows: int, hosts: int = HOSTS, large: float | None = None, seed: int = 0
) -> pa.Table:
    """The rows of a stream in a micro-batch, in order of time; `large` is the share of large packets."""
    random = np.random.default_rng([STREAMS.index(stream), batch, *([seed] if seed else [])])
    offsets = np.sort(random.integers(1, SECONDS * SECOND + 1, rows))
    src = random.integers(0, hosts, rows)
    dest = (hosts * random.random(rows) ** 2).astype(np.int64)
    size = random.integers(SMALLEST, LARGEST + 1, rows)
    flags = random.integers(0, len(FLAGS), rows)
    if large is not None:
        is_large = random.random(rows) < large
        size = np.where(
            is_large, random.integers(LARGE + 1, LARGEST + 1, rows), random.integers(SMALLEST, LARGE + 1, rows)
        )
    return _table(offsets + batch * SECONDS * SECOND, src, dest, size, flags)


@contextmanager
def files(work: Packets) -> Iterator[str]:
    """The streams as folders of files, a file for each micro-batch."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-", ignore_cleanup_errors=True) as folder:
        for stream, counts in work.rows.items():
            Path(folder, stream).mkdir()
            for batch, rows in enumerate(counts):
                large = None if work.large is None else work.large[stream][batch]
                table = packets(stream, batch, rows, work.hosts, large)
                if work.ends_rounds:
                    table = pa.concat_tables([table, row_that_ends_rounds((batch + 1) * SECONDS)])
                _write(Path(folder, stream, f"{batch:06d}.parquet"), table, batch)
            last = row_that_ends_rounds((work.batches + 10) * SECONDS)
            _write(Path(folder, stream, f"{work.batches:06d}.parquet"), last, work.batches)
        yield folder


def row_that_ends_rounds(second: int) -> pa.Table:
    """A row right after a second that no query selects."""
    row = {"ts": second * SECOND + 1, "src": 10**6, "dest": 10**6, "size": 500, "flags": None}
    return pa.Table.from_pylist([row], packets(STREAMS[0], 0, 1).schema)


def _table(times: np.ndarray, src: np.ndarray, dest: np.ndarray, size: np.ndarray, flags: np.ndarray) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "src": src,
            "dest": dest,
            "size": size,
            "flags": pa.DictionaryArray.from_arrays(pa.array(flags, pa.int8()), list(FLAGS)).cast(pa.string()),
        }
    )


def _write(path: Path, table: pa.Table, batch: int) -> None:
    parquet.write_table(table, path)
    os.utime(path, (10**9 + batch, 10**9 + batch))  # Spark reads the oldest first
