"""Joins whose processes are killed, again and again, at random points and at the worst: results stay exact.

The points in time depend on a seed, `THALWEG_CHAOS_SEED`. Each kind of kill is tried for a share of
`THALWEG_CHAOS_SECONDS`, and at least `THALWEG_CHAOS_TRIES` times. Each try is a line of JSON in the file
`THALWEG_CHAOS_REPORT`, if that is set.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chaos.seeds import REPORT, SECONDS, SEED, TRIES
from tests.spark.conftest import cluster, environment
from tests.spark.joins import test_restart as joins

__all__ = ["cluster", "environment"]  # fixtures

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900 * TRIES + SECONDS)]

KINDS = 4
LONGEST_RUN = 12.0  # seconds within which a kill at random comes; a run of the program takes longer
KILLS_OF_WORKERS = 3  # in each run
RETRIES = "local[2,8]"  # a local master that tries a task again, as clusters do

Process = subprocess.Popen[bytes]


def tries(kind: str) -> Iterator[random.Random]:
    """Random numbers for each try, until the time of a kind of kill is over."""
    deadline, number = time.monotonic() + SECONDS / KINDS, 0
    while number < TRIES or time.monotonic() < deadline:
        yield random.Random(f"{SEED} {kind} {number}")  # noqa: S311 - no secret
        number += 1


def report(kind: str, killed: float, process: Process, folder: Path, commits: int) -> None:
    """Note how long it took from a kill to the end of the next micro-batch, with the start of the program, if any."""
    while process.poll() is None and joins.numbered_files(folder, "commits") <= commits:
        time.sleep(0.02)
    if REPORT:
        with Path(REPORT).open("a") as file:
            print(json.dumps({"kill": kind, "seed": SEED, "recovery_seconds": time.monotonic() - killed}), file=file)


def fresh_folder(tmp_path: Path, number: int) -> Path:
    folder = tmp_path / str(number)
    folder.mkdir()
    joins.write_streams(folder)
    return folder


def kill_the_driver(
    kind: str, tmp_path: Path, environment: dict[str, str], ready: Callable[[Path, float], bool]
) -> None:
    for number, numbers in enumerate(tries(kind)):
        folder = fresh_folder(tmp_path, number)
        process = joins.start(folder, environment)
        moment = time.monotonic() + numbers.uniform(0, LONGEST_RUN)
        while not ready(folder, moment):
            assert process.poll() is None, f"the program ended before it could be killed: {folder / 'program.log'}"
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killed, commits = time.monotonic(), joins.numbered_files(folder, "commits")
        process = joins.start(folder, environment)
        report(kind, killed, process, folder, commits)
        joins.finish(process, folder)
        joins.check(folder)


def test_the_driver_at_random(tmp_path: Path, environment: dict[str, str]) -> None:
    kill_the_driver("driver", tmp_path, environment, lambda _folder, moment: time.monotonic() > moment)


def test_the_driver_between_the_commit_of_the_state_and_that_of_the_sink(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    def is_between(folder: Path, _moment: float) -> bool:
        state = folder / "checkpoint" / "state" / "0"
        versions = [int(found[0]) for path in state.glob("*/*") if (found := re.match(r"\d+", path.name))]
        done = joins.numbered_files(folder, "commits")
        return done >= 1 and max(versions, default=0) > done  # version n+1 is the state after micro-batch n

    kill_the_driver("driver between commits", tmp_path, environment, is_between)


def test_a_python_worker_at_random(tmp_path: Path, environment: dict[str, str]) -> None:
    kind = "Python worker"
    for number, numbers in enumerate(tries(kind)):
        folder = fresh_folder(tmp_path, number)
        process = joins.start(folder, environment, RETRIES)
        joins.wait_for(lambda folder=folder: joins.numbered_files(folder, "offsets") >= 1, process, folder)  # type: ignore[misc]
        killed = 0
        while killed < KILLS_OF_WORKERS and process.poll() is None:
            time.sleep(numbers.uniform(0, 2))
            if workers := python_workers(process.pid):
                os.kill(numbers.choice(workers), signal.SIGKILL)
                killed += 1
                report(kind, time.monotonic(), process, folder, joins.numbered_files(folder, "commits"))
        joins.finish(process, folder)
        joins.check(folder)
        assert killed, "the program ended before one of its workers could be killed"


def test_an_executor_at_random(tmp_path: Path, environment: dict[str, str], cluster: str) -> None:
    kind = "executor"
    for number, numbers in enumerate(tries(kind)):
        folder = fresh_folder(tmp_path, number)
        process = joins.start(folder, environment, cluster)
        joins.wait_for(lambda folder=folder: joins.numbered_files(folder, "offsets") >= 1, process, folder)  # type: ignore[misc]
        time.sleep(numbers.uniform(0, 4))
        if executors := joins.executors():
            os.kill(numbers.choice(executors), signal.SIGKILL)
            report(kind, time.monotonic(), process, folder, joins.numbered_files(folder, "commits"))
        joins.finish(process, folder)
        joins.check(folder)


def python_workers(driver: int) -> list[int]:
    """The Python processes that Spark has started for a driver: workers, and the daemon that forks them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            is_worker = b"pyspark.daemon" in path.read_bytes()
            if is_worker and os.getsid(int(path.parent.name)) == driver:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return sorted(found)
