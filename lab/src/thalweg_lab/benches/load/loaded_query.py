"""A query on a feed: the times of its micro-batches, and the latency and the lag of rows that come in real time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.joinorder.text import parse_condition
from thalweg.sizing import copies_of, placed_by
from thalweg_lab.benches.load.feed import Feed, File

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTLING = 2  # intervals of a paced run that are not counted
PATIENCE = 180.0  # seconds without a micro-batch after which it is a failure
POLL = 0.02
GROWTH = 0.5  # of the rows of an interval: by how much more the lag of a sustained rate may be at the end


@dataclass(frozen=True)
class Setting:
    """A query of its kind: its predicates, streams or queries, and its window."""

    parts: int
    window: int = 1  # seconds
    is_chain: bool = False  # a join whose streams share no key, so that rows are copied
    cells: int = 2


@dataclass(frozen=True)
class QueryKind:
    """A kind of query: how it is started, and whether its results wait for the end of a round."""

    name: str
    part: tuple[str, str]  # the name of a part, and of several parts: predicates, streams or queries
    start: Callable[[SparkSession, Sequence[DataFrame], Setting, str, dict[str, Any]], StreamingQuery]
    gives_rounds: bool = False
    condition: Callable[[Setting], str] | None = None  # of a join, which reads a stream for each part

    def streams(self, setting: Setting) -> int:
        """How many streams a query reads."""
        return 1 if self.condition is None else setting.parts

    def copies(self, setting: Setting) -> float:
        """To how many cells a row is sent, on average."""
        if self.condition is None:
            return 1.0
        return copies_of(placed_by(parse_condition(self.condition(setting))), setting.cells)


@dataclass(frozen=True)
class TimedBatch:
    """A micro-batch: when it began and ended, and the rows of each stream."""

    number: int
    begin: float
    end: float
    rows: tuple[int, ...]

    @property
    def seconds(self) -> float:
        """How long it took, planning and commit included."""
        return self.end - self.begin


@dataclass(frozen=True)
class PacedRun:
    """The rows that came in real time at a rate."""

    rate: float  # rows a second that really came
    latencies: tuple[float, float]  # of a row until its results are committed: the median, and the 99th percentile
    lag: int  # rows that waited in the source when a micro-batch ended: the median of micro-batches
    batch_seconds: float  # the median
    is_sustained: bool
    rows: int  # in all
    batches: int


class LoadedQuery:
    """A query that runs on a feed."""

    def __init__(self, spark: SparkSession, kind: QueryKind, setting: Setting, folder: str, interval: float) -> None:
        self._kind, self._streams, self._interval = kind, kind.streams(setting), interval
        self._feed = Feed(folder, self._streams)
        trigger = {"processingTime": f"{round(1000 * interval)} milliseconds"}
        own = spark.newSession()  # whose settings end with it
        self.query = kind.start(own, self._feed.frames(own), setting, folder, trigger)
        self._seen = -1  # the number of the last micro-batch that was looked at

    def burst(self, rows: int, seconds: float = 1.0) -> float | None:
        """The time of a micro-batch of so many rows; None if Spark divided them."""
        batches = self._batches_of(self._feed.burst(rows, seconds))
        return batches[0].seconds if len(batches) == 1 else None

    def bursts(self, rows: int, count: int) -> float:
        """The median time of micro-batches of so many rows."""
        found: list[float] = []
        while not found:
            found = [seconds for seconds in (self.burst(rows) for _ in range(count)) if seconds is not None]
        return median(found)

    def kept(self, seconds: float) -> int:
        """How many rows of all streams came in the last seconds of event time."""
        return self._streams * self._feed.rows_of_last(seconds)

    def pace(self, rate: float, intervals: int) -> PacedRun:
        """Let rows come in real time, after some intervals that are not counted."""
        files = self._feed.pace(rate, self._interval, SETTLING + intervals)
        batches = self._batches_of(self._streams * sum(file.rows for file in files))
        return paced_run(files, batches, self._interval, gives_rounds=self._kind.gives_rounds)

    def rest(self) -> None:
        """Wait for the end of a micro-batch that runs: Spark reports errors if it is cut off."""
        until = time.monotonic() + PATIENCE
        while self.query.status["isTriggerActive"] and time.monotonic() < until:
            time.sleep(POLL)

    def _batches_of(self, rows: int) -> list[TimedBatch]:
        """The micro-batches since the last that was looked at, once they have so many rows."""
        since, taken = time.monotonic(), 0
        while True:
            batches = [batch for batch in map(_batch, self.query.recentProgress) if batch.number > self._seen]
            found = sum(sum(batch.rows) for batch in batches)
            if found > rows:
                raise AssertionError(f"Spark counted {found:,} rows, and {rows:,} came")
            if found == rows:
                self._seen = batches[-1].number
                return [batch for batch in batches if sum(batch.rows)]
            if found > taken:
                since, taken = time.monotonic(), found
            failed = self.query.exception()
            if failed is not None:
                raise failed
            if time.monotonic() - since > PATIENCE:
                raise TimeoutError(f"{found:,} of {rows:,} rows after {PATIENCE:.0f} s without a micro-batch")
            time.sleep(POLL)


@contextmanager
def running(spark: SparkSession, kind: QueryKind, setting: Setting, interval: float) -> Iterator[LoadedQuery]:
    """A query that runs, and is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="thalweg-load-", ignore_cleanup_errors=True) as folder:
        loaded = LoadedQuery(spark, kind, setting, folder, interval)
        try:
            yield loaded
            loaded.rest()
        finally:
            loaded.query.stop()


def paced_run(files: Sequence[File], batches: Sequence[TimedBatch], interval: float, *, gives_rounds: bool) -> PacedRun:
    """What is to be known of files that came in real time and of the micro-batches that took them.

    A file comes every second, and every two seconds a micro-batch takes two files, in half a second:

    >>> files = [File(10, (float(second), second + 1.0), came=float(second)) for second in range(40)]
    >>> batches = [TimedBatch(number, 2 * number + 1.5, 2 * number + 2.0, (20,)) for number in range(20)]
    >>> paced_run(files, batches, interval=2.0, gives_rounds=False)
    PacedRun(rate=10.0, latencies=(1.5, 2.0), lag=10, batch_seconds=0.5, is_sustained=True, rows=400,
             batches=20)
    """
    begin, end = files[0].came, files[-1].came
    streams = len(batches[0].rows)
    counted_from = begin + SETTLING * interval
    of_files = np.cumsum([file.rows for file in files])
    came = np.array([file.came for file in files])
    ends = np.array([batch.end for batch in batches])
    taken = np.cumsum([batch.rows for batch in batches], axis=0)  # a column for each stream
    needed = _last_files(files) if gives_rounds else np.arange(len(files))
    counted = np.flatnonzero((came >= counted_from) & (needed < len(files)))
    latencies = [
        ends[np.searchsorted(taken[:, stream], of_files[needed[counted]])] - came[counted] for stream in range(streams)
    ]
    timed = [place for place, batch in enumerate(batches) if batch.begin >= counted_from and batch.end <= end]
    arrived = streams * np.concatenate([[0], of_files])[np.searchsorted(came, ends[timed], side="right")]
    lags = arrived - taken[timed].sum(axis=1)
    seconds = median(batches[place].seconds for place in timed) if timed else float("inf")
    third, rows = len(timed) // 3, streams * of_files[-1] * interval / (end - begin)
    grown = float(np.median(lags[-third:]) - np.median(lags[:third])) if third else float("inf")
    return PacedRun(
        rate=streams * float(of_files[-1] - files[0].rows) / (end - begin),
        latencies=(float(np.percentile(latencies, 50)), float(np.percentile(latencies, 99))),
        lag=int(np.median(lags)) if timed else int(streams * of_files[-1]),
        batch_seconds=seconds,
        is_sustained=bool(seconds <= interval and grown <= GROWTH * rows),
        rows=int(streams * of_files[-1]),
        batches=len(batches),
    )


def _last_files(files: Sequence[File]) -> np.ndarray:
    """For each file, the number of the file that ends its round: the first that begins a second of event time later."""
    begins = np.array([file.seconds[0] for file in files])
    return np.searchsorted(begins, np.floor(begins + 1e-6) + 1 - 1e-6)


def _batch(report: Any) -> TimedBatch:  # noqa: ANN401 - what Spark reports of a micro-batch
    begin = datetime.fromisoformat(report.timestamp).timestamp()
    rows = tuple(source.numInputRows for source in report.sources)
    return TimedBatch(report.batchId, begin, begin + report.durationMs["triggerExecution"] / 1000, rows)
