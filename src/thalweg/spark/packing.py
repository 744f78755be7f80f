"""From rows to packed rows by cell, and back: the two ends of a join's operator, as functions for `mapInArrow`.

Before the shuffle each task gathers its rows, finds their cells and sends each cell a few large binaries; after the
join binaries become columns again. In between Spark moves and stores bytes, and converts no row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.place import by_cell, first_cells, without_null
from thalweg.mjoin.query import JoinQuery
from thalweg.mjoin.shares import Shares, labels

PACKED = "cell int, input int, payload binary"
PACKED_SCHEMA = pa.schema([("cell", pa.int32()), ("input", pa.int32()), ("payload", pa.binary())])
PAYLOAD = "payload binary"

LEDGER = -1  # the cell that joins nothing: it counts rows without key or time, and knows which layout the state has
HASH = "__thalweg_hash_"  # columns that say where rows belong; they are not sent on
GREETING = -1  # instead of the number of an input: makes sure that all cells exist from the first micro-batch on
FIRST_BATCH = "0"
GATHERED_BYTES = 64 << 20  # that a task holds before it sends them on

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

    def split(self, name: str, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each first cell, with the columns of the query only; rows that match nothing are left out."""
        batch = without_null(batch, self.present(name))
        hashes = {number: batch.column(f"{HASH}{number}").to_numpy() for number in self.hashed(name)}
        cells = first_cells(hashes, self.shares, batch.num_rows)
        yield from by_cell(stored(batch, self.query.input(name).schema), cells, self.shares.cells)

    def copies(self, name: str, first: int) -> list[int]:
        """All cells of rows, by their first."""
        return [first + offset for offset in self.shares.offsets(name)]

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


def packer(layout: Layout, name: str, key: str) -> Callable[[Batches], Batches]:
    """A function that packs the rows of an input."""
    number = layout.query.names.index(name)

    def run(batches: Batches) -> Batches:
        missing = 0
        for table in _gathered(batches):
            batch = table.combine_chunks().to_batches()[0]
            packed: list[tuple[int, bytes]] = []
            kept = 0
            for first, rows in layout.split(name, batch):
                kept += rows.num_rows
                payload = pack(rows)
                packed += [(layout.labels[cell], payload) for cell in layout.copies(name, first)]
            missing += batch.num_rows - kept
            for label, payload in packed:
                yield packed_row(label, number, payload)
        if task_property("streaming.sql.batchId") == FIRST_BATCH:
            for label in layout.labels:
                yield packed_row(label, GREETING, b"")
        about = json.dumps({"layout": layout.text(), "input": name, "without_key_or_time": missing})
        yield packed_row(LEDGER, number, about.encode())

    run.__name__ = f"thalweg_{key}"
    return run


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
