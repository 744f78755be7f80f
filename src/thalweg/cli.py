"""The command `thalweg`: reads options, calls the part that does the work, prints, and sets the exit code.

Other distributions add commands through the entry points of `thalweg.commands`; `thalweg-lab` adds `bench`, `demo` and
`lab`. This module does no work itself, and each command imports the modules that do, so that `thalweg --help` is quick.
"""

from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from thalweg.plain_help import PlainCommand, PlainGroup

if TYPE_CHECKING:
    from thalweg.joinorder import JoinExplanation

ENTRY_POINTS = "thalweg.commands"
COMMANDS_OF_THE_LAB = ("bench", "demo", "lab")

console = Console()
messages = Console(stderr=True)


def command_line(commands: Iterable[metadata.EntryPoint]) -> typer.Typer:
    """The command `thalweg`, with its own commands and the commands of the entry points."""
    main = typer.Typer(
        cls=PlainGroup,
        help="An adaptive optimizer for continuous queries on Apache Spark.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_show_locals=False,
    )
    main.callback()(options)
    main.command(cls=PlainCommand)(dashboard)
    main.command(cls=PlainCommand)(explain)
    main.command(cls=PlainCommand)(run)
    main.command(cls=PlainCommand)(doctor)
    main.command(cls=PlainCommand)(size)
    installed = {command.name: command.load() for command in commands}
    for name, command in sorted(installed.items()):
        if isinstance(command, typer.Typer):
            main.add_typer(command, name=name)
        else:
            main.command(name, cls=PlainCommand)(command)
    takes_anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    for name in COMMANDS_OF_THE_LAB:
        if name not in installed:
            main.command(name, hidden=True, context_settings=takes_anything)(_say_what_to_install)
    return main


def _say_what_to_install(context: typer.Context) -> None:
    messages.print(
        f"`thalweg {context.info_name}` is a command of thalweg-lab: run `pip install thalweg-lab`.",
        style="bold red",
        highlight=False,
        soft_wrap=True,
    )
    raise typer.Exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"thalweg {metadata.version('thalweg')}", highlight=False)
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An adaptive optimizer for continuous queries on Apache Spark."""


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
    measure: Annotated[str, typer.Option(help="The measure of a probe's cost: pairs, tuples or indexed.")] = "tuples",
    planner: Annotated[str, typer.Option(help="The planner that chooses the orders.")] = "q-aware",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the join graph, as .svg or .png.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the explanation to this file.")
    ] = None,
) -> None:
    """Explain how a windowed join of streams is ordered: its shape, the planner, all orders, and other planners' costs.

    [b]thalweg explain "R1.pid = R2.pid AND R2.pid = R3.pid" --rate R1=75 --selectivity "R1.pid = R2.pid = 0.02"[/b]

    Statistics are a .json or .toml file; windows in seconds, of all streams or by stream; predicates also as "R1 R2":

    {"rates": {"R1": 75, "R2": 40}, "windows": 10, "selectivities": {"R1.pid = R2.pid": 0.02}, "equalities": "closed"}
    """
    from thalweg.joinorder import explain as explain_join
    from thalweg.joinorder import planner as find_planner
    from thalweg.joinorder.picture import picture as draw_picture
    from thalweg.joinorder.statistics import graph_of_text, read_statistics
    from thalweg.joinorder.text import join_condition
    from thalweg.output import finite, write_atomically, write_json

    filters: tuple[str, ...] = ()
    try:
        if what.endswith((".toml", ".json")) and "=" not in what:
            if rate or window or selectivity or equalities:
                raise typer.BadParameter(f"write rates, windows, selectivities and equalities into {what}")
            graph = read_statistics(Path(what))
        else:
            condition, filters = join_condition(what)
            graph = graph_of_text(condition, rate or (), window or (), selectivity or (), equalities or "closed")
        if not graph.connected:
            parts = " and ".join(", ".join(names) for names in graph.components)
            raise typer.BadParameter(f"no equality connects {parts}; add the missing equalities")
        for file in (picture, json_file):
            if file is not None and not file.parent.is_dir():
                raise typer.BadParameter(f"there is no folder {file.parent} for {file.name}; make it first")
        explanation = explain_join(graph, measure, find_planner(planner))
        image = None if picture is None else draw_picture(graph, picture.suffix.removeprefix("."))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _show_join(explanation)
    if filters:
        messages.print(
            f"Not part of the order: {', '.join(filters)}. Give the rates of the rows that remain.", highlight=False
        )
    if picture is not None and image is not None:
        write_atomically(picture, image)
    if json_file is not None:
        write_json(json_file, finite(explanation.to_json()))


def dashboard(
    host: Annotated[
        str, typer.Option(help="The address to serve the page at; any other than this needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="The port; by default 8642, or the next that is free.")] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="THALWEG_DASHBOARD_TOKEN",
            help="The token that readers need; by default a token is made if it is needed. Better in the environment.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Another name by which the page may be called, such as a proxy's.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where programs write their events; by default the user's folder for state.")
    ] = None,
) -> None:
    """Serve the page that shows what queries do, of all programs of this user that call `tw.dashboard()`.

    Ends with Ctrl-C. The page only reads.
    """
    from thalweg.dashboard.start import NoServerError, serve_page

    try:
        serve_page(host, port, token, name or (), folder, _print_plainly)
    except (NoServerError, PermissionError, ValueError) as error:
        messages.print(str(error), style="bold red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None


def _print_plainly(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A session as a .toml, .yaml or .yml file.")],
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only check the file. Spark starts, since it has to analyse streams and queries, but nothing runs.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the file, and print each query's plans and charts for assumed rates."),
    ] = False,
) -> None:
    """Run the standing queries that a file describes, as one streaming query of Spark.

    The whole file is checked before anything runs. Ctrl-C ends the session after the micro-batch that runs; started
    again, it goes on from there. Exits with 0 when all went well, with 1 when a query has failed, and with 2 when the
    file is wrong.
    """
    from thalweg.spark.session.program_file.command import run_file
    from thalweg.spark.session.program_file.program_text import ProgramFileError
    from thalweg.spark.start import NoSparkError

    try:
        went_well = run_file(file, console, only_check=check, is_dry_run=dry_run)
    except (ProgramFileError, NoSparkError) as error:
        messages.print(str(error), style="bold red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2 if isinstance(error, ProgramFileError) else 1) from None
    if not went_well:
        raise typer.Exit(1)


def doctor(
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A Spark master, or sc://... for Connect; a local Spark if not given."),
    ] = None,
) -> None:
    """Check Java, Spark, Arrow, memory, disk, ports, Python workers and the state store, and say what to fix.

    Exits with 0 when all is well, and with 1 when something has to be fixed.
    """
    from rich.text import Text

    from thalweg.spark.doctor import examine

    is_well = True
    for finding in examine(master):
        mark = Text("fix ", style="bold red") if finding.fix else Text("ok  ", style="green")
        console.print(Text.assemble(mark, f"{finding.part + ':':<16}", finding.text), soft_wrap=True)
        if finding.fix:
            is_well = False
            console.print(Text(f"    {finding.fix}"), soft_wrap=True)
    console.print("All is well." if is_well else "Mend these, and run it again.")
    if not is_well:
        raise typer.Exit(1)


def size(
    costs: Annotated[
        Path, typer.Option(metavar="FILE", help="Costs that [b]thalweg bench load --json FILE[/b] has measured.")
    ],
    rate: Annotated[float, typer.Option(min=0, help="Rows a second, of all streams together.")],
    predicates: Annotated[int | None, typer.Option(min=1, help="For filters: how many predicates.")] = None,
    on: Annotated[str | None, typer.Option(metavar="CONDITION", help="For a join: its condition.")] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="For a session: how many queries.")] = None,
    own: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Of a row in your own predicates, all together.")
    ] = 0.0,
    window: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="For which rows are kept.")] = 0.0,
    row_bytes: Annotated[float, typer.Option(min=1, help="The size of a row.")] = 100.0,
    interval: Annotated[float, typer.Option(min=0.01, metavar="SECONDS", help="From a micro-batch to the next.")] = 1.0,
    network: Annotated[float, typer.Option(min=0.001, metavar="MB", help="That a core can send in a second.")] = 100.0,
    memory: Annotated[float, typer.Option(min=0.001, metavar="GB", help="Of windows that a core can hold.")] = 2.0,
    cores: Annotated[
        list[int] | None, typer.Option(min=1, help="A number of cores to look at; may be given again.")
    ] = None,
) -> None:
    """Say how many cores a stream needs, what it sends and keeps, and what breaks first.

    It computes with a model of a micro-batch and costs that were measured on one machine; it does not start Spark.

    [b]thalweg size --costs load.json --rate 50000 --on "A.k = B.k AND B.l = C.l" --window 600[/b]
    """
    from rich.table import Table

    from thalweg.joinorder.text import join_condition, parse_condition
    from thalweg.output import format_value
    from thalweg.sizing import (
        CORES,
        Demand,
        first_to_break,
        kind_of,
        least_cores,
        placed_by,
        read_costs,
        shortest_interval,
        sizing,
        where_measured,
    )

    try:
        kind = kind_of(predicates, on, queries)
        streams = None if on is None else placed_by(parse_condition(join_condition(on)[0]))
        parts = predicates or queries or len(streams or ())
        demand = Demand(rate, parts, interval, own, window, row_bytes, streams, 1e6 * network, 1e9 * memory)
        known, machine = read_costs(costs, kind), where_measured(costs)
    except ValueError as error:
        messages.print(str(error), style="bold red", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
    table = Table()
    for heading in (
        "cores",
        "highest rate, rows/s",
        "limited by",
        "micro-batch, s",
        "of which the driver, s",
        "copies of a row",
        "shortest interval, s",
    ):
        table.add_column(heading, justify="left" if heading == "limited by" else "right")
    for number in cores or CORES:
        found = sizing(known, demand, number)
        seconds = format_value(found.batch_seconds), format_value(found.driver_seconds), format_value(found.copies)
        shortest = format_value(shortest_interval(known, demand, number))
        table.add_row(f"{number:,}", format_value(found.highest_rate), found.limit, *seconds, shortest)
    console.print(table)
    least = least_cores(known, demand)
    if least is None:
        console.print("No number of cores keeps up.", highlight=False)
    else:
        found = sizing(known, demand, least)
        sent, kept = format_value(found.shuffle_bytes / 1e6), format_value(found.state_bytes / 1e6)
        share = found.driver_seconds / interval
        console.print(
            f"Cores that keep up: {least:,}. With them, {sent} MB a second are shuffled, windows hold {kept} MB, and "
            f"the driver is busy for {share:.0%} of the time.",
            highlight=False,
            soft_wrap=True,
        )
    most, why = first_to_break(known, demand)
    console.print(f"More than {most:,} cores do not raise the rate. What breaks first: {why}.", highlight=False)
    console.print(f"Costs were measured on {machine}.", highlight=False, soft_wrap=True)


def _show_join(explanation: "JoinExplanation") -> None:
    from rich.table import Table
    from rich.text import Text

    from thalweg.output import format_value

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


main = command_line(metadata.entry_points(group=ENTRY_POINTS))
