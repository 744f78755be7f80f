"""The story: starts Spark, plays the acts, and ends with a table of what was measured."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.output import format_value
from thalweg_lab.demo.in_turns import PLAIN, THALWEG
from thalweg_lab.demo.ratios import Ratio
from thalweg_lab.results import Report, Result, at_least, machine

ACTS = ("screening", "traffic", "standing")  # modules of this package
SETTINGS: Mapping[str, Any] = {
    "spark.driver.memory": "3g",
    "spark.sql.streaming.pollingDelay": "100ms",  # how often queries without work look for files; by default 10 ms
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,  # twice the files for each micro-batch
}
READ_NEXT = """\
What to read next: docs/tutorial.md, your first query in ten minutes; docs/guides/filters.md, joins.md and sessions.md
for the three acts. `make docs` makes a site of them."""


@dataclass(frozen=True)
class DemoOptions:
    """How to play: the seconds that all acts take together, the seed of the data, and which acts, from 1 on."""

    seconds: float
    seed: int
    acts: Sequence[int]
    has_page: bool = True
    serve: bool = False


def as_results(measured: Mapping[int, Sequence[Ratio]]) -> tuple[Result, ...]:
    """The ratios in the shape that all commands write as JSON."""
    return tuple(
        at_least(
            f"act {number}, {ACTS[number - 1]}",
            f"{ratio.measure}: how many times better than plain Spark",
            ratio.times,
            1,
            f"plain Spark {format_value(ratio.plain)}, Thalweg {format_value(ratio.thalweg)}",
        )
        for number, ratios in measured.items()
        for ratio in ratios
    )


def play(console: Console, options: DemoOptions) -> Report:
    """Play the acts, show what was measured, and return it."""
    from thalweg.spark.start import spark_session

    start = time.perf_counter()
    console.print("Thalweg and plain Spark read the same streams, which drift. Each has the whole machine in turns.")
    console.print("Starting Spark ...", style="dim")
    spark = spark_session("thalweg-demo", **SETTINGS)
    measured: dict[int, list[Ratio]] = {}
    page = None
    try:
        page = open_page() if options.has_page else None
        if page is not None:
            console.print(Text(f"Watch it live: {page.url}"))
        for number in options.acts:
            act = import_module(f"thalweg_lab.demo.{ACTS[number - 1]}")
            console.print(Text(f"\nAct {number}. {act.TITLE}", style="bold"))
            with tempfile.TemporaryDirectory(prefix="thalweg-demo-", ignore_cleanup_errors=True) as folder:
                measured[number] = act.play(
                    spark, console, Path(folder), options.seconds / len(options.acts), options.seed
                )
        console.print()
        console.print(closing_table(measured))
        seconds = time.perf_counter() - start
        console.print(
            f"Measured in this run, in {seconds:.0f} s. The first micro-batch of an act is not counted.",
            highlight=False,
        )
        console.print(READ_NEXT, highlight=False, soft_wrap=True)
        if options.serve and page is not None:
            console.print(Text(f"The page stays at {page.url} until Ctrl-C."))
            with contextlib.suppress(KeyboardInterrupt):  # the usual end
                while True:
                    time.sleep(1)
    finally:
        if page is not None:
            page.close()
        spark.stop()
    return Report("demo", seconds, machine(), as_results(measured))


def closing_table(measured: Mapping[int, Sequence[Ratio]]) -> Table:
    """The numbers of plain Spark beside those of Thalweg."""
    table = Table("act", "measure")
    for heading in (PLAIN, THALWEG, "times better"):
        table.add_column(heading, justify="right")
    for number, ratios in measured.items():
        for ratio in ratios:
            values = (ratio.plain, ratio.thalweg)
            table.add_row(str(number), ratio.measure, *map(format_value, values), f"{ratio.times:.1f}x")
    return table


def open_page() -> Any | None:  # noqa: ANN401 - a `thalweg.dashboard` page
    """The live page of this program, if its extra is installed."""
    import thalweg as tw

    open_dashboard = getattr(tw, "dashboard", None)
    try:
        return None if open_dashboard is None else open_dashboard()
    except RuntimeError:  # its extra is not installed
        return None
