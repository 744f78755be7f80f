from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from thalweg.cli import command_line
from thalweg.spark.session.program_file import command
from thalweg.spark.session.program_file.command import run_file
from thalweg.spark.session.program_file.session_of_file import session_of_file

pytestmark = pytest.mark.usefixtures("spark")  # which the command joins


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command_line([]), ["run", *words], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_a_file_from_end_to_end(program: Path) -> None:
    code, output = run(str(program))
    assert code == 0, output
    assert "micro-batch 0: 10 rows" in output
    assert "\n  to_host_2: 4 rounds, 4 results, until 1970-01-01 00:00:04 UTC\n" in output  # the fifth round waits
    assert "to_host_2: 4 of 4 results" in output
    lines = [line for file in (program.parent / "odd").glob("*.json") for line in file.read_text().splitlines()]
    assert [json.loads(line)["packets"] for line in lines] == [2, 2]


def test_check_runs_nothing(program: Path) -> None:
    code, output = run(str(program), "--check")
    assert (code, output) == (0, f"{program}: no problems: 1 streams, 0 tables, 2 queries.\n")
    assert not (program.parent / "checkpoint").exists()


def test_dry_run_prints_plans_and_charts_of_assumed_rates(program: Path) -> None:
    code, output = run(str(program), "--dry-run")
    assert code == 0, output
    for part in ("Nothing has run.", "assumed numbers: 1,000 rows a second", "to_host_2", "Scan stream TCP", "chart: "):
        assert part in output
    assert not (program.parent / "checkpoint").exists()


def test_a_wrong_file(program: Path) -> None:
    program.write_text(program.read_text().replace("FROM TCP WHERE", "FROM TPC WHERE"))
    code, output = run(str(program), "--check")
    assert code == 2
    assert output.startswith(f"{program}:14:25: queries.to_host_2.text: there is no")


def test_a_query_that_fails(program: Path) -> None:
    program.write_text(program.read_text().replace("SELECT src FROM", "SELECT src / (src - src) AS q FROM"))
    code, output = run(str(program))
    assert code == 1
    assert "The query to_host_2 has failed: " in output
    assert "odd: 2 rounds, 2 results" in output


def test_a_session_that_stops_says_why(program: Path) -> None:
    program.write_text(
        program.read_text().replace('path = "tcp"', 'path = "tcp"\nselect = ["ts", "src", "1 / (src - 3) AS dest"]')
    )
    code, output = run(str(program))
    assert code == 1
    assert "The session has stopped: " in output
    assert "[DIVIDE_BY_ZERO]" in output.partition("The session has stopped: ")[2].splitlines()[0]


def test_a_folder_that_belongs_to_another_session(program: Path) -> None:
    run(str(program))
    program.write_text(program.read_text().replace('"checkpoint"', '"another"'))
    code, output = run(str(program))
    assert code == 2
    assert "is written by another query" in output


class InterruptingConsole(Console):
    """Presses Ctrl-C when the first micro-batch is done."""

    def print(self, *texts: Any, **options: Any) -> None:  # noqa: ANN401 - as the base has it
        super().print(*texts, **options)
        if str(texts[0]).startswith("micro-batch 0"):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_session_that_has_no_end(program: Path) -> None:
    program.write_text(program.read_text().replace("trigger.available_now = true", ""))
    said = io.StringIO()
    handler = signal.getsignal(signal.SIGINT)
    assert run_file(program, InterruptingConsole(file=said, width=200))
    assert "The session ends after the micro-batch that runs" in said.getvalue()
    assert signal.getsignal(signal.SIGINT) is handler
    assert "to_host_2: 4 of 4 results" in said.getvalue()


def test_ctrl_c_while_queries_are_analysed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:  # noqa: ANN401 - as the original has it
        signal.raise_signal(signal.SIGINT)
        return session_of_file(*arguments)

    monkeypatch.setattr(command, "session_of_file", interrupted)
    said = io.StringIO()
    assert run_file(program, Console(file=said, width=200))
    assert said.getvalue() == "The session ends before its first micro-batch.\n"
