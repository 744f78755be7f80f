import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from rich.console import Console

from thalweg_lab.experiments.a_greedy.examples import EXPERIMENT as EXAMPLES
from thalweg_lab.experiments.experiment import Experiment, Row
from thalweg_lab.experiments.run import OnProgress, Sweeper, run
from thalweg_lab.parameter_sweep import ParameterSweep, SweepError, run_sweeps
from thalweg_lab.results import Report, exactly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = replace(
    EXAMPLES,
    settings=lambda quick: [{"example": 2}] * (1 if quick else 2),
    judge=lambda rows: [exactly("rows", "number", len(rows), 4)],
    plot=None,
)


def here(jobs: Sequence[ParameterSweep], on_progress: OnProgress) -> Iterator[tuple[str, list[Any] | SweepError]]:
    """A sweeper without Spark."""
    for job in jobs:
        try:
            results = [job.function(setting) for setting in job.settings]
        except Exception as error:  # noqa: BLE001 - stands for whatever a worker may raise
            yield job.name, SweepError(str(error))
            continue
        on_progress(job.name, len(results), len(results))
        yield job.name, json.loads(json.dumps(results))


def nowhere(_jobs: Sequence[ParameterSweep], _on_progress: OnProgress) -> Iterator[tuple[str, list[Any] | SweepError]]:
    pytest.fail("nothing was left to measure")


def lab(*experiments: Experiment, out: Path, sweeper: Sweeper = here, **options: bool) -> tuple[Report, dict[str, str]]:
    return run(experiments, sweeper=sweeper, out=out, console=Console(quiet=True), **options)


def broken(_rows: list[Row]) -> NoReturn:
    raise LookupError("no such row")


def test_it_leaves_rows_report_and_plots(tmp_path: Path) -> None:
    report, failures = lab(EXAMPLES, out=tmp_path)
    assert not failures
    assert report.name == "lab"
    assert report.results[0].scenario == "examples/example 2"
    stored = json.loads((tmp_path / "examples.json").read_text())
    assert (stored["kind"], stored["report"]["name"]) == ("full", "lab/examples")
    with (tmp_path / "examples.csv").open() as file:
        assert [row["value"] for row in csv.DictReader(file)] == [str(row["value"]) for row in stored["rows"]]
    assert (tmp_path / "examples.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "examples.svg").read_bytes()


def test_the_same_rows_give_the_same_drawing(tmp_path: Path) -> None:
    lab(EXAMPLES, out=tmp_path / "first")
    lab(EXAMPLES, out=tmp_path / "second")
    assert (tmp_path / "first/examples.svg").read_bytes() == (tmp_path / "second/examples.svg").read_bytes()


def test_resume_keeps_rows_of_the_same_kind_and_judges_them_again(tmp_path: Path) -> None:
    lab(SMALL, out=tmp_path, quick=True)
    stricter = replace(SMALL, judge=lambda rows: [exactly("rows", "number", len(rows), 7)])
    report, _ = lab(stricter, out=tmp_path, quick=True, resume=True, sweeper=nowhere)
    assert [result.holds for result in report.results] == [False]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "full"},
        {"version": "0.0.0"},
        {"settings": []},
        {"rows": None, "report": None},
    ],
)
def test_resume_measures_again_what_is_not_the_same(tmp_path: Path, change: dict[str, Any]) -> None:
    lab(SMALL, out=tmp_path, quick=True)
    path = tmp_path / "examples.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    lab(SMALL, out=tmp_path, quick=True, resume=True)
    stored = json.loads(path.read_text())
    assert (stored["kind"], len(stored["rows"])) == ("quick", 4)


def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path) -> None:
    def interrupted(jobs: Sequence[ParameterSweep], on_progress: OnProgress) -> Iterator[Any]:
        yield from here(jobs[:1], on_progress)
        raise KeyboardInterrupt

    second = replace(SMALL, id="second")
    with pytest.raises(KeyboardInterrupt):
        lab(SMALL, second, out=tmp_path, sweeper=interrupted)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["examples.csv", "examples.json"]
    left: list[str] = []

    def noted(jobs: Sequence[ParameterSweep], on_progress: OnProgress) -> Iterator[Any]:
        left.extend(job.name for job in jobs)
        return here(jobs, on_progress)

    report, _ = lab(SMALL, second, out=tmp_path, resume=True, sweeper=noted)
    assert left == ["second"]
    assert [result.scenario for result in report.results] == ["examples/rows", "second/rows"]


def test_one_failing_experiment_does_not_stop_the_others(tmp_path: Path) -> None:
    failing = replace(SMALL, id="failing", settings=lambda _: [{"example": 9}])
    unjudged = replace(SMALL, id="unjudged", judge=broken)
    undrawn = replace(SMALL, id="undrawn", plot=lambda rows, _: broken(rows))
    report, failures = lab(failing, unjudged, undrawn, SMALL, out=tmp_path, quick=True)
    assert failures == {
        "failing": "9",
        "unjudged": "its judge raised LookupError: no such row",
        "undrawn": "its plot raised LookupError: no such row",
    }
    ran = [result for result in report.results if result.measure == "ran"]
    assert {result.scenario: result.note for result in ran} == failures
    assert not any(result.holds for result in ran)
    assert json.loads((tmp_path / "unjudged.json").read_text())["rows"], "rows are kept though the judge failed"
    assert not (tmp_path / "failing.json").exists()


def test_on_spark(spark: "SparkSession", tmp_path: Path) -> None:
    report, failures = lab(
        SMALL,
        replace(SMALL, id="failing", settings=lambda _: [{"example": 9}]),
        out=tmp_path,
        quick=True,
        sweeper=lambda jobs, on_progress: run_sweeps(spark, jobs, on_progress=on_progress),
    )
    assert [result.holds for result in report.results] == [True, False]
    assert "raised KeyError: 9" in failures["failing"]
    assert "(examples.py, line" in failures["failing"]
