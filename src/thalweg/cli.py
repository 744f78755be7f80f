"""The command line: reads options, calls the part that does the work, prints, and sets the exit code.

Must not do any work itself, and imports what does inside each command, so that `thalweg --help` is quick.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from thalweg.joinorder import JoinExplanation
    from thalweg.results import Report

INTERRUPTED = 130  # what shells give a command stopped by Ctrl-C

main = typer.Typer(
    help="An adaptive optimizer for continuous queries on Apache Spark.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
lab = typer.Typer(
    help="Reproduce the papers' figures, tables and examples.", no_args_is_help=True, rich_markup_mode="rich"
)
main.add_typer(lab, name="lab")

console = Console()
messages = Console(stderr=True)

JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the results to this file.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 when something did not hold.")]
OutOption = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the lab's files.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"thalweg {metadata.version('thalweg')}", highlight=False)
        raise typer.Exit


@main.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An adaptive optimizer for continuous queries on Apache Spark."""


@main.command()
def demo() -> None:
    """See Thalweg find the cheapest order of a query's predicates."""
    from thalweg.demo import main as run_demo

    with _clean_exit():
        run_demo(console)


@lab.command("list")
def list_experiments() -> None:
    """List the experiments, with the claim each one tests."""
    from rich.table import Table

    from thalweg.lab import EXPERIMENTS

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
        bool, typer.Option("--resume", help="Keep what an earlier run of the same kind has finished.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A Spark master, or sc://... for Connect; a local Spark if not given."),
    ] = None,
) -> None:
    """Run experiments on Spark, and set the papers' claims beside what was measured.

    Each experiment leaves [b]ID.json[/b], [b]ID.csv[/b], [b]ID.png[/b] and [b]ID.svg[/b] in the folder.
    Exits with 0 when everything ran, whatever held, and with 1 when an experiment could not run to its end.
    """
    from thalweg.lab import EXPERIMENTS, find
    from thalweg.lab.run import run
    from thalweg.spark.start import local_session
    from thalweg.spark.sweep import sweeps

    if not ids and not all_of_them:
        known = ", ".join(experiment.id for experiment in EXPERIMENTS)
        raise typer.BadParameter(f"name experiments, or give --all. The ids are: {known}.")
    try:
        chosen = list(EXPERIMENTS) if all_of_them else find(ids or [])
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with _clean_exit(f"What was finished is in {out}; add --resume to go on from there."):
        report, failed = run(
            chosen,
            sweeper=lambda jobs, on_progress: sweeps(local_session(master=master), jobs, on_progress=on_progress),
            out=out,
            quick=quick,
            resume=resume,
            console=console,
        )
    _finish(report, json_file, strict, failed)


@lab.command("report")
def report_experiments(out: OutOption = Path("lab-out")) -> None:
    """Write report.md and report.html of what [b]thalweg lab run[/b] left in the folder."""
    from thalweg.lab import EXPERIMENTS
    from thalweg.lab.report import show_summary, write_report

    if not out.is_dir():
        raise typer.BadParameter(f"there is no folder {out}: run `thalweg lab run --all --out {out}` first.")
    with _clean_exit(expected=(ValueError,)):
        show_summary(EXPERIMENTS, write_report(EXPERIMENTS, out), console)
    console.print(f"Written: {out / 'report.md'} and {out / 'report.html'}", highlight=False, soft_wrap=True)


@main.command()
def explain(
    what: Annotated[
        str, typer.Argument(metavar="QUERY|FILE", help="A join condition, a query, or a file of statistics.")
    ],
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="STREAM=NUMBER", help="Tuples a second, with a condition; 1 if not given."),
    ] = None,
    window: Annotated[
        list[str] | None, typer.Option(metavar="STREAM=NUMBER", help="Seconds, with a condition; 1 if not given.")
    ] = None,
    selectivity: Annotated[
        list[str] | None,
        typer.Option(metavar="EQUALITY=NUMBER", help="Share of pairs that match, with a condition; 0.1 if not given."),
    ] = None,
    equalities: Annotated[
        str | None,
        typer.Option(help="Which equalities to use, with a condition: written, reduced, or closed if not given."),
    ] = None,
    measure: Annotated[str, typer.Option(help="What a probe costs: pairs, tuples or indexed.")] = "tuples",
    planner: Annotated[str, typer.Option(help="Who chooses the orders.")] = "q-aware",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the join graph, as .svg or .png.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Explain how a windowed join of streams is ordered: its shape, the planner, all orders, and what others cost.

    [b]thalweg explain "R1.pid = R2.pid AND R2.pid = R3.pid" --rate R1=75 --selectivity "R1.pid = R2.pid = 0.02"[/b]

    Statistics are a .json or .toml file; windows in seconds, of all streams or by stream; predicates also as "R1 R2":

    {"rates": {"R1": 75, "R2": 40}, "windows": 10, "selectivities": {"R1.pid = R2.pid": 0.02}, "equalities": "closed"}
    """
    from thalweg.joinorder import explain as explain_join
    from thalweg.joinorder import planner as find_planner
    from thalweg.joinorder.picture import picture as draw_picture
    from thalweg.joinorder.statistics import graph_of_text, read_statistics
    from thalweg.joinorder.text import join_condition
    from thalweg.results import finite, write_atomically, write_json

    filters: tuple[str, ...] = ()
    try:
        if what.endswith((".toml", ".json")) and "=" not in what:
            if rate or window or selectivity or equalities:
                raise typer.BadParameter(f"write rates, windows, selectivities and equalities into {what}")
            graph = read_statistics(Path(what))
        else:
            condition, filters = join_condition(what)
            graph = graph_of_text(condition, rate or (), window or (), selectivity or (), equalities or "closed")
        explanation = explain_join(graph, measure, find_planner(planner))
        image = None if picture is None else draw_picture(graph, picture.suffix.removeprefix("."))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _show_join(explanation)
    if filters:
        messages.print(f"Not part of the join: {', '.join(filters)}. Rates are those that remain.", highlight=False)
    if picture is not None and image is not None:
        write_atomically(picture, image)
    if json_file is not None:
        write_json(json_file, finite(explanation.to_json()))


def _show_join(explanation: "JoinExplanation") -> None:
    from rich.table import Table
    from rich.text import Text

    from thalweg.results import format_value

    orders = explanation.orders
    console.print(Text(str(explanation.graph)))
    by = orders.planner if orders.planner == orders.algorithm else f"{orders.planner}, which chose {orders.algorithm}"
    console.print(f"\nOrders by {by}; costs a second, probes in {orders.measure}:", highlight=False)
    table = Table("stream", "probes")
    for heading in ("insert", "purge", "probe"):
        table.add_column(heading, justify="right")
    for name in explanation.graph.names:
        cost = orders.cost(name)
        numbers = map(format_value, (cost.insert, cost.purge, cost.probe))
        table.add_row(Text(name), Text(" → ".join(orders[name])), *numbers)
    console.print(table)
    console.print("\nAlternatives:")
    table = Table("planner")
    table.add_column(f"{orders.measure} a second", justify="right")
    table.add_column("times the chosen", justify="right")
    table.add_column("note")
    table.add_row(orders.algorithm, format_value(orders.total), "1", "chosen")
    for other in explanation.alternatives:
        values = (other.orders.total, explanation.ratio(other.orders)) if other.orders else (None, None)
        table.add_row(other.planner, *map(format_value, values), other.note)
    console.print(table)


@main.command()
def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; without it, list them.")] = None,
    scenario: Annotated[str | None, typer.Argument(help="One of its scenarios; without it, all.")] = None,
    json_file: JsonOption = None,
    strict: StrictOption = False,
) -> None:
    """Run a benchmark. It compares within one run and reports ratios.

    Exits with 0 when it ran, whatever held.
    """
    from rich.progress import Progress
    from rich.table import Table

    from thalweg.benches import BENCHES, load
    from thalweg.results import Report, machine

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
    from thalweg.results import show

    show(report, console)
    if json_file is not None:
        report.write(json_file)
    if failed:
        messages.print(f"Could not run to the end: {', '.join(failed)}.", style="bold red", highlight=False)
    if failed or (strict and not report.holds):
        raise typer.Exit(1)


@contextmanager
def _clean_exit(after_interrupt: str = "", expected: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """End a command with one line instead of a trace, for what the user did or can mend."""
    from thalweg.spark.start import NoSparkError
    from thalweg.spark.sweep import SweepError

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
