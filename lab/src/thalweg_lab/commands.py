"""The commands that `thalweg-lab` adds to `thalweg`: `lab`, `bench` and `demo`.

Reads options, calls the part that does the work, prints, and sets the exit code. Each command imports the modules that
do the work, so that `thalweg --help` is quick.
"""

import logging
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from thalweg.plain_help import PlainCommand, PlainGroup

if TYPE_CHECKING:
    from thalweg_lab.results import Report

INTERRUPTED = 130  # the exit code that shells give a command stopped by Ctrl-C

lab = typer.Typer(
    cls=PlainGroup,
    help="Reproduce the papers' figures, tables and examples.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

console = Console()
messages = Console(stderr=True)


def _experiment_ids(incomplete: str) -> list[str]:
    """The ids of experiments, for a shell to complete."""
    from thalweg_lab.experiments import EXPERIMENTS

    return [experiment.id for experiment in EXPERIMENTS if experiment.id.startswith(incomplete)]


def _bench_names(incomplete: str) -> list[str]:
    """The names of benchmarks, for a shell to complete."""
    from thalweg_lab.benches import BENCHES

    return [name for name in BENCHES if name.startswith(incomplete)]


def _scenarios(context: typer.Context, incomplete: str) -> list[str]:
    """The scenarios of the benchmark that is named, for a shell to complete."""
    from thalweg_lab.benches import BENCHES, bench_of

    name = context.params.get("name")
    known = bench_of(name).SCENARIOS if name in BENCHES else ()
    return [scenario for scenario in known if scenario.startswith(incomplete)]


JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the results to this file.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 when a target did not hold.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the lab's files.")]


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long the acts take together.")] = 120.0,
    act: Annotated[list[int] | None, typer.Option(min=1, max=3, help="Only this act; may be given again.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the data: the same seed gives the same rows.")] = 0,
    headless: Annotated[bool, typer.Option("--headless", help="Plain lines, and no live page.")] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Keep the live page up at the end, until Ctrl-C.")] = False,
    json_file: JsonOption = None,
) -> None:
    """See Thalweg beside plain Spark: filters, a join of four streams, and standing queries, in three acts.

    Both read the same streams, which drift. Every number is measured in this run. Ends by itself.
    """
    from thalweg_lab.demo.story import ACTS, DemoOptions, play

    acts = tuple(sorted(set(act or range(1, len(ACTS) + 1))))
    shown = Console(force_terminal=False) if headless else console
    with _clean_exit():
        report = play(shown, DemoOptions(seconds, seed, acts, has_page=not headless, serve=serve))
        if json_file is not None:
            report.write(json_file)


@lab.command("list", cls=PlainCommand)
def list_experiments() -> None:
    """List the experiments, with the claim that each experiment tests."""
    from thalweg_lab.experiments import EXPERIMENTS

    for experiment in EXPERIMENTS:
        _list_entry(experiment.id, experiment.title, f"{experiment.source}. {experiment.claim}.")


@lab.command("run", cls=PlainCommand)
def run_experiments(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID", help="Which experiments; see [b]thalweg lab list[/b].", autocompletion=_experiment_ids
        ),
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
    from thalweg.spark.start import spark_session
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
            sweeper=lambda jobs, on_progress: run_sweeps(spark_session(master=master), jobs, on_progress=on_progress),
            out=out,
            quick=quick,
            resume=resume,
            console=console,
        )
    _finish(report, json_file, strict, failed)


@lab.command("report", cls=PlainCommand)
def report_experiments(out: OutOption = Path("lab-out")) -> None:
    """Write report.md and report.html of the files that [b]thalweg lab run[/b] left in the folder."""
    from thalweg_lab.experiments import EXPERIMENTS
    from thalweg_lab.experiments.report import show_summary, write_report

    if not out.is_dir():
        raise typer.BadParameter(f"there is no folder {out}: run `thalweg lab run --all --out {out}` first.")
    with _clean_exit(expected=(ValueError,)):
        show_summary(EXPERIMENTS, write_report(EXPERIMENTS, out), console)
    console.print(f"Written: {out / 'report.md'} and {out / 'report.html'}", highlight=False, soft_wrap=True)


@lab.command("figures", cls=PlainCommand)
def draw_figures(
    docs: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the documentation.")] = Path("docs"),
    readme: Annotated[Path, typer.Option(metavar="FILE", help="The README.")] = Path("README.md"),
) -> None:
    """Draw the figures of the documentation, and write its measured tables, from the files that commands measured.

    [b]docs/figures.toml[/b] names the command of each file, say [b]thalweg demo --headless --json
    docs/figures/demo.json[/b].
    """
    from thalweg_lab.figures import draw_all

    with _clean_exit(expected=(OSError, ValueError)):
        for path in draw_all(docs, readme):
            console.print(f"Written: {path}", highlight=False, soft_wrap=True)


def bench(
    name: Annotated[
        str | None, typer.Argument(help="Which benchmark; without it, list them.", autocompletion=_bench_names)
    ] = None,
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario of the benchmark; all if not given.", autocompletion=_scenarios)
    ] = None,
    json_file: JsonOption = None,
    strict: StrictOption = False,
) -> None:
    """Run a benchmark. It compares within one run and reports ratios.

    Exits with 0 when it ran, also if a target did not hold.
    """
    from thalweg_lab.benches import BENCHES, bench_of
    from thalweg_lab.progress import told_progress
    from thalweg_lab.results import Report, machine

    if name is None:
        for listed in map(bench_of, BENCHES):
            _list_entry(listed.NAME, listed.SUMMARY, f"Scenarios: {', '.join(listed.SCENARIOS)}.")
        return
    try:
        chosen = bench_of(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if scenario is not None and scenario not in chosen.SCENARIOS:
        raise typer.BadParameter(f"{name} has no scenario {scenario}; it has: {', '.join(chosen.SCENARIOS)}.")
    start = time.perf_counter()
    with _clean_exit(), told_progress(console) as tell:

        def progress(done: int, total: int, what: str = "") -> None:
            tell(name, done, total, what)

        results = chosen.run(scenario, progress)
    _finish(Report(name, time.perf_counter() - start, machine(), tuple(results)), json_file, strict)


def _list_entry(name: str, title: str, text: str) -> None:
    """Print an entry of a list: its name and title, and below it a text, in lines that fit a narrow terminal."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text.assemble((name, "bold"), f"  {title}"))
    console.print(Padding(Text(text), (0, 0, 0, 4)))


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
    """End a command with one line instead of a traceback, for errors that the user made or can mend.

    A signal TERM is like Ctrl-C: what was started is stopped, and temporary files are removed.
    """
    from thalweg.spark.start import NoSparkError
    from thalweg_lab.parameter_sweep import SweepError

    caught: tuple[type[Exception], ...] = (NoSparkError, SweepError, *expected)

    logging.getLogger().addFilter(_is_no_interrupt)
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    except KeyboardInterrupt:
        message, code = f"Interrupted. {after_interrupt}".strip(), INTERRUPTED
    except caught as error:
        message, code = str(error), 1
    else:
        return
    finally:
        signal.signal(signal.SIGTERM, before)
        logging.getLogger().removeFilter(_is_no_interrupt)
    messages.print(message, style="bold red", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(code)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Whether a record is to be shown.

    Py4J writes a traceback of Ctrl-C to the log before it raises it; and another if Spark's answer to Ctrl-C, to cancel
    all jobs, finds that the connection to the JVM is being read.

    >>> record = logging.makeLogRecord({"exc_info": (RuntimeError, RuntimeError("reentrant call"), None)})
    >>> _is_no_interrupt(record), _is_no_interrupt(logging.makeLogRecord({}))
    (False, True)
    """
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or str(error).startswith("reentrant call"):
            return False
        error = error.__cause__ or error.__context__
    return True
