"""The rows of a micro-batch for all queries at once: read once, each shared condition evaluated once."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.session.program import Program
from thalweg.spark.session.sources import STREAM, TIME, SharedStream, backticked
from thalweg.sql.rename import with_columns_renamed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Pane:
    """How many rows of a stream have a time in one pane, and how many of these each shared condition keeps.

    Pane number p of width w holds the times ((p - 1) * w, p * w].
    """

    rows: int
    kept: Mapping[str, int]  # by the name of the condition's column


@dataclass(frozen=True)
class PaneCounts:
    """What a micro-batch brought: panes by stream and number, and the latest time of each stream."""

    panes: Mapping[str, Mapping[int, Pane]]
    latest: Mapping[str, int]
    timeless: Mapping[str, int]  # rows without an event time


def shared_rows(batch: DataFrame, program: Program, streams: Sequence[SharedStream]) -> DataFrame:
    """The columns that some query reads, and a column for each shared condition; FALSE where it is NULL."""
    from pyspark.sql import functions as f

    stored = {
        stream.name: {name: stream.stored_name(name) for name in stream.frame.columns} for stream in streams
    }
    columns = [backticked(stored[stream.name][name]) for stream in streams for name in program.columns(stream)]
    conditions = [
        f.coalesce(
            (f.col(STREAM) == condition.stream) & f.expr(with_columns_renamed(condition.sql, stored[condition.stream])),
            f.lit(False),  # noqa: FBT003
        ).alias(condition.column)
        for condition in program.conditions
    ]
    return batch.select(STREAM, TIME, *columns, *conditions)


def needed(program: Program, stream: str) -> Column:
    """Whether some query needs a row of a stream."""
    from pyspark.sql import functions as f

    readers = program.readers(stream)
    chosen = [reduce(operator.and_, [f.lit(True), *(f.col(backticked(each.column)) for each in query.keeps[alias.alias])]) for query, alias in readers]  # noqa: E501, FBT003
    return (f.col(STREAM) == stream) & reduce(operator.or_, chosen, f.lit(False))  # noqa: FBT003


def count_panes(rows: DataFrame, program: Program, streams: Sequence[SharedStream]) -> PaneCounts:
    """Count the rows of a micro-batch by stream and pane, in one job."""
    from pyspark.sql import functions as f

    width = reduce(
        lambda otherwise, stream: f.when(f.col(STREAM) == stream.name, f.lit(program.pane(stream.name))).otherwise(otherwise),
        [stream for stream in streams if program.readers(stream.name)],
        f.lit(1 << 40),
    )
    pane = f.expr(f"-((-{TIME}) div width)")
    counted = (
        rows.withColumn("width", width)
        .groupBy(STREAM, pane.alias("pane"))
        .agg(
            f.count("*").alias("rows"),
            f.max(TIME).alias("latest"),
            *(f.count_if(f.col(backticked(each.column))).alias(each.column) for each in program.conditions),
        )
        .toArrow()
        .to_pylist()
    )
    panes: dict[str, dict[int, Pane]] = {stream.name: {} for stream in streams}
    latest: dict[str, int] = {}
    timeless: dict[str, int] = {}
    for row in counted:
        stream = row[STREAM]
        if row["pane"] is None:
            timeless[stream] = row["rows"]
            continue
        own = {each.column: row[each.column] for each in program.conditions if each.stream == stream}
        panes[stream][row["pane"]] = Pane(row["rows"], own)
        latest[stream] = max(latest.get(stream, row["latest"]), row["latest"])
    return PaneCounts(panes, latest, timeless)
