"""Feeds the same files to Thalweg and to plain Spark in turns, and times each.

Both are streaming queries that stay up for the whole act; each reads folders of its own. Only one of them has work at a
time, so each has the whole machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PLAIN, THALWEG = "plain Spark", "Thalweg"
LEAST_STEPS = 2  # of an act, however short: the first one warms up and is not counted
PHASES = 3  # of an act; the data drift when a phase ends

Tables = Mapping[str, pa.Table]


@dataclass
class Contender:
    """Streaming queries that read one folder for each stream."""

    name: str
    folder: Path
    running: list[StreamingQuery] = field(default_factory=list)

    def frames(self, spark: SparkSession, schemas: Mapping[str, pa.Schema]) -> dict[str, DataFrame]:
        """The streams as streaming DataFrames; all files that are there make one micro-batch."""
        frames = {}
        for name, schema in schemas.items():
            (self.folder / name).mkdir(parents=True)
            example = self.folder / f"{name}.parquet"
            parquet.write_table(schema.empty_table(), example)
            frames[name] = spark.readStream.schema(spark.read.parquet(str(example)).schema).parquet(
                str(self.folder / name)
            )
        return frames

    @property
    def checkpoint(self) -> str:
        """A folder for one more checkpoint."""
        return str(self.folder / f"checkpoint{len(self.running)}")

    def feed(self, tables: Tables, number: int) -> float:
        """Give the queries a file of each stream, and wait until they have dealt with all; the seconds it took."""
        hidden = {name: self.folder / f".{name}-{number}" for name in tables}
        for name, table in tables.items():
            parquet.write_table(table, hidden[name])
        start = time.perf_counter()
        for name, file in hidden.items():
            file.rename(self.folder / name / f"{number:05d}.parquet")  # Spark never sees half a file
        for query in self.running:
            query.processAllAvailable()
        return time.perf_counter() - start

    def stop(self) -> None:
        """Stop the queries."""
        for query in self.running:
            query.stop()


@dataclass(frozen=True)
class Turn:
    """One micro-batch of an act: how many rows came, and how long each contender took."""

    number: int
    phase: int
    rows: int
    seconds: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast Thalweg was.

        >>> Turn(1, 0, 1000, {PLAIN: 3.0, THALWEG: 0.5}).ratio
        6.0
        """
        return self.seconds[PLAIN] / self.seconds[THALWEG]

    def rate(self, contender: str) -> float:
        """Rows a second."""
        return self.rows / self.seconds[contender]


def steps_of(
    contenders: Sequence[Contender],
    make: Callable[[int, int], Tables],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Turn]:
    """Feed all contenders, micro-batch by micro-batch, until the time is over; `make(number, phase)` makes the rows.

    Who goes first changes with every micro-batch.
    """
    start, number = clock(), 0
    while number < LEAST_STEPS or clock() - start < seconds:
        phase = min(int(PHASES * (clock() - start) / seconds), PHASES - 1)
        tables = make(number, phase)
        turns = contenders if number % 2 == 0 else list(reversed(contenders))
        spent = {contender.name: contender.feed(tables, number) for contender in turns}
        yield Turn(number, phase, sum(table.num_rows for table in tables.values()), spent)
        number += 1


def overall(steps: Sequence[Turn]) -> dict[str, float]:
    """Rows a second of each contender over the micro-batches after the first one."""
    counted = steps[1:]
    rows = sum(step.rows for step in counted)
    return {name: rows / sum(step.seconds[name] for step in counted) for name in (PLAIN, THALWEG)}


@contextmanager
def stopped_at_the_end(*contenders: Contender) -> Iterator[None]:
    """Stop the queries of contenders, whatever happens."""
    try:
        yield
    finally:
        for contender in contenders:
            contender.stop()
