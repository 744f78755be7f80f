"""Runs a session over two streams of files into folders of files, until all files are read.

A program of its own, so that tests can kill it, start it again and see whether anything is lost or there twice. It adds
a query while it runs, and removes one later; files tell that it is about to. Another file tells that a query's
plan was switched.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

import thalweg as tw
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


def latest_time(folder: Path) -> int:
    """The latest time in all files, in microseconds."""
    return max(int(pc.max(pq.read_table(file)["ts"]).cast(pa.int64()).as_py()) for file in folder.glob("*.parquet"))


def main(master: str, folder: str) -> None:
    spark = spark_session("session-files", master=master)
    session = tw.Session(spark, checkpoint=f"{folder}/checkpoint")
    for name, columns, delay in STREAMS:
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        session.stream(name, reader.parquet(f"{folder}/in/{name}"), event_time="ts", delay=delay)
    is_added, is_removed, is_switched = (Path(folder, name) for name in ("is_added", "is_removed", "is_switched"))
    names = ["large", "groups", "joined", *["added"] * is_added.exists(), *["removed"] * (not is_removed.exists())]
    queries = {
        name: session.query(QUERIES[name], to=f"{folder}/out/{name}", scheduler=SCHEDULERS.get(name, "by-chart"))
        for name in names
    }
    session.start()
    assert session.engine is not None
    ends = {name: latest_time(Path(folder, "in", name)) for name, *_ in STREAMS}
    while any((position := session.engine.position).latest.get(name, end - 1) < end for name, end in ends.items()):
        done = position.batch + 1
        if done >= ADDED_AFTER and not is_added.exists():
            is_added.touch()
            session.query(QUERIES["added"], to=f"{folder}/out/added")
        if done >= REMOVED_AFTER and not is_removed.exists():
            is_removed.touch()
            queries["removed"].remove()
        if any(query.scheduler.counts.switches for query in session.engine.served.values()):
            is_switched.touch()
        assert not session.await_termination(0.01)
    session.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
