"""Draws rates and latency that `bench load` measured, and tells what the model of `thalweg size` makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.joinorder.text import parse_condition
from thalweg.output import format_value
from thalweg.sizing import CORES, Costs, Demand, first_to_break, placed_by, shortest_interval, sizing
from thalweg_lab.benches.load import SCENARIOS, filters, filters_rate, join_rate, session, session_rate
from thalweg_lab.benches.load.filters import FILTERS
from thalweg_lab.benches.load.join import JOIN
from thalweg_lab.benches.load.loaded_query import Setting
from thalweg_lab.benches.load.rate import LOADS, load_measures
from thalweg_lab.benches.load.session import SESSION
from thalweg_lab.benches.load.sweep import HIGHEST, P50, P99, label
from thalweg_lab.how_figures import BLUE, ORANGE, STYLE
from thalweg_lab.results import Report, Result

if TYPE_CHECKING:
    from thalweg_lab.figures import Figure

GREEN = "#009e73"
COLOURS = {"filters": BLUE, "join": ORANGE, "session": GREEN}
PERCENTILES = {"p50": BLUE, "p99": ORANGE}
LEFT, PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 14, 246, 206, 3  # pixels
FEW = 10  # below which values are shown with a digit after the point
COSTS = tuple(field.name for field in fields(Costs))
HELD_OUT = ": error of the model"

# The settings that grow: their kind, what grows, and the settings in order.
SWEEPS = (
    (FILTERS, "predicates", [Setting(parts) for parts in sorted((*filters.PREDICATES, *filters.HELD_OUT))]),
    (JOIN, "streams", [Setting(parts) for parts in range(2, 7)]),
    (JOIN, "seconds of window", [Setting(3), Setting(3, window=10), Setting(3, window=60)]),
    (SESSION, "queries", [Setting(parts) for parts in sorted((*session.QUERIES, *session.HELD_OUT))]),
)
RATED = ((FILTERS, filters_rate.SETTING), (JOIN, join_rate.SETTING), (SESSION, session_rate.SETTING))

# What the page asks the model for: the words of the command, the kind, the parts, and a condition.
CHAIN, COMMON = "A.k = B.k AND B.l = C.l", "A.k = B.k AND B.k = C.k"
DEMANDS = (
    ("--predicates 8", "filters", 8, None),
    (f'--on "{COMMON}" --window 60', "join", 3, COMMON),
    (f'--on "{CHAIN}" --window 60', "join", 3, CHAIN),
    ("--queries 10", "session", 10, None),
)
WINDOW = 60.0  # seconds, of the joins


@dataclass(frozen=True)
class Panel:
    """A small plot: named lines over the same places."""

    title: str
    places: Sequence[str]
    lines: Mapping[str, Sequence[float]]
    colours: Mapping[str, str]


class LoadResults:
    """All that `thalweg bench load` measured, by scenario."""

    def __init__(self, docs: Path) -> None:
        files = {name: docs / "figures" / "bench" / f"load-{name}.json" for name in SCENARIOS}
        self.reports = {
            name: Report.from_json(json.loads(file.read_text(encoding="utf-8"))) for name, file in files.items()
        }

    def value(self, scenario: str, measure: str) -> float:
        """A measured value."""
        return next(float(result.value or 0) for result in self.reports[scenario].results if result.measure == measure)

    def costs(self, kind: str) -> Costs:
        """The costs that were fitted."""
        return Costs(**{name: self.value(kind, name) for name in COSTS})

    def held_out(self) -> Iterator[Result]:
        """The errors of the model."""
        for report in self.reports.values():
            yield from (result for result in report.results if HELD_OUT in result.measure)


def drawn_load(docs: Path) -> dict[str, str]:
    """The figures by the names of their files."""
    found = LoadResults(docs)
    return {
        "load-rates.svg": drawn("Highest rate, in thousand rows a second", rate_panels(found)),
        "load-latencies.svg": drawn("Latency of a row in seconds, at shares of the highest rate", load_panels(found)),
        "load-growth.svg": drawn("Latency of a row in seconds, at 80% of the highest rate", growth_panels(found)),
    }


def on_cores(found: LoadResults, measure: str, unit: float = 1.0) -> dict[str, list[float]]:
    """What was measured on one core and on two, by kind."""
    return {
        kind.name: [
            found.value("cores", f"{label(kind, setting)} on {cores}: {measure}") / unit
            for cores in ("1 core", "2 cores")
        ]
        for kind, setting in RATED
    }


def sweep_panels(
    found: LoadResults, measures: Mapping[str, str], colours: Mapping[str, str], unit: float
) -> list[Panel]:
    """A panel for each sweep, with a line for each measure."""
    return [
        Panel(
            f"{kind.name}: {grows}",
            [str(setting.window if "window" in grows else setting.parts) for setting in settings],
            {
                name: [found.value(kind.name, f"{label(kind, setting)}: {measure}") / unit for setting in settings]
                for name, measure in measures.items()
            },
            colours or dict.fromkeys(measures, COLOURS[kind.name]),
        )
        for kind, grows, settings in SWEEPS
    ]


def rate_panels(found: LoadResults) -> list[Panel]:
    """The highest rate by what grows."""
    panels = sweep_panels(found, {"rate": HIGHEST}, {}, unit=1000)
    return [*panels, Panel("cores", ["1", "2"], on_cores(found, HIGHEST, unit=1000), COLOURS)]


def growth_panels(found: LoadResults) -> list[Panel]:
    """The latency by what grows."""
    panels = sweep_panels(found, {"p50": P50, "p99": P99}, PERCENTILES, unit=1)
    return [*panels, Panel("cores, p50", ["1", "2"], on_cores(found, P50), COLOURS)]


def load_panels(found: LoadResults) -> list[Panel]:
    """The latency by the share of the highest rate."""
    return [
        Panel(
            kind.name,
            [f"{load:.0%}" for load in LOADS],
            {
                name: [found.value(f"{kind.name}-rate", load_measures(load)[place]) for load in LOADS]
                for place, name in enumerate(PERCENTILES)
            },
            PERCENTILES,
        )
        for kind, _ in RATED
    ]


def drawn(title: str, panels: Sequence[Panel]) -> str:
    """Panels beside each other, each with a scale of its own, and the value at each point."""
    width, rows = LEFT + COLUMNS * PANEL_WIDTH, -(-len(panels) // COLUMNS)
    height = 34 + rows * PANEL_HEIGHT
    parts = [f'<text x="{LEFT}" y="18">{escape(title)}</text>']
    for number, panel in enumerate(panels):
        left = LEFT + number % COLUMNS * PANEL_WIDTH
        parts += _panel(panel, left, 34 + number // COLUMNS * PANEL_HEIGHT)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">'
    return "\n".join([opening, STYLE, *parts, "</svg>", ""])


def _panel(panel: Panel, left: float, top: float) -> list[str]:
    right, bottom, high = left + PANEL_WIDTH - 30, top + PANEL_HEIGHT - 36, top + 60
    most = max(max(values) for values in panel.lines.values()) or 1.0
    step = (right - left - 36) / max(len(panel.places) - 1, 1)
    xs = [left + 18 + step * place for place in range(len(panel.places))]
    parts = [
        f'<text x="{left}" y="{top + 16}">{escape(panel.title)}</text>',
        f'<line x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>',
        *(
            f'<text class="faint" x="{x:.0f}" y="{bottom + 17}" text-anchor="middle">{escape(place)}</text>'
            for x, place in zip(xs, panel.places, strict=True)
        ),
    ]
    for name, values in panel.lines.items():
        colour = panel.colours[name]
        ys = [bottom - (bottom - high) * value / most for value in values]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
        parts.append(f'<polyline points="{points}" style="stroke:{colour};stroke-width:2;fill:none"/>')
        for x, y, value in zip(xs, ys, values, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
            shown = f"{value:.0f}" if value >= FEW else f"{value:.1f}"
            parts.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{shown}</text>')
    x = left + 4.0
    for name in panel.lines if len(panel.lines) > 1 else ():
        parts.append(f'<circle cx="{x:.0f}" cy="{top + 31}" r="4" fill="{panel.colours[name]}"/>')
        parts.append(f'<text x="{x + 8:.0f}" y="{top + 35}">{escape(name)}</text>')
        x += 7.0 * len(name) + 28
    return parts


def sizing_part(docs: Path) -> str:
    """The measured part of the page on sizes: rates, pictures, errors of the model, and what it says of many cores."""
    found = LoadResults(docs)
    pictures = "\n\n".join(
        f"![{about}](../figures/{name})"
        for about, name in (
            ("Latency of rows at 50, 80 and 95% of the highest rate", "load-latencies.svg"),
            ("The highest rates by predicates, streams, queries, window and cores", "load-rates.svg"),
            ("Latency by predicates, streams, queries, window and cores", "load-growth.svg"),
        )
    )
    return "\n\n".join(
        [
            "### Rates, latency and lag",
            rates_table(found),
            pictures,
            "### Error of the model",
            error_table(found),
            "### What many cores would do",
            *scale_parts(found),
        ]
    )


def rates_table(found: LoadResults) -> str:
    """The highest rates, and latency and lag at shares of them."""
    lines = [
        "| query | highest rate, rows/s | at | latency, p50 | latency, p99 | rows that wait in the source |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, setting in RATED:
        scenario = f"{kind.name}-rate"
        rate = format_value(round(found.value(scenario, HIGHEST)))
        for load in LOADS:
            p50, p99, lag = (found.value(scenario, measure) for measure in load_measures(load))
            query = f"{kind.name}, {label(kind, setting)}"
            lines.append(f"| {query} | {rate} | {load:.0%} | {p50:.2f} s | {p99:.2f} s | {lag:,.0f} |")
    return "\n".join(lines)


def error_table(found: LoadResults) -> str:
    """The errors of the model for settings that were held out."""
    lines = ["| kind | setting that was held out | error | |", "|---|---|---:|---|"]
    for result in found.held_out():
        setting = result.measure.partition(HELD_OUT)[0]
        lines.append(f"| {result.scenario} | {setting} | {float(result.value or 0):.0%} | {result.note} |")
    return "\n".join(lines)


def scale_parts(found: LoadResults) -> Iterator[str]:
    """For each query of the page, a table by cores, and what breaks first."""
    for words, kind, parts, condition in DEMANDS:
        streams = None if condition is None else placed_by(parse_condition(condition))
        demand = Demand(1.0, parts, window=WINDOW if streams else 0.0, placed_by=streams)
        costs = found.costs(kind)
        lines = [
            "| cores | rate, rows/s | limited by | driver, s | copies of a row | shortest interval, s | rate with it |",
            "|---:|---:|---|---:|---:|---:|---:|",
        ]
        for cores in CORES:
            size = sizing(costs, demand, cores)
            shortest = max(shortest_interval(costs, demand, cores), demand.interval)
            longer = sizing(costs, replace(demand, interval=shortest), cores)
            numbers = (size.driver_seconds, size.copies, shortest, round(longer.highest_rate))
            rate = format_value(round(size.highest_rate))
            lines.append(f"| {cores:,} | {rate} | {size.limit} | {' | '.join(map(format_value, numbers))} |")
        most, why = first_to_break(costs, demand)
        yield f"`thalweg size --rate 1e6 {words}`, a micro-batch each second:"
        yield "\n".join(lines)
        yield f"More than {most:,} cores do not raise the rate. What breaks first: {why}."


def shipped_costs(docs: Path, figures: Iterable[Figure]) -> str:
    """The costs that come with Thalweg: those that were fitted here, with the machine and the day."""
    found = LoadResults(docs)
    (day,) = (figure.day for figure in figures if figure.name == "bench-load-filters")
    costs = {
        "day": str(day),
        "machine": {name: found.reports["filters"].machine[name] for name in ("cores", "cpu", "memory_gib")},
        "results": [
            {"scenario": kind, "measure": name, "value": found.value(kind, name)} for kind in COLOURS for name in COSTS
        ],
    }
    return json.dumps(costs, indent=2) + "\n"
