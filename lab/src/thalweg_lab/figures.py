"""Draws the figures of the documentation from measured files, and writes measured tables into its pages.

`docs/figures.toml` names for each figure its file, the command that measured it, the version and the day. A file of
results (`--json FILE`) also has the page whose measured part tells all its results. Measured numbers come from files
that a command wrote; nothing is typed by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path

from thalweg.output import write_atomically
from thalweg_lab.results import Report, Result

BEGIN, END = "<!-- measured: thalweg lab figures writes this table -->", "<!-- end of the table -->"
WIDTH, BAR_LEFT, BAR_WIDTH, LINE = 760, 330, 330, 34  # pixels
COLOURS = {"plain": "#9aa0a6", "thalweg": "#0072b2"}
QUERY = "SELECT src FROM TCP WHERE dest = 2 AND size > 100 WINDOW [1]"
POINTS = ((600_000.0, 0.3), (200_000.0, 0.8))  # rate and selectivity, now and before
SELECTIVITY, RATE, HIGHEST_RATE = "selectivity of TCP", "rate of TCP", 1e6
RIVALS = (  # results that README and the landing page tell as well: the file, the measure, and what is compared
    (
        "filters-repeated",
        "all values distinct: Thalweg, times as fast as the fused optimum, by hand",
        "four Python predicates of values that never repeat, beside one function in the best order, written by hand",
    ),
    (
        "waiting",
        "rows a second, against a pandas UDF with threads",
        "two predicates that wait for services, beside a pandas UDF that uses threads",
    ),
    (
        "joins-two-way",
        "Thalweg, times as fast as Spark's chained joins",
        "a join of two streams, beside Spark's own stream-stream join",
    ),
)
GRAPH = "R1.pid = R2.pid AND R2.ip = R3.ip AND R3.port = R4.port"


@dataclass(frozen=True)
class Figure:
    """A figure of the documentation: a picture, a file of results, or a number in a text; and how it was made."""

    name: str
    file: str | None
    command: str
    version: str
    day: date
    page: str | None = None  # which tells the results of the file, or has the number


def figures_of(docs: Path) -> list[Figure]:
    """The figures that `figures.toml` in a folder of documentation names."""
    read = tomllib.loads((docs / "figures.toml").read_text(encoding="utf-8"))
    return [
        Figure(name, entry.get("file"), entry["command"], entry["version"], entry["day"], entry.get("page"))
        for name, entry in read["figures"].items()
    ]


def releases_behind(measured: str, current: str) -> int:
    """How many releases lie between a version that was measured and the current one; a patch is no release.

    >>> releases_behind("0.1.0", "0.1.4"), releases_behind("0.1.0", "0.3.0"), releases_behind("0.9.0", "1.1.0")
    (0, 2, 2)
    """
    (old_major, old_minor), (major, minor) = (tuple(map(int, text.split(".")[:2])) for text in (measured, current))
    return minor - old_minor if major == old_major else (major - old_major) + minor


def demo_report(docs: Path) -> Report:
    """What the demonstration has measured."""
    return Report.from_json(json.loads((docs / "figures" / "demo.json").read_text(encoding="utf-8")))


def measured_table(report: Report) -> str:
    """The measured ratios as a table of Markdown."""
    lines = [
        "| act of the demonstration | measure | plain Spark | Thalweg | times better |",
        "|---|---|---:|---:|---:|",
    ]
    for result in report.results:
        plain, thalweg = _numbers(result)
        measure = result.measure.partition(":")[0]
        lines.append(f"| {_act(result)} | {measure} | {plain} | {thalweg} | {float(result.value or 0):.1f} |")
    return "\n".join(lines)


def rivals_table(docs: Path) -> str:
    """Some results of benchmarks, beside stronger rivals than plain Spark, as a table of Markdown."""
    commands = {
        figure.name.removeprefix("bench-"): figure.command.partition(" --json")[0] for figure in figures_of(docs)
    }
    lines = ["| benchmark | compares | times as fast |", "|---|---|---:|"]
    for name, measure, compared in RIVALS:
        file = docs / "figures" / "bench" / f"{name}.json"
        report = Report.from_json(json.loads(file.read_text(encoding="utf-8")))
        (value,) = (result.value for result in report.results if result.measure == measure)
        lines.append(f"| `{commands[name]}` | {compared} | {float(value or 0):.1f} |")
    return "\n".join(lines)


def measured_part(docs: Path, picture: str) -> str:
    """The part of a page that was measured: the picture, by its path, and the tables."""
    shown = f"![Thalweg beside plain Spark, in the three acts of the demonstration]({picture})"
    return f"{shown}\n\n{measured_table(demo_report(docs))}\n\n{rivals_table(docs)}"


def with_table(readme: str, table: str) -> str:
    r"""A text in which the table between the marks is replaced.

    >>> print(with_table(f"a\n{BEGIN}\nold\n{END}\nb", "new"))
    a
    <!-- measured: thalweg lab figures writes this table -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end of the table -->
    b
    """
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n\n{table}\n\n{END}", readme, flags=re.DOTALL
    )


def draw_all(docs: Path, readme: Path) -> list[Path]:
    """Draw the figures that are not those of experiments, and write the measured parts of pages; returns the files."""
    from thalweg_lab.how_figures import drawn_figures
    from thalweg_lab.measured_pages import measured_pages

    report, landing = demo_report(docs), docs / "index.md"
    drawn = {
        docs / "figures" / "demo.svg": bars(report),
        docs / "figures" / "join-graph.svg": join_graph(),
        docs / "figures" / "chart.svg": chart(),
        **{docs / "figures" / name: picture for name, picture in drawn_figures().items()},
        readme: with_table(readme.read_text(encoding="utf-8"), measured_part(docs, "docs/figures/demo.svg")),
        landing: with_table(landing.read_text(encoding="utf-8"), measured_part(docs, "figures/demo.svg")),
    }
    for page, part in measured_pages(docs, figures_of(docs)).items():
        drawn[page] = with_table(page.read_text(encoding="utf-8"), part)
    for path, content in drawn.items():
        write_atomically(path, content)
    return list(drawn)


def bars(report: Report) -> str:
    """The measured ratios as an SVG of bars: plain Spark is one, in all of them."""
    longest = max(float(result.value or 0) for result in report.results)
    height = LINE * len(report.results) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
        "<style>text{font:13px sans-serif;fill:#24292f}@media(prefers-color-scheme:dark){text{fill:#e6edf3}}</style>",
        f'<text x="{BAR_LEFT}" y="20">How many times better than plain Spark (grey: plain Spark, 1)</text>',
    ]
    for place, result in enumerate(report.results):
        y = 36 + LINE * place
        times = float(result.value or 0)
        label = f"{_act(result)}: {result.measure.partition(':')[0]}"
        parts += [
            f'<text x="{BAR_LEFT - 10}" y="{y + 16}" text-anchor="end">{escape(label)}</text>',
            _bar(y, 10, 1 / longest, COLOURS["plain"]),
            _bar(y + 11, 12, times / longest, COLOURS["thalweg"]),
            f'<text x="{BAR_LEFT + BAR_WIDTH * times / longest + 6:.0f}" y="{y + 21}">{times:.1f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def join_graph() -> str:
    """The join graph of the page on join orders."""
    from thalweg.joinorder.picture import picture
    from thalweg.joinorder.statistics import graph_of_text

    drawn = picture(graph_of_text(GRAPH, (), (), (), "closed"), "svg")
    return drawn.decode()


def chart() -> str:
    """The chart of a query of one stream, where to select and where to project first; with a point on its way."""
    from thalweg.charts import CostModel, Dimension, PlanCosts, RoundStatistics, Weights, build_charts
    from thalweg.charts.candidates import plan_space
    from thalweg.charts.draw import as_svg, heat_map
    from thalweg.sql.parse import parse_query
    from thalweg.sql.query import Source

    query = parse_query(QUERY, [Source("TCP", ("src", "dest", "size"))])
    costs = PlanCosts(plan_space(query), CostModel(window=1.0), Weights(0.4, 0.6))
    at, before = (RoundStatistics(rates={"TCP": rate}, selectivities={"TCP": share}) for rate, share in POINTS)
    rates = Dimension(RATE, 0.0, HIGHEST_RATE, is_logarithmic=True)
    ranges = {SELECTIVITY: Dimension(SELECTIVITY, 0.0, 1.0, 1.0), RATE: rates}
    charts = build_charts(costs, 20, ranges, at)
    ((_, here),), ((_, earlier),) = (charts.points(statistics) for statistics in (at, before))
    return as_svg(heat_map(charts.by_alias["TCP"], here, trail=[earlier]))


def _bar(y: int, height: int, share: float, colour: str) -> str:
    return f'<rect x="{BAR_LEFT}" y="{y}" width="{BAR_WIDTH * share:.1f}" height="{height}" fill="{colour}" rx="2"/>'


def _act(result: Result) -> str:
    """The name of the act: "act 2, traffic" is the act of traffic."""
    return result.scenario.partition(", ")[2]


def _numbers(result: Result) -> tuple[str, str]:
    """The numbers of plain Spark and of Thalweg, from a result's note."""
    found = re.fullmatch(r"plain Spark (.+), Thalweg (.+)", result.note)
    if found is None:
        raise ValueError(f"not a result of the demonstration: {result.note!r}")
    return found[1], found[2]
