"""star: eight stored tables whose columns are brought back, in Python workers, each dropping the rows of one class.

Class orders take a third of the probes, but a probe takes a hundredth of a microsecond, less than splitting a batch by
class costs a row: routing has to find that out and to switch itself off. All contenders are warm.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg_lab.benches.routing.classes import CLASS_OF, CLASSIFIER, OPERATORS, Routed
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "star"
ROWS, ROUNDS = 6_000_000, 5
KEYS = 10_000
KEPT = 5  # per cent of the keys of its class that are in a table
ONE_ORDER = "one A-Greedy order"
JOINS = "joins in Spark"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Time against the same lookups in one order; joins in Spark are in the note."""
    import thalweg as tw

    columns = [f"k{number}" for number in range(OPERATORS)]
    keys = [
        f"if({CLASSIFIER} = {number} and pmod(xxhash64(id, {number}), 100) >= {KEPT}, -1, "
        f"pmod(xxhash64(id, {number + OPERATORS}), {KEYS})) as {column}"
        for number, column in enumerate(columns)
    ]
    frame = (
        spark.range(0, rows, 1, 2)
        .selectExpr("cast(id as int) as id", f"cast({CLASS_OF} as int) as {CLASSIFIER}", "7 as constant")
        .selectExpr("id", CLASSIFIER, "constant", *keys)
        .cache()
    )
    numbers = np.arange(KEYS)
    routed = Routed(
        [
            tw.lookup(pa.table({column: numbers, f"of_{column}": numbers}), on=column, columns=[f"of_{column}"])
            for column in columns
        ]
    )
    note = f"{rows:,} cached rows, {OPERATORS} tables of {KEYS:,} keys, each keeps {KEPT}% of one class; all warm"
    with tempfile.TemporaryDirectory() as state:
        contenders = {
            THALWEG: routed.by(THALWEG, CLASSIFIER, state=f"{state}/classes"),
            AGAIN: routed.by(AGAIN, CLASSIFIER, state=f"{state}/again"),
            ONE_ORDER: routed.by(ONE_ORDER, "constant", state=f"{state}/one"),  # tells nothing, but runs in Python too
            JOINS: routed.by(JOINS, None),
        }
        try:
            frame.count()
            found = compete(NAME, frame, contenders, rounds, tick, note, tries=2)
        finally:
            frame.unpersist()
        _, each = routed.fewer(THALWEG, ONE_ORDER)
    one_order, joins = found.faster(ONE_ORDER, 0.9), found.faster(JOINS, 1.0)
    note = f"{one_order.note}; probes {each}; {joins.measure}: {joins.value:.2f}"
    return [replace(one_order, note=note), found.control()]
