import json
import subprocess
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from thalweg.benches import Progress
from thalweg.cli import main
from thalweg.lab import EXPERIMENTS
from thalweg.results import Result, at_least

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

    module = types.ModuleType("thalweg.benches.slow")
    vars(module).update(NAME="slow", SUMMARY="Never fast enough.", SCENARIOS=("first",), run=measure)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr("thalweg.benches.BENCHES", ("slow",))


@pytest.mark.parametrize(
    "words", [[], ["lab"], ["lab", "list"], ["lab", "run"], ["lab", "report"], ["bench"], ["explain"]]
)
def test_every_command_has_help(words: list[str]) -> None:
    code, output = run(*words, "--help")
    assert code == 0
    assert "Usage" in output


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from thalweg.cli import main;"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
        "print({'pyspark', 'numba', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_version() -> None:
    assert run("--version") == (0, "thalweg 0.1.0\n")


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


NATURAL = "R1.pid = R2.pid AND R2.pid = R3.pid"


def test_explain_a_condition() -> None:
    code, output = run("explain", NATURAL, "--rate", "R2=50", "--selectivity", "R1.pid = R2.pid = 0.02")
    assert code == 0, output
    for part in ("complete join of 3 streams", "R2  50/s", "Orders by q-aware, which chose", "R1 → R3", "f-greedy"):
        assert part in output
    code, output = run("explain", NATURAL, "--equalities", "reduced", "--planner", "fab", "--measure", "pairs")
    assert code == 0, output
    for part in ("linear join of 3 streams", "Orders by fab; costs a second, probes in pairs:"):
        assert part in output


def test_explain_a_query_names_what_is_not_part_of_the_join() -> None:
    code, output = run("explain", "SELECT * FROM R1 JOIN R2 ON R1.pid = R2.pid WHERE R1.port < 1024")
    assert code == 0, output
    assert "linear join of 2 streams" in output
    assert "Not part of the join: R1.port < 1024." in output


def test_explain_a_file_and_write_what_was_found(tmp_path: Path) -> None:
    statistics, image, file = tmp_path / "join.json", tmp_path / "join.svg", tmp_path / "explained.json"
    statistics.write_text(json.dumps({"rates": {"A": 5, "B": 7, "C": 2}, "selectivities": {"A B": 0.1, "B C": 0.5}}))
    code, output = run("explain", str(statistics), "--picture", str(image), "--json", str(file))
    assert code == 0, output
    assert "linear join of 3 streams" in output
    assert image.read_text().startswith("<?xml")
    assert json.loads(file.read_text())["streams"][0]["order"] == ["B", "C"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["R1.pid = "], "does not parse; write equalities like"),
        (["R1.pid = R1.ip"], "a self-join needs an alias"),
        ([NATURAL, "--rate", "R9=1"], "there is no stream 'R9'"),
        ([NATURAL, "--rate", "R1=fast"], "write it like 'R1=75'"),
        ([NATURAL, "--window", "R1=0"], "the window of R1 is a number above 0"),
        ([NATURAL, "--selectivity", "R1.pid = R2.pid = 2"], "above 0 and at most 1"),
        ([NATURAL, "--selectivity", "R1.pid = R2.pid"], "write it like 'R1.pid = R2.pid = 0.02'"),
        ([NATURAL, "--planner", "fabb"], "did you mean 'fab'?"),
        ([NATURAL, "--measure", "bytes"], "pairs, tuples, indexed"),
        ([NATURAL, "--equalities", "all"], "written, reduced, closed"),
        ([NATURAL, "--picture", "join.gif"], "svg or png"),
        (["nowhere.toml"], "nowhere.toml cannot be read"),
        (["nowhere.toml", "--rate", "R1=5"], "into nowhere.toml"),
    ],
)
def test_explain_says_what_to_write_instead(words: list[str], message: str) -> None:
    code, output = run("explain", *words)
    assert code == 2
    assert message in output
