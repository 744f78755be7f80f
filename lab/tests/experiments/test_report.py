import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from thalweg_lab.experiments.a_greedy.examples import EXPERIMENT as EXAMPLES
from thalweg_lab.experiments.experiment import Experiment
from thalweg_lab.experiments.outcome import Outcome, draw
from thalweg_lab.experiments.report import show_summary, write_report
from thalweg_lab.results import Report, Result, at_least, claim

EVIL = replace(EXAMPLES, id="evil", title="a < b | c", claim="<script>alert(1)</script>", plot=None)
MISSING = replace(EXAMPLES, id="missing", plot=None)


def leave(folder: Path, experiment: Experiment, *results: Result) -> None:
    rows = [row for setting in EXAMPLES.settings(True) for row in EXAMPLES.measure(setting)]  # noqa: FBT003
    Outcome(experiment.id, True, "0.1.0", [], rows, Report("lab", 2.0, {}, results)).write(folder)  # noqa: FBT003
    draw(experiment, rows, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    leave(tmp_path, EXAMPLES, at_least("n = 8", "speed-up", 6.0, 5, "on two cores"))
    leave(tmp_path, EVIL, claim("a | b", "<b>", None, "rises", holds=False))
    return tmp_path


def test_claims_stand_beside_what_was_measured(folder: Path) -> None:
    outcomes = write_report([EXAMPLES, EVIL, MISSING], folder)
    assert sorted(outcomes) == ["evil", "examples"]
    text = (folder / "report.md").read_text()
    assert EXAMPLES.claim in text
    assert "| n = 8 | speed-up | 6 | >= 5 | yes | on two cores |" in text
    assert "| a \\| b | <b> | - | rises | no |  |" in text
    assert "![The worked examples](examples.svg)" in text
    assert "Not run: `thalweg lab run missing`." in text
    assert "2 of 3 experiments were run; 1 of 2 claims hold." in text


def test_the_page_needs_no_other_file_and_escapes_what_it_shows(folder: Path) -> None:
    write_report([EXAMPLES, EVIL, MISSING], folder)
    page = (folder / "report.html").read_text()
    assert re.findall(r'(?:src|href)="([^"]{20})', page) == ["data:image/svg+xml;b"]
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "thalweg lab run missing" in page


def test_an_empty_folder_is_reported_as_not_run(tmp_path: Path) -> None:
    assert write_report([MISSING], tmp_path) == {}
    console = Console(width=200, record=True, quiet=False)
    show_summary([MISSING], {}, console)
    assert "not run" in console.export_text()
