"""Lowers the plan of a join to Spark's operators.

Each input is pruned, hashed and packed by cell, one shuffle brings the cells together, and results come as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.mjoin import EVENT_TIME
from thalweg.mjoin.pack import pack
from thalweg.spark.identifiers import backticked
from thalweg.spark.joins.batch import join_at_once
from thalweg.spark.joins.inputs import WATERMARK, JoinInput
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import LEDGER, MESSAGES
from thalweg.spark.joins.packing import PAYLOAD, packer, unpacker, version_teller
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.results import ResultShape, choose_shape
from thalweg.spark.joins.spec import JoinSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_TABLE_BYTES = 64 << 20  # of all tables together: they travel with the query to each task


def prepare_frames(
    inputs: Sequence[JoinInput], layout: Layout, casts: Mapping[tuple[str, str], str]
) -> dict[str, DataFrame]:
    """The needed columns of each input, and hashes of the keys that it is placed by.

    Spark's functions over Arrow do not find columns whose names have dots, so columns are numbered here. The layout
    knows their order (`Layout.received_columns`).
    """
    return {each.name: _prepared(each, layout, casts) for each in inputs}


def pack_tables(frames: Mapping[str, DataFrame], layout: Layout, tables: Sequence[str]) -> dict[str, bytes]:
    """Read the tables that are sent with the query."""
    packed = {}
    for name in tables:
        table = frames[name].toArrow().rename_columns(layout.received_columns(name))
        batches = table.combine_chunks().to_batches()
        if batches:
            packed[name] = pack(batches[0])
    if sum(map(len, packed.values())) > MOST_TABLE_BYTES:
        sizes = ", ".join(f"{name} {len(data) >> 20} MB" for name, data in packed.items())
        largest = max(packed, key=lambda name: len(packed[name]))
        raise ValueError(
            f"tables travel with the query and may have {MOST_TABLE_BYTES >> 20} MB together: {sizes}. Filter them, "
            f"select= fewer columns, or write tw.table({largest}) and state='folder', which has no such limit"
        )
    return packed


def lower(
    plan: JoinPlan, inputs: Sequence[JoinInput], frames: Mapping[str, DataFrame], tables: Mapping[str, bytes]
) -> DataFrame:
    """The DataFrame of the result."""
    shape = choose_shape(plan.query, inputs)
    if not plan.is_streaming:
        return _filtered(plan, _joined_at_once(plan, _packed(plan, frames), tables, shape))
    with own_workers(inputs[0].frame.sparkSession, plan.workers):
        messages = _packed(plan, frames)
        if shape.is_flat:
            return _filtered(plan, shape.named(_joined(messages, JoinSpec(plan, tables, shape.arrow), shape.given())))
        packed = _joined(messages, JoinSpec(plan, tables), PAYLOAD)
    return _filtered(plan, packed.mapInArrow(unpacker(shape.arrow, plan.key), shape.spark))


def _prepared(source: JoinInput, layout: Layout, casts: Mapping[tuple[str, str], str]) -> DataFrame:
    from pyspark.sql import functions as f

    def column(name: str) -> Column:
        own, cast_to = f.col(backticked(name)), casts.get((source.name, name))
        return own.cast(cast_to) if cast_to else own

    columns = [column(name) for name in layout.query.input(source.name).schema.names]
    hashes = [f.xxhash64(column(name)) for name in layout.hashed_columns(source.name).values()]
    return source.frame.select(*(each.alias(f"column_{number}") for number, each in enumerate([*columns, *hashes])))


def _packed(plan: JoinPlan, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The messages of all inputs that are not sent with the query, and of tables that may change."""
    tells_times = plan.idle_rule is not None
    packed = [
        frame.mapInArrow(
            packer(plan.layout, name, plan.key, plan.splitting, layouts=plan.layouts, tells_times=tells_times), MESSAGES
        )
        for name, frame in frames.items()
        if name not in plan.tables
    ]
    packed += [
        files.listed(next(iter(frames.values())).sparkSession).mapInArrow(
            version_teller(plan.layout, name, plan.key, plan.splitting), MESSAGES
        )
        for name, files in plan.versions.items()
    ]
    return reduce(lambda left, right: left.union(right), packed)


def _joined(messages: DataFrame, spec: JoinSpec, results: StructType | str) -> DataFrame:
    """The results of all cells of a streaming query, as columns or packed."""
    from thalweg.spark.joins.operator import JoinProcessor

    return messages.groupBy("cell").transformWithStateInPandas(JoinProcessor(spec), results, "Append", "EventTime")


def _joined_at_once(plan: JoinPlan, messages: DataFrame, tables: Mapping[str, bytes], shape: ResultShape) -> DataFrame:
    """The results of all cells of a batch job."""
    shuffled = messages.where(f"cell <> {LEDGER}").repartition(plan.layout.shares.cells, "cell")
    packed = shuffled.groupBy("cell").applyInArrow(_batch_joiner(JoinSpec(plan, tables)), PAYLOAD)
    return packed.mapInArrow(unpacker(shape.arrow, plan.key), shape.spark)


def _filtered(plan: JoinPlan, results: DataFrame) -> DataFrame:
    """The results for which Spark's part of the condition holds, without the columns that only that part needs."""
    from pyspark.sql import functions as f

    for result_filter in plan.result_filters:
        results = results.where(result_filter.sql)
    hidden = {alias for result_filter in plan.result_filters for *_, alias in result_filter.columns}
    columns = {name: f.col(backticked(name)) for name in results.columns if name not in hidden}
    if plan.query.event_time_of and plan.is_streaming:
        # Spark finds the column of event time by this mark; the watermark is the query's.
        columns[EVENT_TIME] = columns[EVENT_TIME].alias(EVENT_TIME, metadata={WATERMARK: 0})
    return results.select(*columns.values())


@contextmanager
def own_workers(spark: SparkSession, name: str) -> Iterator[None]:
    """Functions made within get worker processes of their own, so that the cells these keep are found again.

    Spark reuses a worker for any function with the same environment. Functions that pack rows share the workers of the
    operator, which have loaded all modules by then. Connect has no way to say this.
    """
    try:
        environment = spark.sparkContext.environment
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        environment = {}
    environment[f"THALWEG_JOIN_{name}"] = "1"
    try:
        yield
    finally:
        del environment[f"THALWEG_JOIN_{name}"]


def _batch_joiner(spec: JoinSpec) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    def join_cell(key: tuple[pa.Scalar, ...], messages: pa.Table) -> pa.Table:
        return pa.table({"payload": pa.array(list(join_at_once(spec, key[0].as_py(), messages)), pa.binary())})

    return join_cell
