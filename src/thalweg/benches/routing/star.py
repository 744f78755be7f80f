"""star: eight stored tables whose columns are brought back, in Python workers: probes follow the orders of classes.

A probe takes a tenth of a microsecond, so that learning, which may take a hundredth of the time, takes many rows: all
contenders are warm.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from thalweg.benches.filters.race import AGAIN, THALWEG, Tick, compete
from thalweg.benches.routing.classes import CLASS_OF, CLASSIFIER, OPERATORS, Routed
from thalweg.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "star"
ROWS, ROUNDS = 3_000_000, 5
KEYS = 10_000
KEPT = 5  # per cent of the keys of its class that are in a table
ONE_ORDER = "one A-Greedy order"
JOINS = "joins in Spark"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Probes and time against the same lookups in one order; joins in Spark are in the note."""
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
            found = compete(NAME, frame, contenders, rounds, tick, note)
        finally:
            frame.unpersist()
        fewer, each = routed.fewer(THALWEG, ONE_ORDER)
    joins = found.faster(JOINS, 1.0)
    return [
        at_least(
            NAME,
            f"per cent fewer probes than {ONE_ORDER}",
            fewer,
            60,
            f"{note}; {each}; {joins.measure}: {joins.value:.2f}",
        ),
        found.faster(ONE_ORDER, 0.95),
        found.control(),
    ]
