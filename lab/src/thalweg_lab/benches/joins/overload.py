"""overload: for a while rows come ten times as fast as they can be joined; memory stays as it was, and all is joined.

Files come one by one at first, which tells how long a micro-batch takes and how much memory the join needs. Then they
come ten times as fast, and wait in the source, from which a micro-batch takes a fixed number of files. The query goes
on until it has caught up. Its results have to be the results that a cell without Spark finds in the same files.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from pyarrow import parquet

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.cells import CellRun, drive, prepared
from thalweg_lab.benches.joins.streams import configured, stream_of, thalweg_join
from thalweg_lab.benches.joins.work import JoinWorkload, StreamKeys, Tables, later, random_batches
from thalweg_lab.results import Result, at_least, at_most, exactly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "overload"
STREAMS, ROWS, WINDOW = ("A", "B", "C"), 20_000, 5
FASTER, SECONDS = 10, 60.0  # times as fast as can be joined, and for how long; catching up takes so many times as long
AHEAD = 1.2  # times as fast besides, for micro-batches that follow each other at once are shorter
DIFFERENT = 8  # files of a stream; then the same rows come again, later
CALM = 12  # batches that come one by one; the last batches tell how long a batch takes
TIMED = 4
LIBRARIES_BYTES = 400 << 20  # the interpreter with its libraries, new rows of a piece and results of a part
DOUBLED = 2  # windows take twice their memory while they grow
PATIENCE = 120.0  # seconds without progress after which it is a failure
POLL = 0.05


class FileFeed:
    """Files that come one after the other, a file of each stream at a time."""

    def __init__(self, folder: str, rows: int) -> None:
        self.folder = folder
        self.files = 0  # of each stream, that came
        self._rows = random_batches(dict.fromkeys(STREAMS, StreamKeys({"k": rows * WINDOW}, rows)), DIFFERENT)

    def next(self) -> None:
        """Write the next file of each stream, so that Spark sees whole files only."""
        for name, table in self.tables(self.files).items():
            path = Path(self.folder, name, f"{self.files}.parquet")
            unseen = path.with_name(f"_{path.name}")  # by Spark
            path.parent.mkdir(exist_ok=True)
            parquet.write_table(table, unseen)
            os.utime(unseen, (10**9 + self.files, 10**9 + self.files))  # Spark reads the oldest first
            unseen.rename(path)
        self.files += 1

    def tables(self, number: int) -> Tables:
        """The rows of the files with a number, by stream."""
        rounds, place = divmod(number, DIFFERENT)
        return later([self._rows[place]], rounds * DIFFERENT)[0]

    def workload(self, number: int = 0) -> JoinWorkload:
        """The join of the files of a number."""
        on = (tuple((name, "k") for name in STREAMS),)
        return JoinWorkload(on=on, window=WINDOW, batches=[self.tables(number)])


@dataclass
class Overrun:
    """The course of a query while rows came too fast, and after that."""

    files: int = 0  # of each stream that came too fast
    seconds: float = 0.0  # in which they came
    behind: int = 0  # files that were not joined by then
    recovered: float = 0.0  # seconds until all were
    before: int = 0  # most bytes of a worker until then
    peak: int = 0  # and until the end
    windows: int = 0  # bytes of all windows with their indexes


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, seconds: float = SECONDS, calm: int = CALM
) -> list[Result]:
    """Memory and totals of a join that is overrun."""
    import thalweg as tw
    from thalweg.spark import runs
    from thalweg.spark.joins.explain import JoinRun

    answers: dict[int, tuple[int, int]] = {}

    def take(results: DataFrame, number: int) -> None:
        total = " + ".join(f"{name}_v" for name in STREAMS)
        count, checksum = results.selectExpr("count(*)", f"coalesce(sum({total}), 0)").collect()[0]
        answers[number] = count, checksum

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-", ignore_cleanup_errors=True) as folder, configured(spark):
        feed = FileFeed(folder, rows)
        feed.next()
        frames = {name: stream_of(spark, f"{folder}/{name}") for name in STREAMS}
        joined = thalweg_join(spark, frames, feed.workload())
        (run,) = runs.find([tw.explain(joined).to_dict()["joins"][0]["key"]])
        assert isinstance(run, JoinRun)  # noqa: S101 - for the type checker
        query = joined.writeStream.foreachBatch(take).option("checkpointLocation", f"{folder}/checkpoint").start()
        try:
            found = _overrun(query, feed, run.plan.workers, seconds, calm, tick)
            found.windows = tw.explain(joined).to_dict()["joins"][0]["memory_bytes"]
        finally:
            query.stop()
    driven = drive(feed.workload().query, (prepared(feed.workload(number))[0] for number in range(feed.files)))
    tick(1, 1)
    return _judged(found, rows, driven, tuple(sum(answer[place] for answer in answers.values()) for place in range(2)))


def _overrun(query: StreamingQuery, feed: FileFeed, workers: str, seconds: float, calm: int, tick: Tick) -> Overrun:
    """Write files slowly, then too fast, and then wait until all are joined."""
    found = Overrun()

    def caught_up() -> bool:
        found.peak = max(found.peak, _peak_bytes(workers))
        tick(_taken(query), 2 * max(feed.files, calm))
        return _taken(query) == feed.files

    for _ in range(calm - 1):
        _wait(query, caught_up)
        feed.next()
    _wait(query, caught_up)
    found.before, batch_seconds = found.peak, _batch_seconds(query)
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        feed.next()
        found.files += 1
        due = start + found.files * batch_seconds / (AHEAD * FASTER)
        time.sleep(max(due - time.perf_counter(), 0.0))
    found.seconds, found.behind = time.perf_counter() - start, feed.files - _taken(query)
    _wait(query, caught_up)
    found.recovered = time.perf_counter() - start - found.seconds
    query.processAllAvailable()
    return found


def _judged(found: Overrun, rows: int, expected: CellRun, given: tuple[int, ...]) -> list[Result]:
    note = (
        f"{len(STREAMS)} streams, {rows:,} rows a stream and file, one file a micro-batch; {found.files} files in "
        f"{found.seconds:.0f} s, {found.behind} behind then, none {found.recovered:.0f} s later"
    )
    sizes = (
        f"peak of the largest worker {found.peak >> 20} MB, {found.before >> 20} MB before; "
        f"windows {found.windows >> 20} MB"
    )
    came = found.files / found.seconds * found.recovered / max(found.behind, 1)
    bound = LIBRARIES_BYTES + DOUBLED * found.windows
    return [
        at_least(NAME, "rows came, times as fast as they were joined", came, FASTER, note),
        at_most(NAME, "peak memory of a worker, times the stated bound", found.peak / bound, 1, f"{sizes}; {note}"),
        exactly(NAME, "results, and their sum", str(given), str((expected.results, expected.checksum)), note),
    ]


def _taken(query: StreamingQuery) -> int:
    """Files of each stream that have been joined."""
    progress = query.lastProgress
    offsets = [json.loads(source.endOffset) or {} for source in progress.sources] if progress else []
    return min((offset.get("logOffset", -1) for offset in offsets), default=-1) + 1  # of one file each


def _batch_seconds(query: StreamingQuery) -> float:
    """How long the latest micro-batches with rows took."""
    with_rows = [report for report in query.recentProgress if report.numInputRows]
    return median(report.durationMs["triggerExecution"] / 1e3 for report in with_rows[-TIMED:])


def _wait(query: StreamingQuery, ready: Callable[[], bool]) -> None:
    end, before = time.monotonic() + PATIENCE, _taken(query)
    while not ready():
        if error := query.exception():
            raise error
        if (taken := _taken(query)) > before:
            end, before = time.monotonic() + PATIENCE, taken
        if time.monotonic() > end:
            raise TimeoutError(f"the query does not go on: {query.status}")
        time.sleep(POLL)


def _peak_bytes(workers: str) -> int:
    """The most memory that a present worker of a join has had; 0 where the system does not tell."""
    peak = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"THALWEG_JOIN_{workers}".encode() in (process / "environ").read_bytes():
                status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                peak = max(peak, int(status["VmHWM"].split()[0]) << 10)
        except OSError:  # it has ended, or is another user's
            continue
    return peak
