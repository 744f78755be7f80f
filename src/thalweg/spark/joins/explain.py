"""Explains a join for `tw.explain`: its graph, cells and orders, expected and actual results, and its state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from thalweg.joinorder import JoinGraph, Measure
from thalweg.joinorder.cost import step
from thalweg.mjoin import CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.shares import choose_shares, replication
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import read_reports, sum_counts
from thalweg.spark.joins.table import ChangingTable, describe_table

LATEST = 5  # switches that are shown
UNEVEN = 1.5  # times the mean of all cells, that the fullest cell holds: worth a word
CLEARLY_FEWER = 0.9  # of the rows that are sent now, for which other shares are suggested
SMALLEST_RATE, SMALLEST_SELECTIVITY = 1e-9, 1e-12  # where nothing has come yet
HEADER = ("input", "window", "rows", "late", "no key or time", "in state", "copies", "probes")
COUNTED = ("rows", "late", "without_key_or_time", "rows_in_state", "copies")  # of an input, as in the header

Description = Mapping[str, Any]


@dataclass(frozen=True)
class JoinRun:
    """A `tw.join` of this program, which may be running."""

    kind: ClassVar[str] = "join"
    key: str
    plan: JoinPlan
    tables: Mapping[str, ChangingTable] = field(default_factory=dict)  # that may change

    def describe(self) -> dict[str, Any]:
        """All that is known of the join at this moment, as plain values."""
        return describe_join(self)

    def text(self, description: dict[str, Any]) -> str:
        """A description for people to read."""
        return join_text(description)


def describe_join(run: JoinRun) -> dict[str, Any]:
    """All that is known of a `tw.join` at this moment, as plain values."""
    plan, query, layout = run.plan, run.plan.query, run.plan.layout
    reports = read_reports(plan.folder, plan.key)
    cells = sorted((report for report in reports if "cell" in report), key=lambda report: int(report["cell"]))
    statistics = [report["statistics"] for report in cells]
    counts = sum_counts([report["counts"] for report in reports])
    graph = _measured_graph(query, statistics)
    rates = {stream.name: stream.rate for stream in graph.streams} if statistics else dict(plan.rates)
    cell_rows = [sum(each.get("state_rows", {}).values()) for each in statistics]
    return {
        "key": plan.key,
        "shape": str(graph.shape),
        "graph": graph.draw(),
        "edges": _edges(graph),
        "rates": rates,
        "streaming": plan.is_streaming,
        "output": query.output,
        "kind": query.kind,
        "preserved": list(query.preserved),
        "options": dict(plan.options),
        "inputs": {each.name: _describe_input(plan, each, counts, statistics) for each in query.inputs},
        "cells": layout.shares.cells,
        "shares": _describe_shares(layout),
        "replication": _replication(plan, layout, rates),
        "best_shares": _better_shares(plan, rates) if statistics else None,
        "orders": {name: _orders(name, statistics) for name in query.names},
        "estimated_results": _estimated_results(graph, len(statistics)) if statistics else None,
        "results_last_step": sum(each.get("results", 0) for each in statistics),
        "results": counts.get("results", 0),
        "steps": counts.get("steps", 0),
        "cell_rows": cell_rows,
        "heaviest": max(cell_rows) / _mean(cell_rows) if sum(cell_rows) else None,
        "split": _describe_split(query, reports),
        "tables": {name: describe_table(table, _table_in_cells(name, cells)) for name, table in run.tables.items()},
        "idle": sorted({name for report in cells for name in report.get("idle", [])}),
        "notes": list(plan.notes),
        "cells_found": counts.get("cells", {}),
        "seconds": counts.get("seconds", {}),
        "state_bytes": sum(report.get("state", {}).get("bytes", 0) for report in cells),
        "state_segments": sum(report.get("state", {}).get("segments", 0) for report in cells),
        "memory_bytes": sum(each.get("memory_bytes", 0) for each in statistics),
        "switches": [{"cell": report["cell"], **switch} for report in cells for switch in report.get("switches", [])][
            -LATEST:
        ],
    }


def _table_in_cells(name: str, cells: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The newest version of a table that a cell has; None if no cell has any."""
    found = [report["tables"][name] for report in cells if name in report.get("tables", {})]
    return max(found, key=lambda version: int(version["batch"]), default=None)


def _describe_input(
    plan: JoinPlan, source: Input, counts: Mapping[str, Any], statistics: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    name = source.name
    return {
        "window": _window_text(source.window),
        "columns": list(source.schema.names),
        "table": source.time is None,
        "copies": 1 if name in plan.tables else plan.layout.shares.copies(name),
        "rows": counts.get("rows", {}).get(name, 0),
        "late": counts.get("late", {}).get(name, 0),
        "without_key_or_time": counts.get("without_key_or_time", {}).get(name, 0),
        "rows_in_state": sum(each.get("state_rows", {}).get(name, 0) for each in statistics),
    }


def _window_text(window: TimeWindow | CountWindow | None) -> str | None:
    """A window as people read it.

    >>> _window_text(TimeWindow(600_000_000)), _window_text(CountWindow(5))
    ('0:10:00', '5 rows')
    """
    if isinstance(window, TimeWindow):
        return str(timedelta(microseconds=window.microseconds))
    return None if window is None else str(window)


def _measured_graph(query: JoinQuery, statistics: Sequence[Mapping[str, Any]]) -> JoinGraph:
    """The join graph with the cells' measurements: their mean, each cell being a part of the whole."""
    busy = [each for each in statistics if each.get("rates")]
    if not busy:
        return query.graph()
    rates = {name: max(_mean(each["rates"].get(name, 0.0) for each in busy), SMALLEST_RATE) for name in query.names}
    sizes = {name: max(_mean(each["state_rows"].get(name, 0) for each in busy), SMALLEST_RATE) for name in query.names}
    selectivities = {}
    for left, right in query.pairs:
        pair = f"{left} {right}"
        known = [each["selectivities"][pair] for each in busy if pair in each["selectivities"]]
        if known:
            selectivities[left, right] = min(max(_mean(known), SMALLEST_SELECTIVITY), 1.0)
    return query.graph(rates, sizes, selectivities)


def _edges(graph: JoinGraph) -> list[dict[str, Any]]:
    """Each pair of streams that is joined, and the share of pairs of their rows that match."""
    return [
        {"left": left, "right": right, "selectivity": float(graph.selectivities[at, place])}
        for at, left in enumerate(graph.names)
        for place, right in enumerate(graph.names)
        if at < place and graph.adjacent[at, place]
    ]


def _describe_split(query: JoinQuery, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Which values are split, and since when; None where no value can be."""
    split = next((report["split"] for report in reports if report.get("split")), None)
    if split is None:
        return None
    heavy = [{"columns": _columns(query.equalities[value["class"]]), **value} for value in split["heavy"]]
    return {**split, "heavy": heavy}


def _describe_shares(layout: Layout) -> list[dict[str, Any]]:
    return [
        {"columns": _columns(equal), "size": size}
        for equal, size in zip(layout.query.equalities, layout.shares.sizes, strict=True)
    ]


def _columns(equal: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{name}.{column}" for name, column in equal)


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)


def _replication(plan: JoinPlan, layout: Layout, rates: Mapping[str, float]) -> float:
    """How many times each row is sent, on average; tables are not sent."""
    return replication(layout.shares, {name: rate for name, rate in rates.items() if name not in plan.tables})


def _better_shares(plan: JoinPlan, rates: Mapping[str, float]) -> list[int] | None:
    """The shares that measured rates suggest, if they would copy clearly fewer rows than the present shares."""
    weights = {name: 0.0 if name in plan.tables else rate for name, rate in rates.items()}
    best = choose_shares(plan.layout.shares.placed_by, weights, plan.layout.shares.cells)
    sent, sent_by_best = (_replication(plan, layout, rates) for layout in (plan.layout, Layout(plan.query, best)))
    return list(best.sizes) if sent_by_best < CLEARLY_FEWER * sent else None


def _orders(name: str, statistics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The orders of a stream, and how many cells probe in each."""
    counts = Counter(
        (tuple(each["orders"][name]), bool(each.get("drop_probing", {}).get(name)))
        for each in statistics
        if name in each.get("orders", {})
    )
    return [
        {"order": list(order), "drop_probing": drops, "cells": cells} for (order, drops), cells in counts.most_common()
    ]


def _estimated_results(graph: JoinGraph, cells: int) -> float:
    """Results a step that measured rates, window sizes and selectivities promise, of all cells."""
    total = 0.0
    for first, stream in enumerate(graph.streams):
        sequence = [first, *(other for other in range(len(graph.streams)) if other != first)]
        growth = (step(graph, sequence[:at], sequence[at], Measure.TUPLES)[0] for at in range(1, len(sequence)))
        total += stream.rate * math.prod(growth)
    return total * cells


# ----------------------------------------------------------------------------------------------------- as text


def join_text(description: Description) -> str:
    """A description as text."""
    lines = [
        *_head_lines(description),
        *_input_lines(description),
        *_result_lines(description),
        *_split_lines(description),
        *(_table_line(name, table) for name, table in description["tables"].items()),
        *(f"{name} is idle: the watermark of the join goes on without it" for name in description["idle"]),
        *(f"note: {note}" for note in description["notes"]),
        *_switch_lines(description),
    ]
    return "\n".join(lines)


def _head_lines(description: Description) -> list[str]:
    """The graph, the options and the cells."""
    options = ", ".join(f"{name} {value}" for name, value in description["options"].items())
    first, *graph = description["graph"].splitlines()
    shares = " × ".join(f"{share['size']} by {' = '.join(share['columns'])}" for share in description["shares"])
    preserved = ", ".join(description["preserved"])
    kind = f"; {description['kind']} join that preserves {preserved}" if preserved else ""
    lines = [
        f"join {description['key']}: {first}; {options}; output {description['output']}{kind}",
        *graph,
        f"{description['cells']} cells: {shares}; each row is sent {description['replication']:.2f} times on average",
    ]
    if description["best_shares"]:
        lines.append(f"    measured rates suggest {' × '.join(map(str, description['best_shares']))}: see rates=")
    return lines


def _input_lines(description: Description) -> list[str]:
    """A table with a line for each input."""
    rows = [HEADER]
    for name, source in description["inputs"].items():
        window = "-" if source["window"] is None else source["window"]
        probes = _probes_text(description["orders"].get(name) or [])
        rows.append((name, window, *(f"{source[count]:,}" for count in COUNTED), probes))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _probes_text(orders: Sequence[Mapping[str, Any]]) -> str:
    texts = [
        " → ".join(each["order"])
        + (" (drop-probing)" if each["drop_probing"] else "")
        + (f" in {each['cells']} cells" if len(orders) > 1 else "")
        for each in orders
    ]
    return "; ".join(texts) or "-"


def _result_lines(description: Description) -> list[str]:
    """Results, time and state; nothing until a cell has reported."""
    if description["estimated_results"] is None:
        return []
    results = (
        f"{description['results']:,} results in {description['steps']:,} steps of cells; the last "
        f"{description['results_last_step']:,}, estimated {description['estimated_results']:,.0f}"
    )
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in description["seconds"].items())
    found = ", ".join(f"{count:,} {source}" for source, count in description["cells_found"].items())
    state = (
        f"state: {description['state_bytes']:,} bytes in {description['state_segments']:,} segments; "
        f"{description['memory_bytes']:,} bytes of windows and indexes in workers ({found})"
    )
    return [results, f"time in cells: {seconds}", state]


def _split_lines(description: Description) -> list[str]:
    """Split values, and cells that are much fuller than others."""
    lines, split = [], description["split"]
    if split and split["generation"]:
        moving = "; rows sent by the layout before are still in windows" if split["old_rows"] else ""
        lines.append(f"layout {split['generation']} since micro-batch {split['from_batch']}{moving}")
        lines += [
            f"    a value of {' = '.join(value['columns'])} that {value['share']:.0%} of the rows have is split: "
            f"{' and '.join(filter(None, (value['spread'], value['across'])))} spread, the others copied"
            for value in split["heavy"]
        ]
    heaviest = description["heaviest"]
    if heaviest and heaviest > UNEVEN:
        lines.append(
            f"the fullest cell holds {heaviest:.1f} times the mean: some keys are much more frequent than others"
        )
    return lines


def _table_line(name: str, table: Mapping[str, Any]) -> str:
    """The version of a table that holds."""
    held = (
        f"as read at {table['read_at']} since micro-batch {table['from_batch']}" if table["read_at"] else "not read yet"
    )
    every = f"read again every {table['refresh']}" if table["refresh"] else "read again by refresh()"
    failure = f"; the last time it failed, and the table stays as it is: {table['failure']}" if table["failure"] else ""
    return f"table {name}: {held}; {every}{failure}"


def _switch_lines(description: Description) -> list[str]:
    return [
        f"switch in cell {switch['cell']} at step {switch['step']}: {switch['input']} {' → '.join(switch['before'])} "
        f"became {' → '.join(switch['after'])}, because {switch['reason']}"
        for switch in description["switches"]
    ]
