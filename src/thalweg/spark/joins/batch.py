"""A cell of a join in a batch job: all rows are there, nothing expires and nothing is late."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from thalweg.mjoin import Statistics
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.pack import pack
from thalweg.spark.joins.spec import JoinSpec, WindowTooLargeError


def join_at_once(spec: JoinSpec, label: int, packed: pa.Table) -> Iterator[bytes]:
    """The packed results of a cell."""
    cell_number, taken = spec.layout.cell_of[label], Counter[str]()
    try:
        yield from _joined_at_once(spec, cell_number, packed, taken)
    except MemoryError:
        raise WindowTooLargeError(cell_number, taken) from None


def _joined_at_once(spec: JoinSpec, cell_number: int, packed: pa.Table, taken: Counter[str]) -> Iterator[bytes]:
    rows = zip(packed["input"].to_pylist(), packed["payload"].to_pylist(), strict=True)
    cell, results, statistics = spec.new_cell(), 0, Statistics()
    for arrivals in spec.arrivals(rows, cell_number, PLAIN, []):
        taken.update({name: batch.num_rows for name, batch in arrivals.items()})
        for part in cell.parts(arrivals, None):
            if part.results.num_rows:
                yield pack(part.results)
            statistics = part.statistics
        results += statistics.results
    first = {name: number for name, number in taken.items() if spec.layout.shares.is_first(name, cell_number)}
    counts = {"steps": 1, "results": results, "rows": first}
    report = {"cell": cell_number, "at": time.time(), "counts": counts, "statistics": statistics.to_dict()}
    spec.report(f"cell-{cell_number}", report)
