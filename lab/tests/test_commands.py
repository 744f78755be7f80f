import json
import sys
import types
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import thalweg
import thalweg_lab
from thalweg.cli import COMMANDS_OF_THE_LAB, ENTRY_POINTS, main
from thalweg_lab.benches import Progress
from thalweg_lab.experiments import EXPERIMENTS
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words), env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(scenario: str | None, progress: Progress) -> list[Result]:
        progress(1, 1, "all")
        return [at_least(scenario or "every", "speed-up", 2.0, 5)]

    module = types.ModuleType("thalweg_lab.benches.slow")
    vars(module).update(NAME="slow", SUMMARY="Never fast enough.", SCENARIOS=("first",), run=measure)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("thalweg_lab.benches.BENCHES", ("slow",))


def test_thalweg_finds_the_commands() -> None:
    found = metadata.entry_points(group=ENTRY_POINTS)
    assert sorted(command.name for command in found) == sorted(COMMANDS_OF_THE_LAB)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("thalweg la", ["lab"]),
        ("thalweg demo --he", ["--headless", "--help"]),
        ("thalweg lab run om-s", ["om-single"]),
        ("thalweg bench fil", ["filters"]),
        ("thalweg bench filters python-costly-", ["python-costly-page"]),
        ("thalweg bench nothing ", []),
    ],
)
def test_shells_complete_commands_options_and_names(words: str, completed: list[str]) -> None:
    asked = {"_THALWEG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = CliRunner().invoke(main, prog_name="thalweg", env=asked)
    assert result.output.split() == completed


def test_both_distributions_have_one_version() -> None:
    assert thalweg_lab.__version__ == thalweg.__version__


@pytest.mark.parametrize("words", [["demo"], ["lab"], ["lab", "list"], ["lab", "run"], ["lab", "report"], ["bench"]])
def test_every_command_has_help(words: list[str]) -> None:
    code, output = run(*words, "--help")
    assert code == 0
    assert "Usage" in output
    assert "<bool>" not in output  # flags take no value


def test_list_shows_every_experiment() -> None:
    code, output = run("lab", "list")
    assert code == 0
    assert all(experiment.id in output for experiment in EXPERIMENTS)


def test_an_unknown_id_gets_the_closest_and_all_ids() -> None:
    code, output = run("lab", "run", "exmaples")
    assert code == 2
    assert "Did you mean examples?" in output
    assert "The ids are" in output


def test_run_wants_ids_or_all() -> None:
    code, output = run("lab", "run")
    assert code == 2
    assert "--all" in output


def test_run_and_report_on_spark(spark: "SparkSession", tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "lab.json"
    code, output = run("lab", "run", "examples", "--quick", "--strict", "--out", str(out), "--json", str(file))
    assert code == 0, output
    assert spark.range(1).count() == 1, "the session it found active is left running"
    assert json.loads(file.read_text())["name"] == "lab"
    kinds = ("csv", "json", "png", "svg")
    assert sorted(path.name for path in out.iterdir()) == [f"examples.{kind}" for kind in kinds]
    code, output = run("lab", "report", "--out", str(out))
    assert code == 0
    assert "hold" in output
    assert (out / "report.md").exists()
    assert (out / "report.html").exists()


def test_report_of_a_missing_or_spoilt_folder_says_what_to_do(tmp_path: Path) -> None:
    code, output = run("lab", "report", "--out", str(tmp_path / "none"))
    assert code == 2
    assert "thalweg lab run --all" in output
    (tmp_path / "examples.json").write_text("{}")
    code, output = run("lab", "report", "--out", str(tmp_path))
    assert code == 1
    assert "delete it or run the experiment again" in output


@pytest.mark.usefixtures("bench")
def test_bench_exits_with_1_only_when_strict(tmp_path: Path) -> None:
    file = tmp_path / "slow.json"
    assert run("bench", "slow", "first", "--json", str(file))[0] == 0
    assert json.loads(file.read_text())["results"][0]["holds"] is False
    assert run("bench", "slow", "--strict")[0] == 1


@pytest.mark.usefixtures("bench")
def test_bench_lists_and_corrects_names() -> None:
    assert "Never fast enough." in run("bench")[1]
    code, output = run("bench", "slwo")
    assert code == 2
    assert "Did you mean slow?" in output
    code, output = run("bench", "slow", "second")
    assert code == 2
    assert "first" in output
