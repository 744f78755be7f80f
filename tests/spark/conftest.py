"""Spark elsewhere than in the process of the tests: a cluster, and programs of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.fast_spark import JAVA_OPTIONS


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What programs of their own see: no settings of the Spark of the tests, and a JVM that starts as fast."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "JAVA_TOOL_OPTIONS": JAVA_OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path),
    }


class Cluster:
    """A master and workers with a core each, as processes of their own on loopback."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        pyspark = pytest.importorskip("pyspark")
        self._spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self._log = (folder / "cluster.log").open("wb")
        self._environment = environment
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("master.Master", "--host", "127.0.0.1", "--port", str(port))
        _wait_for(port)

    def add_worker(self) -> None:
        """Start another worker."""
        self.workers.append(self._start("worker.Worker", "-c", "1", "-m", "1g", self.master))

    def stop(self) -> None:
        """End all processes."""
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.wait(30)
        self._log.close()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._spark_class), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments]
        process = subprocess.Popen(command, env=self._environment, stdout=self._log, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process


@contextmanager
def started_cluster(folder: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    """A cluster of two workers, which ends with the block."""
    cluster = Cluster(folder, environment)
    try:
        cluster.add_worker()
        cluster.add_worker()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[str]:
    """The master of a cluster of two workers."""
    with started_cluster(tmp_path, environment) as started:
        yield started.master


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the master did not start")
