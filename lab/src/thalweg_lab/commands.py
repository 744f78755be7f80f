"""The commands that `thalweg-lab` adds to `thalweg`: `lab`, `bench` and `demo`.

Reads options, calls the part that does the work, prints, and sets the exit code. Each command imports the modules that
do the work, so that `thalweg --help` is quick.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from thalweg_lab.results import Report

INTERRUPTED = 130  # the exit code that shells give a command stopped by Ctrl-C

lab = typer.Typer(
    help="Reproduce the papers' figures, tables and examples.", no_args_is_help=True, rich_markup_mode="rich"
)

console = Console()
messages = Console(stderr=True)

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the results to this file.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 when a target did not hold.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the lab's files.")]


def demo() -> None:
    """See Thalweg find the cheapest order of a query's predicates."""
    from thalweg_lab.demo import main as run_demo

    with _clean_exit():
        run_demo(console)


@lab.command("list")
def list_experiments() -> None:
    """List the experiments, with the claim that each experiment tests."""
    from rich.table import Table

    from thalweg_lab.experiments import EXPERIMENTS

    table = Table("id", "title", "source", "claim")
    for experiment in EXPERIMENTS:
        table.add_row(experiment.id, experiment.title, experiment.source, experiment.claim)
    console.print(table)


@lab.command("run")
def run_experiments(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Which experiments; see [b]thalweg lab list[/b]."),
    ] = None,
    all_of_them: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller settings.")] = False,
    out: OutOption = Path("lab-out"),
    json_file: JsonOption = None,
    strict: StrictOption = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the experiments that an earlier run of the same kind has finished.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A Spark master, or sc://... for Connect; a local Spark if not given."),
    ] = None,
) -> None:
    """Run experiments on Spark, and set the papers' claims beside the measurements.

    Each experiment leaves [b]ID.json[/b], [b]ID.csv[/b], [b]ID.png[/b] and [b]ID.svg[/b] in the folder.
    Exits with 0 when everything ran, also if a target did not hold, and with 1 when an experiment could not run to its
    end.
    """
    from thalweg.spark.start import local_session
    from thalweg_lab.experiments import EXPERIMENTS, find
    from thalweg_lab.experiments.run import run
    from thalweg_lab.parameter_sweep import run_sweeps

    if not ids and not all_of_them:
        known = ", ".join(experiment.id for experiment in EXPERIMENTS)
        raise typer.BadParameter(f"name experiments, or give --all. The ids are: {known}.")
    try:
        chosen = list(EXPERIMENTS) if all_of_them else find(ids or [])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with _clean_exit(f"The finished experiments are in {out}; add --resume to go on from there."):
        report, failed = run(
            chosen,
            sweeper=lambda jobs, on_progress: run_sweeps(local_session(master=master), jobs, on_progress=on_progress),
            out=out,
            quick=quick,
            resume=resume,
            console=console,
        )
    _finish(report, json_file, strict, failed)


@lab.command("report")
def report_experiments(out: OutOption = Path("lab-out")) -> None:
    """Write report.md and report.html of the files that [b]thalweg lab run[/b] left in the folder."""
    from thalweg_lab.experiments import EXPERIMENTS
    from thalweg_lab.experiments.report import show_summary, write_report

    if not out.is_dir():
        raise typer.BadParameter(f"there is no folder {out}: run `thalweg lab run --all --out {out}` first.")
    with _clean_exit(expected=(ValueError,)):
        show_summary(EXPERIMENTS, write_report(EXPERIMENTS, out), console)
    console.print(f"Written: {out / 'report.md'} and {out / 'report.html'}", highlight=False, soft_wrap=True)


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; without it, list them.")] = None,
    scenario: Annotated[str | None, typer.Argument(help="A scenario of the benchmark; all if not given.")] = None,
    json_file: JsonOption = None,
    strict: StrictOption = False,
) -> None:
    """Run a benchmark. It compares within one run and reports ratios.

    Exits with 0 when it ran, also if a target did not hold.
    """
    from rich.progress import Progress
    from rich.table import Table

    from thalweg_lab.benches import BENCHES, load
    from thalweg_lab.results import Report, machine

    if name is None:
        table = Table("name", "summary", "scenarios")
        for known in BENCHES:
            listed = load(known)
            table.add_row(listed.NAME, listed.SUMMARY, ", ".join(listed.SCENARIOS))
        console.print(table)
        return
    try:
        chosen = load(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if scenario is not None and scenario not in chosen.SCENARIOS:
        raise typer.BadParameter(f"{name} has no scenario {scenario}; it has: {', '.join(chosen.SCENARIOS)}.")
    start = time.perf_counter()
    with _clean_exit(), Progress(console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def progress(done: int, total: int, what: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{name} {what}".strip())

        results = chosen.run(scenario, progress)
    _finish(Report(name, time.perf_counter() - start, machine(), tuple(results)), json_file, strict)


def _finish(report: "Report", json_file: Path | None, strict: bool, failed: Collection[str] = ()) -> None:
    from thalweg_lab.results import show

    show(report, console)
    if json_file is not None:
        report.write(json_file)
    if failed:
        messages.print(f"Could not run to the end: {', '.join(failed)}.", style="bold red", highlight=False)
    if failed or (strict and not report.holds):
        raise typer.Exit(1)


@contextmanager
def _clean_exit(after_interrupt: str = "", expected: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """End a command with one line instead of a traceback, for errors that the user made or can mend."""
    from thalweg.spark.start import NoSparkError
    from thalweg_lab.parameter_sweep import SweepError

    caught: tuple[type[Exception], ...] = (NoSparkError, SweepError, *expected)

    try:
        yield
    except KeyboardInterrupt:
        message, code = f"Interrupted. {after_interrupt}".strip(), INTERRUPTED
    except caught as error:
        message, code = str(error), 1
    else:
        return
    messages.print(message, style="bold red", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)
