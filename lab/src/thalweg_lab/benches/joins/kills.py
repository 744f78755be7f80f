"""kills: a join that is killed again and again, at random moments from a seed, gives each result exactly once.

A kill takes the driver with all its processes, or a Python worker alone. The query goes on from its checkpoint, or
Spark tries the task again. The results that a file sink has committed are compared with those of Arrow's joins.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pyarrow import parquet

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.streams import files
from thalweg_lab.benches.joins.work import SECOND, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result, exactly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "kills"
STREAMS = ("A", "B", "C")
ON = "A.k = B.k AND B.l = C.l"
WINDOW, DELAY = 30, "5 seconds"  # seconds of event time
KILLS, KILLS_A_QUERY, SEED = 100, 10, 0
ROWS, BATCHES = 200, 40  # of a query; rows of each stream and micro-batch
KINDS = ("driver", "Python worker")
LATEST = 4.0  # seconds after the next commit, before which a kill comes
SECONDS = 300.0  # that a query may take between two commits
PROGRAM = "thalweg_lab.benches.joins.killed_join"


def measure(
    spark: SparkSession | None, tick: Tick, *, kills: int = KILLS, batches: int = BATCHES, seed: int = SEED
) -> list[Result]:
    """Kill queries until there were enough kills, and compare all results."""
    del spark  # each query is a program of its own
    done, queries, wrong = Counter[str](), 0, 0
    while done.total() < kills:
        random = np.random.default_rng([seed, queries])
        with files(make_workload(batches, seed + queries)) as folder:
            for kind in killed(Path(folder), random, min(KILLS_A_QUERY, kills - done.total())):
                done[kind] += 1
                tick(min(done.total(), kills), kills)
            wrong += results_of(Path(folder)) != expected_of(Path(folder))
        queries += 1
    note = f"{queries} queries; kills: {', '.join(f'{count} of a {kind}' for kind, count in sorted(done.items()))}"
    return [exactly(NAME, "queries with a result that is missing, wrong or there twice", wrong, 0, note)]


def make_workload(batches: int, seed: int) -> JoinWorkload:
    """Three streams in a chain."""
    keys = {"A": {"k": ROWS}, "B": {"k": ROWS, "l": ROWS}, "C": {"l": ROWS}}
    streams = {name: StreamKeys(values, ROWS) for name, values in keys.items()}
    return JoinWorkload(on=(), window=3, batches=random_batches(streams, batches, seed=seed))


def killed(folder: Path, random: np.random.Generator, kills: int) -> Iterator[str]:
    """Run a query to its end, with so many kills on the way; gives the kind of each kill."""
    left = kills
    while True:
        query, left_before = _started(folder), left
        try:
            while query.poll() is None:
                if left and _waited_for_commit(folder, query):
                    time.sleep(random.random() * LATEST)
                    kind = KINDS[int(random.integers(len(KINDS)))]
                    if _kill(query, kind, random):
                        left -= 1
                        yield kind
                time.sleep(0.05)
        finally:
            _kill_group(query)
        if query.returncode == 0:
            return
        if left == left_before:
            raise RuntimeError(f"a query has failed by itself: {(folder / 'program.log').read_text()[-2000:]}")


def results_of(folder: Path) -> Counter[tuple[int, ...]]:
    """The results in the files that the sink has committed; a killed job leaves other files behind."""
    committed = set()
    for log in (folder / "out" / "_spark_metadata").glob("[0-9]*"):
        committed |= {json.loads(line)["path"].removeprefix("file://") for line in log.read_text().splitlines()[1:]}
    columns = [f"{name}_v" for name in STREAMS]
    tables = (parquet.read_table(path, columns=columns, partitioning=None) for path in committed)
    return Counter(row for table in tables for row in zip(*(table[name].to_pylist() for name in columns), strict=True))


def expected_of(folder: Path) -> Counter[tuple[int, ...]]:
    """The results by Arrow's own joins, over all rows at once."""
    tables = {name: parquet.read_table(folder / name, partitioning=None) for name in STREAMS}
    for name, table in tables.items():
        own = {"v": f"{name}_v", "ts": f"{name}_ts"}
        tables[name] = table.rename_columns([own.get(column, column) for column in table.schema.names])
    joined = tables["A"].join(tables["B"], "k", join_type="inner").join(tables["C"], "l", join_type="inner")
    times = np.stack([joined[f"{name}_ts"].cast("int64").to_numpy() for name in STREAMS])
    near = times.max(axis=0) - times.min(axis=0) < WINDOW * SECOND
    values = [joined[f"{name}_v"].to_numpy()[near].tolist() for name in STREAMS]
    return Counter(zip(*values, strict=True))


def _started(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "program.log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - ours
            [sys.executable, "-m", PROGRAM, str(folder)], stdout=log, stderr=log, start_new_session=True
        )


def _waited_for_commit(folder: Path, query: subprocess.Popen[bytes]) -> bool:
    """Wait until another micro-batch is committed; False if the query has ended before."""
    before, deadline = _commits(folder), time.monotonic() + SECONDS
    while query.poll() is None and _commits(folder) == before:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no commit in {SECONDS:g} seconds: {(folder / 'program.log').read_text()[-2000:]}")
        time.sleep(0.02)
    return query.poll() is None


def _commits(folder: Path) -> int:
    return len([path for path in (folder / "checkpoint" / "commits").glob("*") if path.name.isdigit()])


def _kill(query: subprocess.Popen[bytes], kind: str, random: np.random.Generator) -> bool:
    """Kill the driver or a worker of a query; False if there is none to kill."""
    if kind == "driver":
        is_running = query.poll() is None
        _kill_group(query)
        return is_running
    workers = _workers(query.pid)
    if not workers:
        return False
    try:
        os.kill(workers[int(random.integers(len(workers)))], signal.SIGKILL)
    except ProcessLookupError:  # it has just ended
        return False
    return True


def _kill_group(query: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes that it has started."""
    try:
        os.killpg(query.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    query.wait()


def _workers(session: int) -> list[int]:
    """The Python workers of a program: processes of its session whose parent is a daemon of Spark."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()
            is_python = b"pyspark.daemon" in (path / "cmdline").read_bytes()
        except OSError:
            continue
        if int(state[3]) == session and is_python:
            parents[int(path.name)] = int(state[1])
    return sorted(process for process, parent in parents.items() if parent in parents)
