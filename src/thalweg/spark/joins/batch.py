"""A cell of a join in a batch job: all rows are there, nothing expires and nothing is late."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from thalweg.mjoin import Statistics
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.marks import counted_here
from thalweg.mjoin.pack import pack
from thalweg.spark.joins.arrivals import Arrivals
from thalweg.spark.joins.messages import Message, MessageKind
from thalweg.spark.joins.spec import JoinSpec, WindowTooLargeError


def join_at_once(spec: JoinSpec, label: int, messages: pa.Table) -> Iterator[bytes]:
    """The packed results of a cell."""
    cell_number, taken = spec.layout.cell_of[label], Counter[str]()
    try:
        yield from _join_cell(spec, cell_number, messages, taken)
    except MemoryError:
        raise WindowTooLargeError(cell_number, taken) from None


def _join_cell(spec: JoinSpec, cell_number: int, messages: pa.Table, taken: Counter[str]) -> Iterator[bytes]:
    columns = (messages[name].to_pylist() for name in ("kind", "input", "payload"))
    arrivals = Arrivals(
        spec.layout,
        cell_number,
        PLAIN,
        (Message(MessageKind(kind), name, payload) for kind, name, payload in zip(*columns, strict=True)),
    )
    cell, results, statistics, counted = spec.new_cell(), 0, Statistics(), Counter[str]()
    for rows in arrivals.pieces():
        taken.update({name: batch.num_rows for name, batch in rows.items()})
        counted.update({name: int(np.count_nonzero(counted_here(batch))) for name, batch in rows.items()})
        for part in cell.parts(rows, None):
            if part.results.num_rows:
                yield pack(part.results)
            statistics = part.statistics
        results += statistics.results
    for part in cell.end():
        yield pack(part.results)
        results += part.results.num_rows
    first = {name: number for name, number in counted.items() if spec.layout.shares.is_first(name, cell_number)}
    counts = {"steps": 1, "results": results, "rows": first}
    report = {"cell": cell_number, "at": time.time(), "counts": counts, "statistics": statistics.to_dict()}
    spec.report(f"cell-{cell_number}", report)
