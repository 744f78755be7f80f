"""The layout of a join: which rows go to which cells, and in which columns and types they are stored there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from thalweg.mjoin.layouts import ActiveLayouts, split_by_cells
from thalweg.mjoin.query import JoinQuery
from thalweg.mjoin.shares import Shares, labels
from thalweg.ordering.types import Integers
from thalweg.sealed import short_digest

HASH_PREFIX = "__thalweg_hash_"  # of columns that say where rows belong; they are not sent on


@dataclass(frozen=True)
class Layout:
    """Which rows go where: part of the state's meaning, so it stays the same as long as the state is kept."""

    query: JoinQuery
    shares: Shares
    conditions: tuple[str, ...] = ()  # all conditions of the query but equalities: filters and residuals
    watermark_shift: int = 0  # milliseconds by which the watermark of Spark is before that of the join

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The number that Spark knows each cell by."""
        return tuple(labels(self.shares.cells))

    @cached_property
    def cell_of(self) -> dict[int, int]:
        """The cell of each label."""
        return {label: cell for cell, label in enumerate(self.labels)}

    def hashed_columns(self, name: str) -> dict[int, str]:
        """The classes along which an input's rows have to be placed, and a column of each."""
        return {
            number: columns[0]
            for number, columns in self.query.key_columns[name].items()
            if self.shares.sizes[number] > 1
        }

    def received_columns(self, name: str) -> list[str]:
        """The columns of an input in the order in which they come from Spark, under names of its own."""
        return [*self.query.input(name).schema.names, *(f"{HASH_PREFIX}{each}" for each in self.hashed_columns(name))]

    def required_columns(self, name: str) -> list[str]:
        """The columns in which a row must have a value to be in any result."""
        keys = [column for columns in self.query.key_columns[name].values() for column in columns]
        if name in self.query.preserved and self.query.keeps_unmatched:
            keys = []
        time = self.query.input(name).time
        return list(dict.fromkeys([*keys, *([time] if time else [])]))

    def hashes(self, name: str, batch: pa.RecordBatch) -> dict[int, Integers]:
        """The hashes that came with rows, by class."""
        return {number: batch.column(f"{HASH_PREFIX}{number}").to_numpy() for number in self.hashed_columns(name)}

    def split(
        self, name: str, batch: pa.RecordBatch, layouts: ActiveLayouts
    ) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Rows that may match, by the cells that they go to, marked and with the columns of the query only."""
        rows = as_stored(batch, self.query.input(name).schema)
        yield from split_by_cells(layouts, self.shares, name, self.hashes(name, batch), rows)

    def text(self) -> str:
        """The layout in words: equal if and only if rows go to the same cells, and the same of them are results."""
        classes = [sorted(f"{name}.{column}" for name, column in equal) for equal in self.query.equalities]
        return json.dumps(
            {
                "cells": self.shares.cells,
                "shares": [
                    f"{' = '.join(columns)}: {size}" for columns, size in zip(classes, self.shares.sizes, strict=True)
                ],
                "windows": {each.name: str(each.window) for each in self.query.inputs},
                "output": self.query.output,
                "conditions": sorted(self.conditions),
                "watermark_shift": self.watermark_shift,
                "kind": " ".join([self.query.kind, *self.query.preserved]),
            }
        )

    @property
    def digest(self) -> str:
        """A short name for the layout."""
        return short_digest([self.text()])


def as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns and types of a schema; a timestamp that is stored as int64 becomes microseconds."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if pa.types.is_timestamp(column.type) and field.type == pa.int64():
            column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def as_shown(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A stored column in the type that the user knows it by: the reverse of `as_stored`."""
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind) and column.type == pa.int64():
        return column.view(kind)
    return column.cast(kind)
