"""A join that is killed goes on from its checkpoint: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

PROGRAM = Path(__file__).parent.parent.joinpath("programs") / "join_files.py"
SECOND = 1_000_000
BATCHES, ROWS, KEYS = 4, 60, 8
SECONDS = 240
VALUES = ["A_v", "B_v", "C_v"]
ANSWER = """
    SELECT A.v, B.v, C.v FROM A, B, C
    WHERE A.k = B.k AND B.l = C.l
    AND greatest(A.ts, B.ts, C.ts) - least(A.ts, B.ts, C.ts) < INTERVAL 25 SECONDS
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_streams(tmp_path)
    return tmp_path


def write_streams(folder: Path, batches: int = BATCHES) -> None:
    """Files of three streams, oldest first; halfway the keys of a stream become rare, so that orders change."""
    generator = np.random.default_rng(3)
    for name in "ABC":
        for batch in range(batches):
            rare = 4 if batch >= batches // 2 and name == "A" else 1
            times = batch * 10 * SECOND + generator.integers(0, 14 * SECOND, ROWS) + 10**9 * SECOND
            table = pa.table(
                {
                    "k": generator.integers(0, KEYS * rare, ROWS),
                    "l": generator.integers(0, KEYS, ROWS),
                    "v": generator.integers(0, 10**9, ROWS),
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                }
            )
            path = folder / name / f"{batch}.parquet"
            path.parent.mkdir(exist_ok=True)
            parquet.write_table(table, path)
            os.utime(path, (10**9 + batch, 10**9 + batch))


def start(folder: Path, environment: dict[str, str], master: str = "local[2]") -> subprocess.Popen[bytes]:
    with (folder / "program.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), master, str(folder)],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    assert process.wait(SECONDS) == 0, (folder / "program.log").read_text()[-3000:]
    about: dict[str, Any] = json.loads((folder / "about.json").read_text())
    return about


def wait_for(ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert process.poll() is None, (folder / "program.log").read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def numbered_files(folder: Path, log: str) -> int:
    """How many micro-batches have begun ("offsets"), or are done ("commits")."""
    return len([path for path in (folder / "checkpoint" / log).glob("*") if path.name.isdigit()])


def check(folder: Path) -> None:
    log = folder / "out" / "_spark_metadata"  # which files count: a killed job leaves others behind
    files = set()
    for path in sorted(
        log.glob("*"), key=lambda path: int(path.name.removesuffix(".compact")) if path.name[0] != "." else -1
    ):
        if not path.name.startswith("."):
            files |= {json.loads(line)["path"].removeprefix("file://") for line in path.read_text().splitlines()[1:]}
    given = Counter(
        tuple(row.values())
        for name in files
        for row in parquet.read_table(name, columns=VALUES, partitioning=None).to_pylist()
    )
    with duckdb.connect() as connection:
        for name in "ABC":
            connection.register(name, parquet.read_table(folder / name))
        expected = Counter(connection.execute(ANSWER).fetchall())
    assert expected.total() > 1000
    assert given == expected


def test_the_driver_is_killed(folder: Path, environment: dict[str, str]) -> None:
    process = start(folder, environment)
    wait_for(lambda: 1 <= numbered_files(folder, "commits") < numbered_files(folder, "offsets"), process, folder)
    os.killpg(process.pid, signal.SIGKILL)  # in the middle of a micro-batch, or right after it
    process.wait()
    about = finish(start(folder, environment), folder)
    check(folder)
    assert about["inputs"]["A"]["rows"] == BATCHES * ROWS  # counted once, too


def test_an_executor_is_killed(folder: Path, environment: dict[str, str], cluster: str) -> None:
    process = start(folder, environment, cluster)
    wait_for(lambda: numbered_files(folder, "commits") >= 1, process, folder)
    os.kill(executors()[0], signal.SIGKILL)
    finish(process, folder)
    check(folder)


def executors() -> list[int]:
    """The executors of the cluster that this process has started."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"--driver-url\0spark://" in _read(path) and cluster_of(path.parent) == os.getpid()
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def cluster_of(process: Path) -> int:
    """The process that started the worker of an executor."""
    number = int(process.name)
    for _ in range(2):
        number = int(_read(Path(f"/proc/{number}/stat")).rsplit(b")", 1)[1].split()[1])
    return number
