import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli import COMMANDS_OF_THE_LAB, command_line

NATURAL = "R1.pid = R2.pid AND R2.pid = R3.pid"


def run(*words: str) -> tuple[int, str]:
    """Run the command as it is for a user who has not installed thalweg-lab."""
    result = CliRunner().invoke(command_line([]), list(words), env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.mark.parametrize("words", [[], ["explain"], ["run"], ["doctor"]])
def test_every_command_has_help(words: list[str]) -> None:
    code, output = run(*words, "--help")
    assert code == 0
    assert "Usage" in output


@pytest.mark.parametrize("words", [[], ["explain"], ["run"]])
def test_flags_take_no_value(words: list[str]) -> None:
    _, output = run(*words, "--help")
    assert "--help" in output
    assert "<bool>" not in output


@pytest.mark.parametrize("name", COMMANDS_OF_THE_LAB)
@pytest.mark.parametrize("words", [[], ["run", "--all"], ["--help"]])
def test_commands_of_the_lab_say_what_to_install(name: str, words: list[str]) -> None:
    message = f"`thalweg {name}` is a command of thalweg-lab: run `pip install thalweg-lab`.\n"
    assert run(name, *words) == (1, message)


def test_help_lists_the_commands_that_are_there() -> None:
    _, output = run("--help")
    assert "explain" in output
    assert not any(f" {name} " in output for name in COMMANDS_OF_THE_LAB)


def test_help_imports_nothing_heavy() -> None:
    """With every command that is installed."""
    script = (
        "import sys; from typer.testing import CliRunner; from thalweg.cli import main;"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0;"
        "print({'pyspark', 'numba', 'matplotlib', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_version() -> None:
    assert run("--version") == (0, "thalweg 0.1.0\n")


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
    assert "Not part of the order: R1.port < 1024." in output


def test_explain_takes_the_conditions_of_tw_join() -> None:
    code, output = run("explain", "A.`id.orig_h` = B.host AND lower(B.user) = C.user AND A.x < B.y + 1.5")
    assert code == 0, output
    assert "linear join of 3 streams" in output
    assert "Not part of the order: A.x < B.y + 1.5." in output


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
        (["A.k = B.k AND C.k = D.k"], "no equality connects A, B and C, D"),
        (["A.k < B.k"], "joins nothing: no equality is between two streams"),
        ([NATURAL, "--json", "no/such/folder/a.json"], "there is no folder no/such/folder for a.json"),
        (["nowhere.toml"], "nowhere.toml cannot be read"),
        (["nowhere.toml", "--rate", "R1=5"], "into nowhere.toml"),
    ],
)
def test_explain_says_what_to_write_instead(words: list[str], message: str) -> None:
    code, output = run("explain", *words)
    assert code == 2
    assert message in output


def test_explain_takes_streams_in_any_case_as_joins_do() -> None:
    code, output = run("explain", "A.k = B.k AND b.l = C.l AND A.x < c.x")
    assert code == 0
    assert "Not part of the order: A.x < c.x" in output


def test_doctor_says_what_to_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, output = run("doctor")
    assert code == 1
    assert "fix Java:" in output
    assert "install a JDK 17 or later" in output


def test_shells_complete_the_command() -> None:
    _, output = run("--help")
    assert "--install-completion" in output
