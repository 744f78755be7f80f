"""drift: every twenty batches another leaf of a star hardly ever matches, and another sends most rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.benches.filters.race import THALWEG, Run, Tick, race
from thalweg.benches.joins.cells import Orders, drive, prepared
from thalweg.benches.joins.work import BATCH_SECONDS, SECOND, Keys, Tables, Workload, random_batches
from thalweg.mjoin.adaptation import DropProbes
from thalweg.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

NAME = "drift"
HUB, LEAVES = "A", ("B", "C", "D", "E")
PHASE, PHASES = 20, 4  # batches, and how often the streams change their parts
ROWS, WINDOW, ROUNDS = 6_000, 4, 3
OFTEN, RARELY = 6, 0.02  # matches of a row of the hub in a leaf's window
HUB_SHARE = 3  # a leaf sends so many times the rows of the hub
BUSY = 2  # times the rows of the other leaves
CLAIRVOYANT = "a clairvoyant"


def make_workload(rows: int, phase: int) -> Workload:
    """In each phase one leaf and the hub have hardly a key in common, and the leaf after it sends more rows."""
    batches: list[Tables] = []
    for number in range(PHASES):
        rare, busy = LEAVES[number % len(LEAVES)], LEAVES[(number + 1) % len(LEAVES)]
        values = {leaf: round(rows * WINDOW / (RARELY if leaf == rare else OFTEN)) for leaf in LEAVES}
        streams = {HUB: Keys({leaf.lower(): values[leaf] for leaf in LEAVES}, rows // HUB_SHARE)}
        for leaf in LEAVES:
            streams[leaf] = Keys({leaf.lower(): values[leaf]}, BUSY * rows if leaf == busy else rows)
        batches += _later(random_batches(streams, phase, seed=number), number * phase)
    return Workload(
        on=tuple(((HUB, leaf.lower()), (leaf, leaf.lower())) for leaf in LEAVES), window=WINDOW, batches=batches
    )


def measure(
    spark: SparkSession | None, tick: Tick, *, rows: int = ROWS, phase: int = PHASE, rounds: int = ROUNDS
) -> list[Result]:
    """A cell that adapts against each ranking of the leaves that never changes, and the best one of each phase."""
    del spark  # what is measured here is the orders
    workload = make_workload(rows, phase)
    query, taken = workload.query, prepared(workload)
    rankings = [LEAVES[at:] + LEAVES[:at] for at in range(len(LEAVES))]
    fixed = {f"always {' '.join(ranking)}": orders_by(ranking) for ranking in (*rankings, LEAVES[::-1])}
    best = [orders_by(sorted(LEAVES, key=lambda leaf: leaf != LEAVES[number])) for number in range(PHASES)]

    def cell(orders: Orders | None, drops: DropProbes = "auto") -> Run:
        return drive(query, taken, orders=orders, drop_probing=drops).run()

    def knowing() -> Run:
        found = drive(query, taken, lambda at: best[at // phase] if at % phase == 0 else None, orders=best[0])
        return found.run()

    cell(None)  # compiles what there is to compile
    contenders: dict[str, Callable[[], Run]] = {THALWEG: partial(cell, None), CLAIRVOYANT: knowing}
    contenders |= {name: partial(cell, orders) for name, orders in fixed.items()}
    plain = {f"{name}, plain probing": partial(cell, orders, drops=False) for name, orders in fixed.items()}
    note = f"one cell, {PHASES} phases of {phase} batches of {rows:,} rows or {BUSY} times as many; processor time"
    found = race(NAME, contenders | plain, rounds, tick, note)
    return [
        found.faster(found.best(*fixed), 1.5),
        found.faster(found.best(*plain), 1.5),
        found.faster(CLAIRVOYANT, 0.9),
    ]


def orders_by(ranking: Sequence[str]) -> Orders:
    """The hub probes the leaves in this order, and each leaf the hub and then the others."""
    return {HUB: tuple(ranking)} | {leaf: (HUB, *(one for one in ranking if one != leaf)) for leaf in LEAVES}


def _later(batches: list[Tables], by: int) -> list[Tables]:
    """The same rows, so many batches later."""
    shift = pa.scalar(by * BATCH_SECONDS * SECOND, pa.duration("us"))
    return [
        {
            name: table.set_column(table.schema.get_field_index("ts"), "ts", pc.add(table["ts"], shift))
            for name, table in tables.items()
        }
        for tables in batches
    ]
