"""Lowers the plan of a join to Spark's operators.

Each input is pruned, hashed and packed by cell, one shuffle brings the cells together, and their results are unpacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.mjoin import CHANGE
from thalweg.mjoin.pack import pack
from thalweg.spark.joins.batch import join_at_once
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.layout import HASH_PREFIX, Layout
from thalweg.spark.joins.messages import LEDGER, MESSAGES
from thalweg.spark.joins.packing import PAYLOAD, packer, unpacker
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import JoinSpec
from thalweg.spark.joins.text import microseconds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_TABLE_BYTES = 64 << 20  # of all tables together: they travel with the query to each task


def prepare_frames(
    inputs: Sequence[JoinInput],
    layout: Layout,
    filters: Sequence[tuple[str, str]],
    casts: Mapping[tuple[str, str], str],
    delay: str | timedelta,
) -> dict[str, DataFrame]:
    """Each input with its watermark, filters, needed columns, and hashes of the keys that it is placed by."""
    return {each.name: _prepared(each, layout, filters, casts, delay) for each in inputs}


def pack_tables(frames: Mapping[str, DataFrame], tables: Sequence[str]) -> dict[str, bytes]:
    """Read the tables that are sent with the query."""
    packed = {}
    for name in tables:
        batches = frames[name].toArrow().combine_chunks().to_batches()
        if batches:
            packed[name] = pack(batches[0])
    if sum(map(len, packed.values())) > MOST_TABLE_BYTES:
        sizes = ", ".join(f"{name} {len(data) >> 20} MB" for name, data in packed.items())
        raise ValueError(
            f"tables travel with the query and may have {MOST_TABLE_BYTES >> 20} MB together: {sizes}. Filter them, "
            f"select= fewer columns, or read the large table as a stream with windows={{name: None}}"
        )
    return packed


def lower(
    plan: JoinPlan, inputs: Sequence[JoinInput], frames: Mapping[str, DataFrame], tables: Mapping[str, bytes]
) -> DataFrame:
    """The DataFrame of the result."""
    messages = _packed(plan, frames)
    results = _joined(plan, messages, tables)
    return _unpacked(plan, inputs, results)


def _prepared(
    source: JoinInput,
    layout: Layout,
    filters: Sequence[tuple[str, str]],
    casts: Mapping[tuple[str, str], str],
    delay: str | timedelta,
) -> DataFrame:
    from pyspark.sql import functions as f

    frame = source.frame
    if frame.isStreaming and source.time and not source.has_watermark:
        frame = frame.withWatermark(source.time, f"{microseconds(delay, 'delay')} microseconds")
    frame = frame.alias(source.name)
    for text in (text for name, text in filters if name == source.name):
        frame = frame.where(text)

    def column(name: str) -> Column:
        own, cast_to = f.col(f"`{name}`"), casts.get((source.name, name))
        return own.cast(cast_to).alias(name) if cast_to else own

    hashes = [
        f.xxhash64(column(name)).alias(f"{HASH_PREFIX}{number}")
        for number, name in layout.hashed_columns(source.name).items()
    ]
    return frame.select(*map(column, layout.query.input(source.name).schema.names), *hashes)


def _packed(plan: JoinPlan, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The messages of all inputs that are not sent with the query."""
    packed = [
        frame.mapInArrow(packer(plan.layout, name, plan.key, plan.splitting), MESSAGES)
        for name, frame in frames.items()
        if name not in plan.tables
    ]
    return reduce(lambda left, right: left.union(right), packed)


def _joined(plan: JoinPlan, messages: DataFrame, tables: Mapping[str, bytes]) -> DataFrame:
    """The packed results of all cells."""
    from thalweg.spark.joins.operator import JoinProcessor

    spec = JoinSpec(plan, tables)
    if plan.is_streaming:
        with own_workers(messages.sparkSession, plan.key):
            return messages.groupBy("cell").transformWithStateInPandas(
                JoinProcessor(spec), PAYLOAD, "Append", "EventTime"
            )
    shuffled = messages.where(f"cell <> {LEDGER}").repartition(plan.layout.shares.cells, "cell")
    return shuffled.groupBy("cell").applyInArrow(_batch_joiner(spec), PAYLOAD)


def _unpacked(plan: JoinPlan, inputs: Sequence[JoinInput], results: DataFrame) -> DataFrame:
    """The results as columns of the names and types that the user knows."""
    from pyspark.sql.types import ByteType, StructField, StructType

    by_name = {each.name: each for each in inputs}
    shown = pa.schema([(alias, by_name[name].arrow_types[column]) for name, column, alias in plan.query.select])
    # Not as text, which has no room for the odd names that fields within a struct may have.
    fields = StructType([StructField(alias, by_name[name].types[column]) for name, column, alias in plan.query.select])
    if plan.query.output == "changelog":
        shown, fields = shown.append(pa.field(CHANGE, pa.int8())), fields.add(CHANGE, ByteType())
    return results.mapInArrow(unpacker(shown, plan.key), fields)


@contextmanager
def own_workers(spark: SparkSession, key: str) -> Iterator[None]:
    """Functions made within get worker processes of their own, so that the cells these keep are found again.

    Spark reuses a worker for any function with the same environment. Connect has no way to say this.
    """
    try:
        environment = spark.sparkContext.environment
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        environment = {}
    environment[f"THALWEG_JOIN_{key}"] = "1"
    try:
        yield
    finally:
        del environment[f"THALWEG_JOIN_{key}"]


def _batch_joiner(spec: JoinSpec) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def join_cell(key: tuple[pa.Scalar, ...], messages: pa.Table) -> pa.Table:
        return pa.table({"payload": pa.array(list(join_at_once(spec, key[0].as_py(), messages)), pa.binary())})

    return join_cell
