"""Streams to join: random rows in batches, each a stretch of event time.

The first batches may be longer, so that the batches after them, which are measured, meet full windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.ordering.types import Integers

BATCH_SECONDS = 10
SECOND = 1_000_000  # microseconds
START = 1_600_000_000 * SECOND
FILL = (3, 3, 3)  # batches that fill a window of ten batches but for one batch

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class StreamKeys:
    """The keys of a stream, each with its number of different values, and the rows in a batch."""

    values: Mapping[str, int]
    rows: int
    zipf: float | None = None  # the exponent of Zipf's law that keys follow; None for uniform keys


@dataclass(frozen=True)
class JoinWorkload:
    """Streams in batches, and their join."""

    on: tuple[tuple[tuple[str, str], ...], ...]  # classes of (stream, column) that are equal
    window: int  # batches, of all streams
    batches: Sequence[Tables]
    how: str = "inner"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(self.batches[0])

    @property
    def condition(self) -> str:
        """The join condition as text."""
        pairs = (pair for equality in self.on for pair in pairwise(equality))
        return " AND ".join(f"{left[0]}.{left[1]} = {right[0]}.{right[1]}" for left, right in pairs)

    @property
    def seconds(self) -> int:
        """The length of the windows in seconds."""
        return self.window * BATCH_SECONDS

    @property
    def query(self) -> JoinQuery:
        """The join, for cells without Spark; the result has the values of all streams."""
        inputs = []
        for name in self.names:
            fields = [pa.field(column, pa.int64()) for column in self.batches[0][name].schema.names]
            inputs.append(Input(name, pa.schema(fields), "ts", TimeWindow(self.seconds * SECOND)))
        return JoinQuery(
            inputs=tuple(inputs),
            equalities=tuple(frozenset(equality) for equality in self.on),
            select=tuple((name, "v", f"{name}_v") for name in self.names),
        )

    def row_bytes(self, name: str) -> int:
        """The bytes of a row of a stream: eight for each column."""
        return 8 * len(self.batches[0][name].schema.names)


def random_batches(
    streams: Mapping[str, StreamKeys], batches: int, fill: Sequence[int] = (), seed: int = 0
) -> list[Tables]:
    """Batches with random keys, after longer batches that fill the windows; `fill` has their lengths in batches."""
    random = np.random.default_rng(seed)
    found: list[Tables] = []
    at = 0
    for length in (*fill, *[1] * batches):
        found.append({name: _table(random, keys, at, length) for name, keys in streams.items()})
        at += length
    return found


def later(batches: Sequence[Tables], by: int) -> list[Tables]:
    """The same rows, later by this many batches."""
    shift = pa.scalar(by * BATCH_SECONDS * SECOND, pa.duration("us"))
    return [
        {
            name: table.set_column(table.schema.get_field_index("ts"), "ts", pc.add(table["ts"], shift))
            for name, table in tables.items()
        }
        for tables in batches
    ]


def _table(random: np.random.Generator, keys: StreamKeys, at: int, length: int) -> pa.Table:
    rows = keys.rows * length
    times = np.sort(random.integers(at * BATCH_SECONDS * SECOND, (at + length) * BATCH_SECONDS * SECOND, rows))
    columns = {name: pa.array(_values(random, keys, values, rows)) for name, values in keys.values.items()}
    columns["v"] = pa.array(random.integers(0, 1000, rows))
    return pa.table(columns | {"ts": pa.array(START + times, pa.timestamp("us", "UTC"))})


def _values(random: np.random.Generator, keys: StreamKeys, values: int, rows: int) -> Integers:
    """Random keys; by Zipf's law the key number n is as frequent as 1 / (n + 1) to the power of its exponent."""
    if keys.zipf is None:
        return random.integers(0, values, rows)
    shares = np.cumsum(np.arange(1, values + 1) ** -keys.zipf)
    found: Integers = np.searchsorted(shares, random.random(rows) * shares[-1]).astype(np.int64)
    return found
