"""lookups: eight stored tables of 10,000 keys, the least selective written first."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Make, Tick, compete
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "lookups"
ROWS, ROUNDS = 12_000_000, 5  # enough for probing to outweigh the making of eight broadcast tables
KEYS = 10_000
KEEPS = tuple(np.linspace(0.95, 0.2, 8).tolist())

WRITTEN = "the chain of broadcast semi-joins as written"
BEST = "the best chain of broadcast semi-joins"


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Against chains of broadcast semi-joins, as written and in the best order."""
    import thalweg as tw

    columns = [f"k{number + 1}" for number in range(len(KEEPS))]
    keys = [
        f"concat('key-', pmod(xxhash64(id, {number}), {round(KEYS / keep)})) as {column}"
        for number, (column, keep) in enumerate(zip(columns, KEEPS, strict=True))
    ]
    frame = spark.range(0, rows, 1, 2).selectExpr("cast(id as int)", *keys).cache()
    tables = {column: pa.table({column: [f"key-{key}" for key in range(KEYS)]}) for column in columns}
    stored = {column: spark.createDataFrame(table).hint("broadcast") for column, table in tables.items()}

    lookups = [tw.lookup(table, on=column) for column, table in tables.items()]

    def thalweg(frame: DataFrame) -> DataFrame:
        return tw.where(frame, *lookups)

    def chain(order: list[str]) -> Make:
        return lambda frame: reduce(lambda kept, column: kept.join(stored[column], column, "left_semi"), order, frame)

    try:
        frame.count()
        contenders = {THALWEG: thalweg, AGAIN: thalweg, WRITTEN: chain(columns), BEST: chain(columns[::-1])}
        note = (
            f"{rows:,} cached rows, tables of {KEYS:,} keys keeping {KEEPS[0]:.0%} to {KEEPS[-1]:.0%}, cold; stored "
            f"tables and lookups are made before"
        )
        found = compete(NAME, frame, contenders, rounds, tick, note)
    finally:
        frame.unpersist()
    return [found.faster(WRITTEN, 1.5), found.faster(BEST, 0.95), found.control()]
