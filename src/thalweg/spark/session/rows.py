"""The rows of a micro-batch for all queries at once: read once, each shared condition evaluated once."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.filters.conditions import backticked
from thalweg.spark.session.program import Conjunction, Program
from thalweg.spark.session.sources import STREAM, TIME, SharedStream, divided_up
from thalweg.sql.rename import with_columns_renamed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Pane:
    """How many rows of a stream have a time in (end - width, end], and how many of these each conjunction keeps."""

    width: int
    rows: int
    kept: Mapping[str, int] = field(default_factory=dict)  # by the name of the conjunction

    def __add__(self, other: Pane) -> Pane:
        kept = {name: count + self.kept.get(name, 0) for name, count in other.kept.items()}
        return Pane(other.width, self.rows + other.rows, {**self.kept, **kept})


Panes = Mapping[str, Mapping[int, Pane]]  # by stream and end


@dataclass(frozen=True)
class PaneCounts:
    """What a micro-batch brought."""

    panes: Panes
    latest: Mapping[str, int]  # time of each stream
    without_time: Mapping[str, int]  # rows of each stream without an event time

    @property
    def rows(self) -> int:
        """How many rows have a time, and a query that reads their stream."""
        return sum(pane.rows for ends in self.panes.values() for pane in ends.values())


def shared_rows(batch: DataFrame, program: Program, streams: Sequence[SharedStream]) -> DataFrame:
    """The columns that some query reads, and a column for each shared condition; FALSE where it is NULL."""
    from pyspark.sql import functions as f

    stored = {stream.name: {name: stream.stored_name(name) for name in stream.frame.columns} for stream in streams}
    plain: dict[str, dict[tuple[str, ...], str]] = {
        stream: {(name,): other for name, other in names.items()} for stream, names in stored.items()
    }
    columns = [backticked(stored[stream.name][name]) for stream in streams for name in program.columns(stream)]
    conditions = [
        f.coalesce(
            (f.col(STREAM) == condition.stream) & f.expr(with_columns_renamed(condition.sql, plain[condition.stream])),
            f.lit(False),  # noqa: FBT003
        ).alias(condition.column)
        for condition in program.conditions
    ]
    return batch.select(STREAM, TIME, *columns, *conditions)


def holds(conjunction: Conjunction) -> Column:
    """Whether a row is of the conjunction's stream, and all its conditions are true."""
    from pyspark.sql import functions as f

    conditions = [f.col(backticked(column)) for column in conjunction.columns]
    return reduce(operator.and_, [f.col(STREAM) == conjunction.stream, *conditions])


def count_panes(rows: DataFrame, program: Program, streams: Sequence[SharedStream]) -> PaneCounts:
    """Count the rows of a micro-batch by stream and pane, in one job."""
    from pyspark.sql import functions as f

    widths = {stream.name: program.pane(stream.name) for stream in streams if program.readers(stream.name)}
    width = reduce(
        lambda otherwise, name: f.when(f.col(STREAM) == name, f.lit(widths[name])).otherwise(otherwise),
        widths,
        f.lit(1 << 40),
    )
    counted = (
        rows.withColumn("width", width)
        .groupBy(STREAM, f.expr(divided_up(TIME, "width")).alias("pane"))
        .agg(
            f.count("*").alias("rows"),
            f.max(TIME).alias("latest"),
            *(f.count_if(holds(conjunction)).alias(conjunction.name) for conjunction in program.conjunctions),
        )
        .toArrow()
        .to_pylist()
    )
    panes: dict[str, dict[int, Pane]] = {stream.name: {} for stream in streams}
    latest: dict[str, int] = {}
    without_time: dict[str, int] = {}
    for row in counted:
        stream = row[STREAM]
        if row["pane"] is None:
            without_time[stream] = row["rows"]
            continue
        latest[stream] = max(latest.get(stream, row["latest"]), row["latest"])
        if stream in widths:
            kept = {each.name: row[each.name] for each in program.conjunctions if each.stream == stream}
            panes[stream][row["pane"] * widths[stream]] = Pane(widths[stream], row["rows"], kept)
    return PaneCounts(panes, latest, without_time)


def together(before: Panes, new: Panes) -> dict[str, dict[int, Pane]]:
    """The panes that wait, with those of a micro-batch."""
    panes = {stream: dict(ends) for stream, ends in before.items()}
    for stream, ends in new.items():
        own = panes.setdefault(stream, {})
        for end, pane in ends.items():
            own[end] = own[end] + pane if end in own else pane
    return panes
