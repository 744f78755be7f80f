"""Runs experiments and leaves their rows, reports and plots in a folder.

Knows the order of events: measure, judge, save, draw. Must not know any experiment, nor how work is spread.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name

from rich.console import Console

from thalweg.output import Json, finite
from thalweg_lab.experiments.experiment import Experiment, Setting
from thalweg_lab.experiments.outcome import Outcome, draw, stored, version
from thalweg_lab.parameter_sweep import ParameterSweep, SweepError, reference
from thalweg_lab.progress import told_progress
from thalweg_lab.results import Report, Result, machine

OnProgress = Callable[[str, int, int], None]
# Runs sweeps and hands over the results of each, or its failure, when it is complete: `run_sweeps` with a session.
Sweeper = Callable[[Sequence[ParameterSweep], OnProgress], Iterator[tuple[str, list[Json] | SweepError]]]


def run(
    experiments: Sequence[Experiment],
    *,
    sweeper: Sweeper,
    out: Path,
    quick: bool = False,
    resume: bool = False,
    console: Console,
) -> tuple[Report, dict[str, str]]:
    """Run experiments; return the report of all of them, and why some failed, by id.

    An experiment's files are written as soon as its last setting is measured, so that an interrupted run keeps the
    finished experiments, and `resume` goes on from there. A failing experiment does not stop the others.
    """
    start = time.perf_counter()
    failures: dict[str, str] = {}
    outcomes: dict[str, Outcome] = {}
    by_id = {experiment.id: experiment for experiment in experiments}
    found = (stored(out, experiment, quick=quick) for experiment in experiments if resume)
    kept = [outcome for outcome in found if outcome is not None]
    if kept:
        console.print(f"Kept: {', '.join(outcome.experiment for outcome in kept)}.", highlight=False)
    missing = [by_id[name] for name in by_id if name not in {outcome.experiment for outcome in kept}]
    for measured in chain(kept, _measure(missing, sweeper, quick, console, failures)):
        name = measured.experiment
        # Saved even if the judge fails: measuring may have taken hours, and `resume` judges again.
        outcome = replace(measured, report=replace(measured.report, results=()))
        with _noting(failures, name, "judge"):
            results = tuple(by_id[name].judge(measured.rows))
            outcome = replace(measured, report=replace(measured.report, results=results))
        outcome.write(out)
        outcomes[name] = outcome
    # Drawn last: Matplotlib would take a core from the experiments that are being timed.
    for name, outcome in outcomes.items():
        with _noting(failures, name, "plot"):
            draw(by_id[name], outcome.rows, out)
    results = tuple(result for name in by_id for result in _results(name, outcomes.get(name), failures.get(name)))
    return Report("lab", time.perf_counter() - start, machine(), results), failures


def measure_timed(setting: Setting) -> Json:
    """Measure one setting on a worker; the seconds are those of this setting, however many others ran beside it.

    >>> measure = "thalweg_lab.experiments.a_greedy.examples:measure"
    >>> measure_timed({"measure": measure, "setting": {"example": 2}})["rows"][0]
    {'example': 2, 'what': 'F1 F2 F3 F4', 'value': 20.0}
    """
    measure = resolve_name(setting["measure"])
    start = time.perf_counter()
    rows = measure(setting["setting"])
    return {"rows": rows, "seconds": time.perf_counter() - start}


def _measure(
    experiments: Sequence[Experiment],
    sweeper: Sweeper,
    quick: bool,  # noqa: FBT001 - passed on by one caller
    console: Console,
    failures: dict[str, str],
) -> Iterator[Outcome]:
    if not experiments:
        return
    settings = {experiment.id: experiment.settings(quick) for experiment in experiments}
    jobs = [
        ParameterSweep(
            experiment.id,
            measure_timed,
            [{"measure": reference(experiment.measure), "setting": setting} for setting in settings[experiment.id]],
        )
        for experiment in experiments
    ]
    with told_progress(console) as tell:

        def on_progress(name: str, done: int, total: int) -> None:
            tell(name, done, total, "")

        for job in jobs:
            on_progress(job.name, 0, len(job.settings))

        for name, measured in sweeper(jobs, on_progress):
            if isinstance(measured, SweepError):
                failures[name] = str(measured)
                continue
            seconds = sum(result["seconds"] for result in measured)
            rows = finite([row for result in measured for row in result["rows"]])
            report = Report(f"lab/{name}", seconds, machine(), ())
            console.print(f"{name}: {len(measured)} settings, {seconds:.1f} s of measuring.", highlight=False)
            yield Outcome(name, quick, version(), settings[name], rows, report)


@contextmanager
def _noting(failures: dict[str, str], name: str, part: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - an experiment's own mistake must not lose the others' results
        failures[name] = f"its {part} raised {type(error).__name__}: {error}"


def _results(name: str, outcome: Outcome | None, failure: str | None) -> list[Result]:
    judged = [] if outcome is None else outcome.report.results
    named = [replace(result, scenario=f"{name}/{result.scenario}") for result in judged]
    ran = Result(name, "ran", None, "runs to its end", holds=False, note=failure or "")
    return named if failure is None else [*named, ran]
