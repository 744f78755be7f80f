"""amplifying: a bad order makes twenty combinations of each row before it drops nearly all of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import THALWEG, Measurement, Tick, part_of, race
from thalweg_lab.benches.joins.cells import all_orders, drive, prepared
from thalweg_lab.benches.joins.streams import against_spark
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "amplifying"
ROWS, WINDOW, BATCHES = 20_000, 10, 10
ALONE_BATCHES, ROUNDS = 20, 3  # of cells without Spark
AMPLIFIED, RARE = 20, 0.05  # matches of a row in the window of the amplifying stream, and of the other


def make_workload(rows: int, batches: int) -> JoinWorkload:
    """A and B match often, B and C rarely: to join in the order of their names, as Spark does, is bad."""
    many, few = rows * WINDOW // AMPLIFIED, round(rows * WINDOW / RARE)
    streams = {
        "A": StreamKeys({"k": many}, rows),
        "B": StreamKeys({"k": many, "l": few}, rows),
        "C": StreamKeys({"l": few}, rows),
    }
    return JoinWorkload(
        on=((("A", "k"), ("B", "k")), (("B", "l"), ("C", "l"))),
        window=WINDOW,
        batches=random_batches(streams, batches, FILL),
    )


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """Against Spark, which joins A and B first; and in a cell alone against each fixed choice of orders."""
    results = against_spark(spark, part_of(tick, 0, 2), NAME, make_workload, (rows, batches), 20)
    rest = alone(rows, ALONE_BATCHES, rounds, part_of(tick, 1, 2))
    return [*results, rest]


def alone(rows: int, batches: int, rounds: int, tick: Tick) -> Result:
    """A cell that adapts against the best of all cells that do not."""
    workload = make_workload(rows, batches)
    query, taken = workload.query, prepared(workload)
    fixed = {
        "; ".join(f"{name}: {' '.join(each)}" for name, each in orders.items()): orders for orders in all_orders(query)
    }

    def cell(orders: dict[str, tuple[str, ...]] | None) -> Measurement:
        return drive(query, taken, orders=orders).measurement(len(FILL))

    cell(None)  # compiles all kernels
    contenders = {THALWEG: partial(cell, None)} | {name: partial(cell, orders) for name, orders in fixed.items()}
    note = f"one cell, {batches} batches of {rows:,} rows a stream, processor time"
    found = race(NAME, contenders, rounds, tick, note, label="one cell")
    return found.faster(found.best(*fixed), 0.95)
