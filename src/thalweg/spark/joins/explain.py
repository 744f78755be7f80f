"""What `tw.explain` says of a join: its graph, cells and orders, what was expected and what came, and its state."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from thalweg.joinorder import JoinGraph, Measure
from thalweg.joinorder.cost import step
from thalweg.mjoin import CountWindow, TimeWindow
from thalweg.mjoin.shares import choose_shares, replication
from thalweg.spark.joins.join import Join
from thalweg.spark.joins.packing import Layout
from thalweg.spark.joins.spec import added_up

LATEST = 5  # switches that are shown
UNEVEN = 1.5  # times the mean of all cells, that the fullest one holds: worth a word


def describe_join(join: Join) -> dict[str, Any]:
    """All that is known of one `tw.join` at this moment, as plain values."""
    query, layout = join.query, join.layout
    reports = [json.loads(one) for one in join.folder.read(_names(join)).values()]
    cells = sorted((one for one in reports if "cell" in one), key=lambda one: int(one["cell"]))
    counts = added_up([one["counts"] for one in reports])
    statistics = [one["statistics"] for one in cells]
    graph = _measured(join, statistics)
    rates = {one.name: one.rate for one in graph.streams} if statistics else dict(join.rates)
    return {
        "key": join.key,
        "shape": str(graph.shape),
        "graph": graph.draw(),
        "streaming": join.streaming,
        "output": query.output,
        "options": dict(join.options),
        "inputs": {
            one.name: {
                "window": _window(one.window),
                "columns": list(one.schema.names),
                "table": one.time is None,
                "copies": 1 if one.name in join.tables else layout.shares.copies(one.name),
                "rows": counts.get("rows", {}).get(one.name, 0),
                "late": counts.get("late", {}).get(one.name, 0),
                "without_key_or_time": counts.get("without_key_or_time", {}).get(one.name, 0),
                "rows_in_state": sum(each.get("state_rows", {}).get(one.name, 0) for each in statistics),
            }
            for one in query.inputs
        },
        "cells": layout.shares.cells,
        "shares": _shares(layout),
        "replication": _sent(layout, rates, join),
        "best_shares": _best(join, rates) if statistics else None,
        "orders": {name: _orders(name, statistics) for name in query.names},
        "estimated_results": _estimated(graph, len(statistics)) if statistics else None,
        "results_last_step": sum(each.get("results", 0) for each in statistics),
        "results": counts.get("results", 0),
        "steps": counts.get("steps", 0),
        "cell_rows": [sum(each.get("state_rows", {}).values()) for each in statistics],
        "heaviest": _heaviest(cells),
        "split": _split(join, reports),
        "notes": list(join.notes),
        "cells_found": counts.get("cells", {}),
        "seconds": counts.get("seconds", {}),
        "state_bytes": sum(one.get("state", {}).get("bytes", 0) for one in cells),
        "state_segments": sum(one.get("state", {}).get("segments", 0) for one in cells),
        "memory_bytes": sum(each.get("memory_bytes", 0) for each in statistics),
        "switches": [{"cell": one["cell"], **each} for one in cells for each in one.get("switches", [])][-LATEST:],
    }


def _window(window: TimeWindow | CountWindow | None) -> str | None:
    """A window as people read it.

    >>> _window(TimeWindow(600_000_000)), _window(CountWindow(5))
    ('0:10:00', '5 rows')
    """
    if isinstance(window, TimeWindow):
        return str(timedelta(microseconds=window.microseconds))
    return None if window is None else f"{window.rows} rows"


def _names(join: Join) -> list[str]:
    return [name for name in join.folder.versions() if name.startswith(f"{join.key}-")]


def _measured(join: Join, statistics: Sequence[Mapping[str, Any]]) -> JoinGraph:
    """The join graph with what cells have measured: their mean, each cell being a part of the whole."""
    query = join.query
    busy = [one for one in statistics if one.get("rates")]
    if not busy:
        return query.graph()
    rates = {name: max(_mean(one["rates"].get(name, 0.0) for one in busy), 1e-9) for name in query.names}
    sizes = {name: max(_mean(one["state_rows"].get(name, 0) for one in busy), 1e-9) for name in query.names}
    pairs = {}
    for left, right in query.pairs:
        known = [one["selectivities"][f"{left} {right}"] for one in busy if f"{left} {right}" in one["selectivities"]]
        if known:
            pairs[left, right] = min(max(_mean(known), 1e-12), 1.0)
    return query.graph(rates, sizes, pairs)


def _heaviest(cells: Sequence[Mapping[str, Any]]) -> float | None:
    """How many times the mean of all cells the fullest one has, of rows in state."""
    rows = [sum(one["statistics"].get("state_rows", {}).values()) for one in cells]
    return max(rows) / _mean(rows) if sum(rows) else None


def _split(join: Join, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Which values are split, and since when; None where nothing can be."""
    found = next((one["split"] for one in reports if one.get("split")), None)
    if found is None:
        return None
    classes = [sorted(f"{name}.{column}" for name, column in one) for one in join.query.equalities]
    heavy = [{"columns": classes[one["class"]], **one} for one in found["heavy"]]
    return {**found, "heavy": heavy}


def _mean(values: Iterable[float]) -> float:
    several = list(values)
    return sum(several) / len(several)


def _shares(layout: Layout) -> list[dict[str, Any]]:
    return [
        {"columns": sorted(f"{name}.{column}" for name, column in one), "size": size}
        for one, size in zip(layout.query.equalities, layout.shares.sizes, strict=True)
    ]


def _sent(layout: Layout, rates: Mapping[str, float], join: Join) -> float:
    return replication(layout.shares, {name: rate for name, rate in rates.items() if name not in join.tables})


def _best(join: Join, rates: Mapping[str, float]) -> list[int] | None:
    """The shares that measured rates suggest, if they would copy clearly fewer rows than those there are."""
    weights = {name: 0.0 if name in join.tables else rate for name, rate in rates.items()}
    best = choose_shares(join.layout.shares.placed_by, weights, join.layout.shares.cells)
    if _sent(Layout(join.query, best), rates, join) < 0.9 * _sent(join.layout, rates, join):
        return list(best.sizes)
    return None


def _orders(name: str, statistics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The orders of a stream, and how many cells probe in each."""
    found = Counter(
        (tuple(one["orders"][name]), bool(one.get("drop_probing", {}).get(name)))
        for one in statistics
        if name in one.get("orders", {})
    )
    return [
        {"order": list(order), "drop_probing": drops, "cells": cells} for (order, drops), cells in found.most_common()
    ]


def _estimated(graph: JoinGraph, cells: int) -> float:
    """Results a step that measured rates, window sizes and selectivities promise, of all cells."""
    total = 0.0
    for first, stream in enumerate(graph.streams):
        sequence = [first, *(one for one in range(len(graph.streams)) if one != first)]
        growth = (step(graph, sequence[:at], sequence[at], Measure.TUPLES)[0] for at in range(1, len(sequence)))
        total += stream.rate * math.prod(growth)
    return total * cells


def _split_lines(split: Mapping[str, Any]) -> list[str]:
    moving = "; rows sent by the layout before are still in windows" if split["old_rows"] else ""
    lines = [f"layout {split['generation']} since micro-batch {split['from_batch']}{moving}"]
    lines += [
        f"    a value of {' = '.join(one['columns'])} that {one['share']:.0%} of the rows have is split: "
        f"{one['spread']} is spread, the others are copied"
        for one in split["heavy"]
    ]
    return lines


def join_text(one: Mapping[str, Any]) -> str:
    """A description as text."""
    options = ", ".join(f"{name} {value}" for name, value in one["options"].items())
    lines = [f"join {one['key']}: {one['graph'].splitlines()[0]}; {options}; output {one['output']}"]
    lines += one["graph"].splitlines()[1:]
    shares = " × ".join(f"{share['size']} by {' = '.join(share['columns'])}" for share in one["shares"])
    lines.append(f"{one['cells']} cells: {shares}; each row is sent {one['replication']:.2f} times on average")
    if one["best_shares"]:
        lines.append(f"    measured rates suggest {' × '.join(map(str, one['best_shares']))}: see rates=")
    header = ("input", "window", "rows", "late", "no key or time", "in state", "copies", "probes")
    rows = [header]
    for name, about in one["inputs"].items():
        orders = one["orders"].get(name) or []
        probes = "; ".join(
            " → ".join(each["order"])
            + (" (drop-probing)" if each["drop_probing"] else "")
            + (f" in {each['cells']} cells" if len(orders) > 1 else "")
            for each in orders
        )
        rows.append(
            (
                name,
                "-" if about["window"] is None else about["window"],
                *(f"{about[what]:,}" for what in ("rows", "late", "without_key_or_time", "rows_in_state", "copies")),
                probes or "-",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if one["estimated_results"] is not None:
        lines.append(
            f"{one['results']:,} results in {one['steps']:,} steps of cells; the last {one['results_last_step']:,}, "
            f"estimated {one['estimated_results']:,.0f}"
        )
        spent = ", ".join(f"{what} {value:.2f} s" for what, value in one["seconds"].items())
        lines.append(f"time in cells: {spent}")
        found = ", ".join(f"{count:,} {how}" for how, count in one["cells_found"].items())
        lines.append(
            f"state: {one['state_bytes']:,} bytes in {one['state_segments']:,} segments; "
            f"{one['memory_bytes']:,} bytes of windows and indexes in workers ({found})"
        )
    if one["split"] and one["split"]["generation"]:
        lines += _split_lines(one["split"])
    if one["heaviest"] and one["heaviest"] > UNEVEN:
        lines.append(
            f"the fullest cell holds {one['heaviest']:.1f} times the mean: some keys are much more frequent than others"
        )
    lines += [f"note: {note}" for note in one["notes"]]
    lines += [
        f"switch in cell {each['cell']} at step {each['step']}: {each['input']} {' → '.join(each['before'])} became "
        f"{' → '.join(each['after'])}, because {each['reason']}"
        for each in one["switches"]
    ]
    return "\n".join(lines)
