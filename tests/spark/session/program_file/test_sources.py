"""`thalweg run` with sources that are no files: rates, a socket, and a data source written in Python."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from thalweg.spark.session.program_file.command import run_file

pytestmark = pytest.mark.usefixtures("spark")  # which the command joins

START = 1_700_000_000  # seconds
PROGRAM = """\
checkpoint = "checkpoint"

[streams.R]
{stream}

[queries.found]
text = "SELECT {columns} FROM R WINDOW [1 second]"
to = {{ format = "json", path = "found", options = {{ timestampFormat = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX" }} }}
"""
TICKS = """\
import datetime as dt

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

class Ticks(DataSource):
    @classmethod
    def name(cls):
        return "ticks"

    def schema(self):
        return "ts timestamp, x long"

    def simpleStreamReader(self, schema):
        return TickReader(int(self.options["count"]))

class TickReader(SimpleDataSourceStreamReader):
    def __init__(self, count):
        self.count = count

    def initialOffset(self):
        return {"next": 0}

    def read(self, start):
        end = {"next": min(start["next"] + 7, self.count)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start, end):
        first = dt.datetime.fromtimestamp(START, dt.timezone.utc)
        return iter([(first + dt.timedelta(seconds=x / 4), x) for x in range(start["next"], end["next"])])
""".replace("START", str(START))


class EndingConsole(Console):
    """Presses Ctrl-C after the first micro-batch with which there is enough."""

    def __init__(self, is_enough: Callable[[str], bool]) -> None:
        super().__init__(file=io.StringIO(), width=200)
        self._is_enough = is_enough
        self._is_ended = False

    def print(self, *texts: Any, **options: Any) -> None:  # noqa: ANN401 - as the base has it
        super().print(*texts, **options)
        if not self._is_ended and self._is_enough(self.said):
            self._is_ended = True
            signal.raise_signal(signal.SIGINT)

    @property
    def said(self) -> str:
        found: str = self.file.getvalue()  # type: ignore[attr-defined]
        return found


def run(folder: Path, stream: str, columns: str, is_enough: Callable[[str], bool]) -> str:
    """Run a program file until there is enough, and return what it has printed."""
    file = folder / "session.toml"
    file.write_text(PROGRAM.format(stream=stream, columns=columns))
    console = EndingConsole(is_enough)
    assert run_file(file, console), console.said
    return console.said


def found(folder: Path) -> list[dict[str, Any]]:
    """The results so far, in the order of their rounds; times in seconds."""
    lines = [line for file in (folder / "found").glob("*.json") for line in file.read_text().splitlines()]
    times = {"round_start", "round_end", "timestamp", "ts"}
    rows = [
        {name: dt.datetime.fromisoformat(value).timestamp() if name in times else value for name, value in row.items()}
        for row in map(json.loads, lines)
    ]
    return sorted(rows, key=lambda row: tuple(row.values()))


def batches(said: str) -> int:
    """How many micro-batches have run."""
    return len(re.findall("^micro-batch ", said, re.MULTILINE))


@pytest.mark.thorough
def test_micro_batches_at_a_rate(tmp_path: Path) -> None:
    stream = f"""
        format = "rate-micro-batch"
        options = {{ rowsPerBatch = 5, startTimestamp = {START * 1000}, advanceMillisPerBatch = 1000 }}
        event_time = "timestamp"
    """
    count = batches(run(tmp_path, stream, "value", lambda said: batches(said) >= 4))
    expected = [  # rows of a micro-batch have one time, and are a round
        {"round_start": START + number - 1.0, "round_end": START + number + 0.0, "value": 5 * number + place}
        for number in range(count - 1)
        for place in range(5)
    ]
    assert found(tmp_path) == expected


def test_rows_at_a_rate(tmp_path: Path) -> None:
    stream = """
        format = "rate"
        options = { rowsPerSecond = 20, numPartitions = 1 }
        event_time = "timestamp"
    """
    run(tmp_path, stream, "timestamp, value", lambda _said: len(found(tmp_path)) > 20)
    rows = found(tmp_path)
    assert sorted(row["value"] for row in rows) == list(range(len(rows)))
    assert all(row["round_start"] < row["timestamp"] <= row["round_end"] for row in rows)


def test_lines_of_a_socket(tmp_path: Path) -> None:
    lines = [f"{START * 1000 + number * 250} {number}\n" for number in range(14)]
    is_read = threading.Event()

    def serve(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.sendall("".join(lines).encode())
            is_read.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        stream = f"""
            format = "socket"
            options = {{ host = "127.0.0.1", port = {server.getsockname()[1]} }}
            select = [
                "timestamp_millis(CAST(split(value, ' ')[0] AS BIGINT)) AS ts",
                "CAST(split(value, ' ')[1] AS INT) AS x",
            ]
            event_time = "ts"
        """
        try:
            run(tmp_path, stream, "ts, x", lambda _said: len(found(tmp_path)) >= 13)
        finally:
            is_read.set()
            thread.join()
    assert found(tmp_path) == in_rounds(range(13))  # the last row waits for a later one


def test_a_data_source_in_python(tmp_path: Path) -> None:
    (tmp_path / "ticks_of_tests.py").write_text(TICKS)
    stream = """
        format = "ticks_of_tests:Ticks"
        options.count = 14
        event_time = "ts"
    """
    folders = list(sys.path)
    try:
        run(tmp_path, stream, "ts, x", lambda _said: len(found(tmp_path)) >= 13)
    finally:
        sys.path[:] = folders
        sys.modules.pop("ticks_of_tests", None)
    assert found(tmp_path) == in_rounds(range(13))


def in_rounds(numbers: range) -> list[dict[str, Any]]:
    """The results for rows that come four a second."""
    ends = {number: START + -(-number // 4) for number in numbers}
    return [
        {"round_start": end - 1.0, "round_end": end + 0.0, "ts": START + number / 4, "x": number}
        for number, end in ends.items()
    ]
