"""The same program on a real two-worker cluster and on Spark Connect."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("programs") / "filter_numbers.py"
SECONDS = 240

FIRST = [row for row in range(101, 4000) if row % 100 < 90 and row % 10 == 7 and row % 100 % 7 == 0]
STREAMED = [row for row in range(4000) if row % 100 < 90 and row % 10 == 7 and row % 100 % 7 == 0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(tmp_path)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
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
                subprocess.Popen(
                    [str(spark_class), *command], env=environment(tmp_path), stdout=log, stderr=subprocess.STDOUT
                )
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


def run(master: str, tmp_path: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), master],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    assert found["kept"] == [row for row in FIRST if any(digit in str(row) for digit in "123")]
    assert found["rows"] > 0
    assert found["error"]
    assert found["routed"]
    assert found["dropped"] == 399
    assert found["too_small"]
    assert found["cast"] == [row for row in range(3991, 4000) if row % 100 != 5]
    assert found["streamed"] == STREAMED
    assert found["stream_rows"] == 4000


def test_on_a_cluster_of_two_workers(cluster: str, tmp_path: Path) -> None:
    found = run(cluster, tmp_path)
    check(found)
    assert found["workers"] >= 2


def test_on_connect(tmp_path: Path) -> None:
    check(run("connect", tmp_path))
