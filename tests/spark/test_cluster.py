"""On a standalone cluster: sessions, workers that are killed, come and leave, shared folders that are slow or lost.

`tests/spark/test_elsewhere.py` has filters on a cluster, and `tests/spark/joins/test_restart.py` joins.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import Cluster, started_cluster
from tests.spark.joins import test_restart as joins
from tests.spark.programs import run_examples
from tests.spark.session import test_restart as sessions
from tests.spark.session.harness import expected, rows_in_folder, write_files
from tests.spark.test_elsewhere import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAMS = Path(__file__).with_name("programs")
DAEMONS = Path(__file__).parents[1] / "python_daemon"
ROWS = 2000  # of a file, as in programs/shared_state.py
MOST_LOOKS = 15  # at shared folders, in a micro-batch
LEAVING = """
spark.decommission.enabled true
spark.storage.decommission.enabled true
spark.storage.decommission.rddBlocks.enabled true
spark.storage.decommission.shuffleBlocks.enabled true
spark.dynamicAllocation.enabled true
spark.dynamicAllocation.shuffleTracking.enabled true
spark.dynamicAllocation.minExecutors 1
spark.dynamicAllocation.executorIdleTimeout 2s
spark.dynamicAllocation.schedulerBacklogTimeout 1s
"""


@pytest.fixture
def workers(tmp_path: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    """A cluster of two workers, whose workers a test may end, and to which it may add others."""
    with started_cluster(tmp_path, environment) as cluster:
        yield cluster


def start(program: str, master: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with (folder / "program.log").open("ab") as log:
        command = [sys.executable, str(PROGRAMS / program), master, str(folder)]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


@pytest.mark.chaos
def test_a_session_whose_worker_is_killed_and_another_comes(
    tmp_path: Path, environment: dict[str, str], workers: Cluster
) -> None:
    rows = sessions.batches()
    write_files(tmp_path, rows)
    process = start("session_files.py", workers.master, tmp_path, environment)
    joins.wait_for(lambda: sessions.begun(tmp_path) >= 3, process, tmp_path)
    workers.workers[0].kill()  # its executor ends with it
    workers.add_worker()
    assert process.wait(sessions.SECONDS) == 0, (tmp_path / "program.log").read_text()[-3000:]
    read = sessions.as_read(tmp_path, rows)
    for name in ("large", "groups", "joined"):
        assert rows_in_folder(tmp_path / "out" / name) == expected(sessions.TEXTS[name], read), name


@pytest.mark.chaos
def test_a_join_whose_executors_come_and_leave(tmp_path: Path, environment: dict[str, str]) -> None:
    """Dynamic allocation gives executors and takes them; a worker is decommissioned, and another comes."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(LEAVING)
    environment["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    joins.write_streams(tmp_path)
    with started_cluster(tmp_path, environment) as cluster:
        process = start("join_files.py", cluster.master, tmp_path, environment)
        joins.wait_for(lambda: joins.numbered_files(tmp_path, "commits") >= 1, process, tmp_path)
        cluster.workers[0].send_signal(signal.SIGPWR)  # it takes no more tasks, and ends
        cluster.add_worker()
        joins.finish(process, tmp_path)
        cluster_log = (tmp_path / "cluster.log").read_text()
    assert "ecommission" in cluster_log
    joins.check(tmp_path)


@pytest.mark.chaos
def test_shared_state_in_a_folder_that_is_slow_and_then_lost(tmp_path: Path, environment: dict[str, str]) -> None:
    """Neither changes results nor ends a query, and a micro-batch looks at the folder a few times only."""
    environment["PYTHONPATH"] = os.pathsep.join([str(DAEMONS), *filter(None, sys.path)])
    with started_cluster(tmp_path, environment) as cluster:
        found = run(PROGRAMS / "shared_state.py", [cluster.master, tmp_path], environment)
    for state, files in (("slow", 1), ("lost", 2)):
        rows = range(ROWS * files)
        assert found[state]["kept"] == [row for row in rows if row % 2 and row % 100 > 20 and row % 7 in {1, 3}]
        assert found[state]["joined"] == list(rows)
    looks = Counter((tmp_path / "looks").read_text().split("\n"))
    assert looks.total() > 10
    assert looks.total() < MOST_LOOKS * found["micro_batches"], looks
    assert "is_greedy" in found["error"]
    assert "MemoryError" in found["error"]  # by spark.executor.pyspark.memory
    assert found["after"] == 50


def test_examples_find_the_same_everywhere(
    spark: SparkSession, cluster: str, environment: dict[str, str], tmp_path: Path
) -> None:
    for place in ("classic", "cluster", "connect"):
        (tmp_path / place).mkdir()
    classic = run_examples.run(spark, str(tmp_path / "classic"))
    assert classic["batch"] == classic["stream"]
    assert len(classic["plain"]) > 10
    program = PROGRAMS / "run_examples.py"
    assert run(program, [cluster, tmp_path / "cluster"], environment) == classic
    connected = run(program, ["connect", tmp_path / "connect"], environment)
    assert "Connect" in connected.pop("stream")
    assert connected == {name: found for name, found in classic.items() if name != "stream"}
