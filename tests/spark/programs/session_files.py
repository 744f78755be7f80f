"""Runs a session over two streams of files into folders of files, until all files are read.

A program of its own, so that tests can kill it, start it again and see whether anything is lost or there twice. It adds
a query while it runs, and removes one later. Files tell of the moments at which a test may kill it: `adding`, in the
middle of the addition, where the program waits if it is told to; `added` and `removed`, as soon as the call has
returned; `added-served` and `removed-served`, after the first micro-batch of the new set; `switched`, after a switch of
plan.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

import thalweg as tw
from thalweg.spark.session.engine import SessionEngine
from thalweg.spark.session.sinks import FolderSink
from thalweg.spark.start import spark_session

QUERIES = {
    "large": "SELECT k, x FROM A WHERE x > 3 WINDOW [4 seconds]",
    "groups": "SELECT k, count(*) AS n, sum(x) AS total FROM A GROUP BY k WINDOW [10 seconds SLIDE 5 seconds]",
    "joined": "SELECT A.x, B.y FROM A JOIN B ON A.k = B.k WHERE x > 1 WINDOW [4 seconds]",
    "removed": "SELECT x FROM A WINDOW [5 seconds]",
    "added": "SELECT count(*) AS n FROM B WINDOW [5 seconds]",
}
STREAMS = [("A", "k int, x int, s string, ts timestamp", "2 seconds"), ("B", "k int, y int, ts timestamp", "0 seconds")]
SCHEDULERS = {"large": "at-random", "joined": "at-random"}  # they switch plans whatever the rows are
ADDED_AFTER, REMOVED_AFTER = 2, 4  # micro-batches
IN_OTHER_FORMAT = ("groups", "removed", "added")
ADDING = "adding"
SECONDS_TO_BE_KILLED = 60


class SinkOfAddition(FolderSink):
    """A folder of files that is made in the middle of the addition of its query."""

    moment: Path
    waits = False

    def claim(self, spark: object, checkpoint: str) -> None:
        """Tell that the query is being added, and leave the time to be killed."""
        super().claim(spark, checkpoint)  # type: ignore[arg-type]
        if not self.moment.exists():
            self.moment.touch()
            time.sleep(SECONDS_TO_BE_KILLED if self.waits else 0)


class Change:
    """An addition or a removal: tells when the call has returned, and when a micro-batch of the new set is done."""

    def __init__(self, folder: str, name: str, token: str, *, is_there: bool) -> None:
        self._served = Path(folder, f"{name}-served")
        self._token = token
        self._is_there = is_there  # whether the query is in the new set
        self._first: int | None = None  # number of a micro-batch of the new set
        Path(folder, name).touch()

    def look(self, engine: SessionEngine) -> None:
        """See whether a micro-batch of the new set is done."""
        position = engine.position
        if self._first is None and (self._token in position.queries) == self._is_there:
            self._first = position.batch + 1
        if self._first is not None and position.batch >= self._first:
            self._served.touch()


def latest_time(folder: Path) -> int:
    """The latest time in all files, in microseconds."""
    return max(int(pc.max(pq.read_table(file)["ts"]).cast(pa.int64()).as_py()) for file in folder.glob("*.parquet"))


def switches(engine: SessionEngine) -> int:
    """How often plans were switched, also before the session was started again."""
    return sum(query.scheduler.counts.switches for query in engine.served.values())


def main(master: str, folder: str, other_format: str = "parquet", waits: str = "") -> None:
    spark = spark_session("session-files", master=master)
    session = tw.Session(spark, checkpoint=f"{folder}/checkpoint", late=f"{folder}/late")
    for name, columns, delay in STREAMS:
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        session.stream(name, reader.parquet(f"{folder}/in/{name}"), event_time="ts", delay=delay)

    def sink(name: str) -> FolderSink:
        kind = SinkOfAddition if name == "added" else FolderSink
        made = kind(f"{folder}/out/{name}", other_format if name in IN_OTHER_FORMAT else "parquet")
        if isinstance(made, SinkOfAddition):
            made.moment, made.waits = adding, waits == ADDING
        return made

    adding, removed = Path(folder, ADDING), Path(folder, "removed")
    names = ["large", "groups", "joined", *["added"] * adding.exists(), *["removed"] * (not removed.exists())]
    queries = {
        name: session.query(QUERIES[name], to=sink(name), scheduler=SCHEDULERS.get(name, "by-chart")) for name in names
    }
    session.start()
    engine = session.engine
    assert engine is not None
    before = switches(engine)
    changes: list[Change] = []
    ends = {name: latest_time(Path(folder, "in", name)) for name, *_ in STREAMS}
    while any((position := engine.position).latest.get(name, end - 1) < end for name, end in ends.items()):
        done = position.batch + 1
        if done >= ADDED_AFTER and not adding.exists():
            added = session.query(QUERIES["added"], to=sink("added"))
            changes.append(Change(folder, "added", added.compiled.token, is_there=True))
        if done >= REMOVED_AFTER and not removed.exists():
            queries["removed"].remove()
            changes.append(Change(folder, "removed", queries["removed"].compiled.token, is_there=False))
        for change in changes:
            change.look(engine)
        if switches(engine) > before:
            Path(folder, "switched").touch()
        assert not session.await_termination(0.01)
    session.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
