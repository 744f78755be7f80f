"""Programs whose processes are killed, again and again, at random points and at the worst: results stay exact.

The points in time depend on a seed, `THALWEG_CHAOS_SEED`. A test runs chains of `THALWEG_CHAOS_KILLS` kills for its
share of `THALWEG_CHAOS_SECONDS`, and at least `THALWEG_CHAOS_CHAINS` chains. Each kill is a line of JSON in the file
`THALWEG_CHAOS_REPORT`, if that is set.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.chaos.chains import (
    RETRIES,
    at_random,
    between_commits,
    chains,
    kill_asking_worker,
    kill_daemon,
    kill_one,
    kill_owner,
    kill_processes,
    kill_the_driver,
    kill_worker,
)
from tests.chaos.programs import FILTER, JOIN, SESSION, Program
from tests.chaos.seeds import CHAINS, KILLS, SECONDS
from tests.fast_spark import DAEMON
from tests.spark.joins.test_restart import executors

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900 + 120 * KILLS * CHAINS + SECONDS)]

PYTHON_PROCESSES = {"worker": kill_worker, "daemon": kill_daemon}
WORKERS_OF_A_CELL = {
    "worker that joins rows for another": kill_owner,
    "worker that waits for another": kill_asking_worker,
}
programs = pytest.mark.parametrize("program", [JOIN, FILTER, SESSION], ids=lambda program: program.name)


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Workers that start fast, and kill themselves if they are told to."""
    moments = tmp_path / "moments"
    moments.mkdir()
    settings = {"spark.python.daemon.module": "killable_daemon"}
    return environment | {
        "PYTHONPATH": os.pathsep.join([str(DAEMON.parent), environment.get("PYTHONPATH", "")]),
        "PYSPARK_SUBMIT_ARGS": " ".join(
            [*(f"--conf {key}={value}" for key, value in settings.items()), "pyspark-shell"]
        ),
        "THALWEG_CHAOS_MOMENTS": str(moments),
    }


@programs
def test_the_driver_at_random(program: Program, tmp_path: Path, environment: dict[str, str]) -> None:
    for chain in chains(program, tmp_path, environment, "driver"):
        kill_the_driver(chain, "driver", at_random)


def test_the_driver_between_the_commits_of_state_and_results(tmp_path: Path, environment: dict[str, str]) -> None:
    for chain in chains(JOIN, tmp_path, environment, "driver between commits"):
        kill_the_driver(chain, "driver between commits", between_commits)


@programs
def test_python_processes(program: Program, tmp_path: Path, environment: dict[str, str]) -> None:
    for chain in chains(program, tmp_path, environment, "Python", RETRIES):
        kill_processes(chain, PYTHON_PROCESSES)


def test_workers_of_a_cell(tmp_path: Path, environment: dict[str, str]) -> None:
    for chain in chains(JOIN, tmp_path, environment, "cell", RETRIES):
        kill_processes(chain, WORKERS_OF_A_CELL)


def test_executors(tmp_path: Path, environment: dict[str, str], cluster: str) -> None:
    for chain in chains(JOIN, tmp_path, environment, "executor", cluster):
        kill_processes(chain, {"executor": lambda chain: kill_one(chain, executors())})
