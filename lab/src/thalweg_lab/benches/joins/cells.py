"""Runs a workload in one cell, without Spark, to measure probe orders alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.kernels import compile_kernels
from thalweg.mjoin import Cell, JoinQuery
from thalweg_lab.benches.filters.race import Measurement
from thalweg_lab.benches.joins.work import START, JoinWorkload

Orders = Mapping[str, tuple[str, ...]]


@dataclass
class CellRun:
    """The work of a cell on a workload."""

    results: int = 0
    checksum: int = 0
    seconds: list[float] = field(default_factory=list)  # of each batch
    probes: int = 0
    intermediate: int = 0

    def measurement(self, skip: int = 1) -> Measurement:
        """The run as a race wants it; the first batches, which fill the windows, do not count."""
        return Measurement(self.results, self.checksum, sum(self.seconds[skip:]))


def prepared(workload: JoinWorkload) -> list[dict[str, pa.RecordBatch]]:
    """The batches of a workload in the form that cells take."""
    return [{name: _numbers(table) for name, table in tables.items()} for tables in workload.batches]


def drive(
    query: JoinQuery,
    batches: Iterable[Mapping[str, pa.RecordBatch]],
    orders_at: Callable[[int], Orders | None] = lambda _number: None,
    **options: Any,  # noqa: ANN401 - the options of a cell
) -> CellRun:
    """Let a cell join batches; `orders_at` may force orders before a batch."""
    compile_kernels()
    cell, driven = Cell(query, **options), CellRun()
    latest = START
    for number, arrivals in enumerate(batches):
        orders = orders_at(number)
        if orders:
            cell.set_orders(orders)
        start = time.process_time()
        parts = list(cell.parts(arrivals, latest))
        driven.seconds.append(time.process_time() - start)
        latest = max(pc.max(rows["ts"]).as_py() for rows in arrivals.values() if rows.num_rows)
        statistics = parts[-1].statistics
        driven.results += statistics.results
        driven.checksum += sum(pc.sum(column).as_py() or 0 for part in parts for column in part.results.columns)
        driven.probes += statistics.probes
        driven.intermediate += statistics.intermediate
    return driven


def all_orders(query: JoinQuery) -> list[dict[str, tuple[str, ...]]]:
    """Every combination of orders, an order for each stream, that needs no cross product."""
    choices = orders_of(query)
    return [dict(zip(choices, orders, strict=True)) for orders in product(*choices.values())]


def orders_of(query: JoinQuery) -> dict[str, list[tuple[str, ...]]]:
    """For each stream, every order that needs no cross product."""
    adjacent = {frozenset(pair) for pair in query.pairs}

    def connected(first: str, order: Sequence[str]) -> bool:
        seen = [first]
        for stream in order:
            if not any(frozenset((stream, other)) in adjacent for other in seen):
                return False
            seen.append(stream)
        return True

    return {
        name: [
            order
            for order in permutations([stream for stream in query.names if stream != name])
            if connected(name, order)
        ]
        for name in query.names
    }


def _numbers(table: pa.Table) -> pa.RecordBatch:
    at = table.schema.get_field_index("ts")
    numbers = table.set_column(at, "ts", table.column(at).cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    return numbers.combine_chunks().to_batches()[0]
