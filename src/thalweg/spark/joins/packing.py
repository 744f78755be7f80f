"""From rows to packed rows by cell, and back: the two ends of a join's operator, as functions for `mapInArrow`.

Before the shuffle each task gathers its rows, finds their cells and sends each cell a few large binaries; after the
join binaries become columns again. In between Spark moves and stores bytes, and converts no row. A task also tells the
ledger what it has sent, and by which layouts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.mjoin.layouts import PLAIN, ActiveLayouts, parts
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.place import without_null
from thalweg.mjoin.query import JoinQuery, TimeWindow
from thalweg.mjoin.shares import Shares, labels
from thalweg.mjoin.skew import frequent
from thalweg.ordering.types import Integers
from thalweg.spark.joins.splitting import FIRST, Entry, Splitting

PACKED = "cell int, input int, payload binary"
PACKED_SCHEMA = pa.schema([("cell", pa.int32()), ("input", pa.int32()), ("payload", pa.binary())])
PAYLOAD = "payload binary"

LEDGER = -1  # the cell that joins nothing: it counts rows without key or time, and knows which layout the state has
HASH = "__thalweg_hash_"  # columns that say where rows belong; they are not sent on
GREETING = -1  # instead of the number of an input: makes sure that all cells exist, and know the layouts if not plain
FIRST_BATCH = "0"
UNPLACED = -2  # less the number of an input: rows with their hashes, of which each cell picks its own
GATHERED_BYTES = 32 << 20  # that a task holds before it sends them on

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Layout:
    """Which rows go where: part of the state's meaning, so it stays the same as long as the state is kept."""

    query: JoinQuery
    shares: Shares

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The number that Spark knows each cell by."""
        return tuple(labels(self.shares.cells))

    @cached_property
    def cell_of(self) -> dict[int, int]:
        """The cell of each label."""
        return {label: cell for cell, label in enumerate(self.labels)}

    def hashed(self, name: str) -> dict[int, str]:
        """The classes along which an input's rows have to be placed, and a column of each."""
        return {
            number: columns[0]
            for number, columns in self.query.key_columns[name].items()
            if self.shares.sizes[number] > 1
        }

    def present(self, name: str) -> list[str]:
        """The columns in which a row must have a value to match anything."""
        keys = [column for columns in self.query.key_columns[name].values() for column in columns]
        time = self.query.input(name).time
        return list(dict.fromkeys([*keys, *([time] if time else [])]))

    def hashes(self, name: str, batch: pa.RecordBatch) -> dict[int, Integers]:
        """The hashes that came with rows, by class."""
        return {number: batch.column(f"{HASH}{number}").to_numpy() for number in self.hashed(name)}

    def split(
        self, name: str, batch: pa.RecordBatch, layouts: ActiveLayouts
    ) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Rows that may match, by the cells that they go to, marked and with the columns of the query only."""
        rows = stored(batch, self.query.input(name).schema)
        yield from parts(layouts, self.shares, name, self.hashes(name, batch), rows)

    def text(self) -> str:
        """The layout in words, equal if and only if rows go to the same cells and windows are the same."""
        classes = [sorted(f"{name}.{column}" for name, column in one) for one in self.query.equalities]
        return json.dumps(
            {
                "cells": self.shares.cells,
                "shares": [f"{' = '.join(one)}: {size}" for one, size in zip(classes, self.shares.sizes, strict=True)],
                "windows": {one.name: str(one.window) for one in self.query.inputs},
                "output": self.query.output,
            }
        )

    @property
    def digest(self) -> str:
        """A short name for the layout."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:12]


def stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns and types of a schema; a timestamp that is stored as int64 becomes microseconds."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if pa.types.is_timestamp(column.type) and field.type == pa.int64():
            column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def packer(layout: Layout, name: str, key: str, splitting: Splitting | None = None) -> Callable[[Batches], Batches]:
    """A function that packs the rows of an input."""
    number = layout.query.names.index(name)

    def run(batches: Batches) -> Batches:
        batch_number = task_property("streaming.sql.batchId")
        told: dict[str, Any] = {"layout": layout.text(), "input": name, "without_key_or_time": 0}
        entry: Entry | None = FIRST
        if splitting:
            entry = splitting.current(task_property("sql.streaming.queryId"), int(batch_number or 0))
            told |= {"entry": entry.text if entry else None, "rows": 0, "deadline": None, "frequent": {}}
        for table in _gathered(batches):
            batch = table.combine_chunks().to_batches()[0]
            rows = without_null(batch, layout.present(name))
            told["without_key_or_time"] += batch.num_rows - rows.num_rows
            if splitting:
                _tell(told, layout, name, rows)
            for cells, part in layout.split(name, rows, entry.layouts) if entry else ():
                payload = pack(part)
                for cell in cells:
                    yield packed_row(layout.labels[cell], number, payload)
            if entry is None and rows.num_rows:
                payload = pack(rows)
                for label in layout.labels:
                    yield packed_row(label, UNPLACED - number, payload)
        is_split = entry is not None and entry.layouts != PLAIN
        if batch_number == FIRST_BATCH or is_split:
            greeting = json.dumps(entry.layouts.to_json()).encode() if entry and is_split else b""
            for label in layout.labels:
                yield packed_row(label, GREETING, greeting)
        yield packed_row(LEDGER, number, json.dumps(told).encode())

    run.__name__ = f"thalweg_{key}"
    return run


def _tell(told: dict[str, Any], layout: Layout, name: str, rows: pa.RecordBatch) -> None:
    """Add to what the ledger is told: how many rows, how long they stay, and which values are frequent."""
    one = layout.query.input(name)
    told["rows"] += rows.num_rows
    if one.time and isinstance(one.window, TimeWindow) and rows.num_rows:
        times = stored(rows.select([one.time]), pa.schema([one.schema.field(one.time)]))
        deadline = pc.max(times[0]).as_py() + one.window.microseconds
        told["deadline"] = max(deadline, deadline if told["deadline"] is None else told["deadline"])
    for number, hashed in layout.hashes(name, rows).items():
        found = told["frequent"].setdefault(number, {})
        for value, count in frequent(hashed).items():
            found[value] = found.get(value, 0.0) + count


def unpacker(kinds: pa.Schema, key: str) -> Callable[[Batches], Batches]:
    """A function that makes columns of these types from packed results."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for payload in batch.column("payload"):
                results = unpack(payload.as_buffer())
                columns = [
                    column if column.type == kind.type else _back(column, kind.type)
                    for column, kind in zip(results.columns, kinds, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=kinds)

    run.__name__ = f"thalweg_{key}"
    return run


def task_property(name: str) -> str:
    """A property of the running task, which Spark sets for each micro-batch; empty where there is none."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.getLocalProperty(name) if context else None) or ""


def packed_row(label: int, number: int, payload: bytes) -> pa.RecordBatch:
    """One packed batch as a row for Spark."""
    values = zip(([label], [number], [payload]), PACKED_SCHEMA, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(value, field.type) for value, field in values], schema=PACKED_SCHEMA)


def _back(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A stored column in the type that the user knows it by."""
    if pa.types.is_timestamp(kind) and column.type == pa.int64():
        return column.view(kind)
    return column.cast(kind)


def _gathered(batches: Batches) -> Iterator[pa.Table]:
    """Batches put together, so that cells get few large pieces; none where there is no row."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            held += batch.nbytes
        if held > GATHERED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, held = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
