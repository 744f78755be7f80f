"""A filter, a join and a session that run for long, with drift, restarts and changing queries: nothing grows.

`THALWEG_SOAK_SECONDS` says for how long. The first third of the time is for warming up; the last third is compared with
the middle. Each look is a line of JSON in the file `THALWEG_SOAK_REPORT`, if that is set.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.soak.looks import MEGABYTE, Growth, Look, growths, is_bytes
from tests.soak.processes import held_now

import thalweg as tw
from thalweg.spark.joins.plan import PROVIDER, ROCKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from thalweg.spark.session.standing import StandingQuery

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3 * 3600)]

SECONDS = float(os.environ.get("THALWEG_SOAK_SECONDS", "180"))
TRIGGER_SECONDS = float(os.environ.get("THALWEG_SOAK_TRIGGER_SECONDS", "1"))  # from micro-batch to micro-batch
REPORT = os.environ.get("THALWEG_SOAK_REPORT")
LOOK_SECONDS = max(2.0, SECONDS / 120)
CHANGE_SECONDS = 15.0  # after so long a query of the session is removed, and another query is added
RESTART_SECONDS = min(60.0, SECONDS / 12)  # after so long the filter, the join or the session is started again, in turn
ROWS = 2000  # a micro-batch
JUDGED = {"memory", "heap", "bytes", "broadcast variables and RDDs, bytes", "processes", "files", "sockets", "threads"}
JUDGED_SECONDS = 600.0  # a shorter run is all warm-up: only what each restart might add to is judged
MOST_GROWTH = 0.15  # of memory, from the middle third to the last
MOST_MORE = 20  # files, sockets and threads in the last third, more than in the middle
LEFT_BY_SPARK = 2  # files, sockets or threads, of each start of a query, until the program ends: docs/faults.md
MOST_PROCESSES = 14  # workers of the join and of the others, which two cores need, and their daemons
MOST_FILES = 300  # in a folder: of the micro-batches that Spark keeps, and of those that it will soon remove
STARTS = "starts"
BUSY = "Python worker failed to connect back"  # Spark gives a worker ten seconds to start, on any machine
SETTINGS = {
    PROVIDER: ROCKS,
    "spark.sql.streaming.minBatchesToRetain": 5,  # so that folders stop growing soon
    "spark.sql.streaming.numRecentProgressUpdates": 5,
}


@tw.predicate(on="value", takes="numpy")
def drifts(value: np.ndarray) -> np.ndarray:
    return value % 10 < value // (20 * ROWS) % 10


@tw.predicate(on="value", takes="numpy")
def is_rare(value: np.ndarray) -> np.ndarray:
    return value % 7 < 1


def rows(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    return source.option("advanceMillisPerBatch", 1000).load().selectExpr("*", "value % 50 AS k")


class Soak:
    """What runs; each part can be stopped, and started again from its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.running = {"filter": self.start_filter(), "join": self.start_join(), "session": self.start_session()}
        self._batches: dict[tuple[str, int], float] = {}  # seconds that they took, by query and number
        self._looked_at: set[tuple[str, int]] = set()
        self._starts = self._timeouts = 0

    def start_filter(self) -> StreamingQuery:
        kept = tw.where(rows(self.spark), drifts, is_rare, "k > 10", drift="bcs", state=self.folder / "filter learnt")
        return self._start("filter", kept)

    def start_join(self) -> StreamingQuery:
        joined = tw.join(
            {name: rows(self.spark).where(f"value % 3 = {place}") for place, name in enumerate("ABC")},
            on="A.k = B.k AND B.k = C.k",
            windows="1 second",
            event_time="timestamp",
            delay="2 seconds",
            select=["A.value"],
            state=self.folder / "join learnt",
        )
        return self._start("join", joined)

    def start_session(self) -> StreamingQuery:
        self.session = tw.Session(self.spark, checkpoint=self.folder / "session")
        self.added: StandingQuery | None = None
        self.session.stream("S", rows(self.spark), event_time="timestamp")
        text = "SELECT k, count(*) AS n FROM S GROUP BY k WINDOW [5 seconds]"
        self.session.query(text, to=lambda _frame, _number: None)
        return self.session.start(**self.trigger)

    def _start(self, name: str, frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(self.folder / name))
        return writer.trigger(**self.trigger).start()

    @property
    def trigger(self) -> dict[str, Any]:
        return {"processingTime": f"{TRIGGER_SECONDS} seconds"}

    def restart(self, name: str) -> None:
        self._starts += 1
        self.running[name].stop()
        self.running[name] = getattr(self, f"start_{name}")()

    def change_queries(self, number: int) -> None:
        if self.added is not None:
            self.added.remove()
        text = f"SELECT max(value) AS m FROM S WHERE k > {number % 50} WINDOW [3 seconds]"  # noqa: S608 - ours
        self.added = self.session.query(text, to=lambda _frame, _number: None)

    def note_batches(self) -> None:
        """Remember how long micro-batches took; Spark tells it of the latest only."""
        for name, query in list(self.running.items()):
            if not query.isActive:
                assert BUSY in str(query.exception()), query.exception()
                self._timeouts += 1
                self.restart(name)
                continue
            for progress in query.recentProgress:
                if progress["numInputRows"]:
                    self._batches[name, progress["batchId"]] = progress["durationMs"]["triggerExecution"]

    def look(self, second: float) -> Look:
        """All measures at this moment. Garbage is collected first, as it holds memory and blocks, too."""
        context = self.spark.sparkContext
        java: Any = context._jvm.java.lang  # type: ignore[union-attr]  # noqa: SLF001 - no other way
        java.System.gc()
        time.sleep(0.5)  # Spark removes the blocks of collected objects in a thread of its own
        memory = java.Runtime.getRuntime()
        spark_context = context._jsc  # noqa: SLF001 - as above
        blocks = spark_context.sc().getExecutorMemoryStatus().head()._2()  # noqa: SLF001 - the room for them, how much is free
        found: Look = {
            "second": second,
            STARTS: self._starts,
            "starts that Spark gave up": self._timeouts,
            "JVM: heap": memory.totalMemory() - memory.freeMemory(),
            "JVM: broadcast variables and RDDs, bytes": blocks._1() - blocks._2(),  # noqa: SLF001 - as above
            "JVM: RDDs that are kept": spark_context.getPersistentRDDs().size(),
            **held_now(os.getpid()),
        }
        for folder in sorted(self.folder.iterdir()):
            sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
            found |= {f"folder {folder.name}: files": len(sizes), f"folder {folder.name}: bytes": sum(sizes)}
        for name in self.running:
            new = self._batches.keys() - self._looked_at
            if times := [self._batches[batch] for batch in new if batch[0] == name]:
                found[f"{name}: milliseconds of a micro-batch"] = statistics.median(times)
        self._looked_at |= self._batches.keys()
        return found


@pytest.fixture
def soak(spark: SparkSession, tmp_path: Path) -> Iterator[Soak]:
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, str(value))
    soak = Soak(spark, tmp_path)
    yield soak
    for query in soak.running.values():
        query.stop()
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_nothing_grows(soak: Soak) -> None:
    looks: list[Look] = []
    start = time.monotonic()
    looked = changed = restarted = 0.0
    turns = itertools.cycle(soak.running)
    while (now := time.monotonic() - start) < SECONDS:
        soak.note_batches()
        if now - changed > CHANGE_SECONDS:
            changed = now
            soak.change_queries(int(now))
        if now - restarted > RESTART_SECONDS:
            restarted = now
            soak.restart(next(turns))
        if now - looked > LOOK_SECONDS:
            looked = now
            looks.append(soak.look(now))
            if REPORT:
                with Path(REPORT).open("a") as file:
                    print(json.dumps(looks[-1]), file=file)
        time.sleep(TRIGGER_SECONDS)
    found = growths(looks)
    starts = next(growth.last - growth.middle for growth in found if growth.measure == STARTS)
    assert [growth for growth in found if has_grown(growth, starts)] == []


def has_grown(growth: Growth, starts: float) -> bool:
    """Whether a measure has grown too much. Times depend on other programs, and the JVM may fill its heap."""
    owner, _, kind = growth.measure.partition(": ")
    if kind not in JUDGED or growth.measure == "JVM: memory":
        return False
    if SECONDS < JUDGED_SECONDS and kind != "processes" and not owner.endswith("learnt"):
        return False
    if is_bytes(growth.measure):
        return growth.last > (1 + MOST_GROWTH) * growth.middle + MEGABYTE
    if owner.startswith("folder"):
        return growth.last > MOST_FILES
    if kind == "processes":
        return growth.last > MOST_PROCESSES
    left_by_spark = LEFT_BY_SPARK * starts if owner in {"driver", "JVM"} else 0
    return growth.last > growth.middle + MOST_MORE + left_by_spark
