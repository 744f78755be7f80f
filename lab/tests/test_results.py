import json
import math
from pathlib import Path

import pytest
from rich.console import Console

from thalweg.output import finite
from thalweg_lab.results import Report, Result, at_least, at_most, between, claim, exactly, machine, show


def report(*results: Result) -> Report:
    return Report("bench", 1.23456, machine(), results)


def test_the_shape_is_the_published_one(tmp_path: Path) -> None:
    report(at_least("n = 8", "speed-up", 6.0, 5, "on two cores")).write(tmp_path / "new" / "file.json")
    shape = json.loads((tmp_path / "new" / "file.json").read_text())
    assert list(shape) == ["name", "seconds", "machine", "results"]
    assert shape["results"] == [
        {
            "scenario": "n = 8",
            "measure": "speed-up",
            "value": 6.0,
            "target": ">= 5",
            "holds": True,
            "note": "on two cores",
        }
    ]


@pytest.mark.parametrize(
    ("result", "holds", "target"),
    [
        (at_least("s", "m", 5.0, 5), True, ">= 5"),
        (at_least("s", "m", 4.9, 5), False, ">= 5"),
        (at_most("s", "m", 0.05, 0.05), True, "<= 0.05"),
        (at_most("s", "m", 0.06, 0.05), False, "<= 0.05"),
        (between("s", "m", 0.25, (0.2, 0.3)), True, "0.2 to 0.3"),
        (between("s", "m", 0.31, (0.2, 0.3)), False, "0.2 to 0.3"),
        (exactly("s", "m", 16, 16), True, "= 16"),
        (exactly("s", "m", "F3 F1", "F1 F3"), False, "= F1 F3"),
        (claim("s", "m", None, "grows with n", holds=True), True, "grows with n"),
    ],
)
def test_helpers_judge_the_value(result: Result, holds: bool, target: str) -> None:  # noqa: FBT001 - a parameter of the test
    assert (result.holds, result.target) == (holds, target)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_becomes_null_with_a_note(value: float, tmp_path: Path) -> None:
    report(at_least("s", "m", value, 5, "cold")).write(tmp_path / "file.json")
    [result] = json.loads((tmp_path / "file.json").read_text())["results"]
    assert result["value"] is None
    assert result["note"] == f"cold; value was {value}"
    assert finite([value, {"x": value}]) == [None, {"x": None}]


def test_nothing_holds_of_a_value_that_is_not_a_number() -> None:
    assert not at_least("s", "m", math.nan, 0).holds
    assert not at_most("s", "m", math.nan, 0).holds
    assert not between("s", "m", math.nan, (0, 1)).holds


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    report().write(path)
    before = path.read_text()
    broken = Report("bench", 1.0, {"cpu": object()}, ())  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        broken.write(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_names_with_brackets_are_printed_as_they_are() -> None:
    console = Console(width=100, record=True, quiet=False)
    show(report(at_least("[bold]n[/bold]", "speed-up", 1.0, 5)), console)
    text = console.export_text()
    assert "[bold]n[/bold]" in text
    assert "0 of 1 held" in text
