"""Standing queries as they are written in Spark without Thalweg: each on its own, or all in one program by hand."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from thalweg.sql.parse import parse_query
from thalweg.sql.query import ContinuousQuery, Source
from thalweg_lab.benches.session.work import COLUMNS, STREAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUND = "round"
EARLIER = "earlier"  # the column of event times less a microsecond


def parsed(text: str) -> ContinuousQuery:
    """A query over the streams of the benchmark."""
    return parse_query(text, [Source(name, COLUMNS) for name in STREAMS])


def in_spark(query: ContinuousQuery, streams: Mapping[str, DataFrame]) -> DataFrame:
    """A query over DataFrames, batch or streaming, in Spark's own operations, with the bounds of rounds.

    Streams get a watermark without delay.
    """
    window = query.window
    joined: DataFrame | None = None
    aliases: list[str] = []
    for each in query.inputs:
        rounds = f.window(EARLIER, f"{window.length} microseconds", f"{window.slide} microseconds")
        # Spark's windows hold their start and not their end; rounds hold their end and not their start.
        frame = streams[each.source].withColumn(EARLIER, f.col("ts") - f.expr("INTERVAL '0.000001' SECOND"))
        own = [f.expr(selection.shared_sql) for selection in query.selections if selection.alias == each.alias]
        keep = reduce(operator.and_, own, f.lit(True))  # noqa: FBT003 - as Spark takes it
        if frame.isStreaming:
            # Rows that are not selected move the watermark too: Spark tests a condition that reads the watermark's
            # column after the watermark, and any other condition before it.
            frame = frame.withWatermark(EARLIER, "0 seconds")
            keep |= f.col(EARLIER).isNull()
        frame = frame.where(keep)
        frame = frame.select(rounds.alias(ROUND), *each.columns).alias(each.alias)
        if joined is None:
            joined = frame
        else:
            equal = [
                f.expr(f"{join.left.sql} = {join.right.sql}")
                for join in query.equi_joins
                if each.alias in join.left.inputs | join.right.inputs
                and join.left.inputs | join.right.inputs <= {*aliases, each.alias}
            ]
            same_round = f.expr(f"`{aliases[0]}`.`{ROUND}` = `{each.alias}`.`{ROUND}`")
            joined = joined.join(frame, reduce(operator.and_, [same_round, *equal]), "inner")
        aliases.append(each.alias)
    assert joined is not None  # noqa: S101 - a query has an input
    number = f.col(f"`{aliases[0]}`.`{ROUND}`")
    outputs = [f.expr(output.expression.sql).alias(output.name) for output in query.outputs]
    if query.is_aggregated:
        keys = [f.expr(key.sql).alias(f"key{place}") for place, key in enumerate(query.group_by)]
        grouped = joined.groupBy(number.alias(ROUND), *keys).agg(*outputs)
        return _with_bounds(grouped.select(ROUND, *(output.name for output in query.outputs)))
    return _with_bounds(joined.select(number.alias(ROUND), *outputs))


def _with_bounds(frame: DataFrame) -> DataFrame:
    bounds = [f.col(f"{ROUND}.start").alias("round_start"), f.col(f"{ROUND}.end").alias("round_end")]
    return frame.select(*bounds, *(column for column in frame.columns if column != ROUND))


def tagged(streams: Mapping[str, DataFrame]) -> DataFrame:
    """All streams in one, for a program that shares by hand."""
    frames = [frame.select(f.lit(name).alias("stream"), *COLUMNS) for name, frame in streams.items()]
    return reduce(lambda left, right: left.unionByName(right), frames)


def of_stream(cached: DataFrame, name: str) -> DataFrame:
    """The rows of one stream among all of them."""
    return cached.where(f.col("stream") == name)


def checksum(frame: DataFrame) -> tuple[int, int]:
    """How many rows there are, and a number that depends on all of them and on no order."""
    row = frame.select(f.count("*"), f.coalesce(f.sum(f.xxhash64(*frame.columns) % 1_000_003), f.lit(0))).collect()[0]
    return int(row[0]), int(row[1])
