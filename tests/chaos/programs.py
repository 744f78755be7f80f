"""The programs that are killed: a join, a filter and a session, each from files to files, a file a micro-batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from tests.spark.joins import test_restart as joins
from tests.spark.session import test_restart as sessions
from tests.spark.session.harness import write_files

FILES = 24  # of each stream: enough micro-batches for a chain of kills
ROWS = 500  # in a file of the filter
Process = subprocess.Popen[bytes]
started: list[Process] = []  # by the test that runs


@dataclass(frozen=True)
class Program:
    """A program that can be killed, and started again on the same folder, as often as you like."""

    name: str
    file: str  # in tests/spark/programs
    write_input: Callable[[Path], None]
    check: Callable[[Path], None]  # compares the results in a folder with DuckDB's
    checkpoint: str  # of Spark, in a folder

    def start(self, folder: Path, environment: dict[str, str], master: str) -> Process:
        with (folder / "program.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(joins.PROGRAM.with_name(self.file)), master, str(folder)],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        return process

    def commits(self, folder: Path) -> int:
        """How many micro-batches are done."""
        try:
            return sum(name.isdigit() for name in os.listdir(folder / self.checkpoint / "commits"))  # noqa: PTH208 - fast
        except FileNotFoundError:
            return 0


def check_join(folder: Path) -> None:
    joins.check(folder)
    inputs = json.loads((folder / "about.json").read_text())["inputs"]
    assert {name: about["rows"] for name, about in inputs.items()} == dict.fromkeys("ABC", FILES * joins.ROWS)


def write_numbers(folder: Path) -> None:
    (folder / "in").mkdir()
    generator = np.random.default_rng(5)
    for number in range(FILES):
        path = folder / "in" / f"{number}.parquet"
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
        parquet.write_table(pa.table({"id": ids, "v": generator.integers(0, 100, ROWS)}), path)
        os.utime(path, (10**9 + number, 10**9 + number))


def check_numbers(folder: Path) -> None:
    files = (folder / "out").glob("*.parquet")
    given = Counter(row["id"] for file in files for row in parquet.read_table(file).to_pylist())
    with duckdb.connect() as connection:
        connection.register("numbers", parquet.read_table(folder / "in"))
        answer = "SELECT id FROM numbers WHERE v % 2 = 1 AND v > 20 AND (id + v) % 10 < 7"
        expected = Counter(row for (row,) in connection.execute(answer).fetchall())
    assert expected.total() > 1000
    assert given == expected


JOIN = Program("join", "join_files.py", lambda folder: joins.write_streams(folder, FILES), check_join, "checkpoint")
FILTER = Program("filter", "filter_files.py", write_numbers, check_numbers, "checkpoint")
SESSION = Program(
    "session",
    "session_files.py",
    lambda folder: write_files(folder, sessions.batches(FILES)),
    lambda folder: sessions.check(folder, sessions.batches(FILES)),
    "checkpoint/spark",
)
