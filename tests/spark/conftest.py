"""Spark elsewhere than in the process of the tests: a cluster, and programs of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[str]:
    """A master and two workers with a core each, as processes of their own."""
    pyspark = pytest.importorskip("pyspark")
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [
        [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"],
        *[[f"{deploy}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0", master]] * 2,
    ]
    log = (tmp_path / "cluster.log").open("wb")
    started = []
    try:
        for command in commands:
            started.append(
                subprocess.Popen([str(spark_class), *command], env=environment, stdout=log, stderr=subprocess.STDOUT)
            )
            if len(started) == 1:
                _wait_for(port)
        yield master
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)
        log.close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the master did not start")
