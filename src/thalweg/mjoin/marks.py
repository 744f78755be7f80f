"""Marks of rows: by which layout a row was sent to a cell, and for which layouts the cell is one of its places.

While the layout changes, rows go to all cells that either the old or the new layout asks for, so that a combination may
meet in several cells. It counts where its oldest layout would have it: with m the earliest generation among its rows,
in the cell that is a place of all of them by layout m. By one layout a combination meets in exactly one cell, so
it is a result exactly once, and no row ever moves.

A mark is a number: the generation of the layout that the row was sent by, and three bits that are 0 for most rows. Rows
that have the same mark carry it in the metadata of their schema, and none if it is 0; others have a column of marks.
This module knows no layouts: only that rows of at most two generations, one after the other, are in windows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers

ELSEWHERE = 1  # another cell counts the row; it has no meaning for results, and is not kept
NOT_NOW = 2  # the cell is no place of the row by the layout of its own generation
NOT_BEFORE = 4  # nor by that of the generation before
GENERATION = 8  # times the generation
ALWAYS = GENERATION << 27  # the mark of a row of a table, which all cells have: it is of no generation
MARK = "__thalweg_mark"

Marks = int | Integers  # one mark for all rows, or a mark for each


def mark(rows: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
    """Rows with other marks than they have.

    >>> rows = pa.record_batch({"a": [1, 2]})
    >>> mark(rows, np.array([0, 8])).schema.names, mark(rows, np.array([8, 8])).schema.names
    (['a', '__thalweg_mark'], ['a'])
    >>> marks_of(mark(rows, np.array([8, 8])))
    8
    """
    rows = unmarked(rows)
    same = constant(marks)
    if same is not None:
        return rows.replace_schema_metadata({MARK: str(same)}) if same else rows
    return rows.append_column(MARK, pa.array(marks, pa.int32()))


def constant(marks: Marks) -> int | None:
    """The mark that all rows have; None if they differ."""
    if isinstance(marks, int):
        return marks
    if not marks.size:
        return 0
    return int(marks[0]) if (marks == marks[0]).all() else None


def marks_of(rows: pa.RecordBatch) -> Marks:
    """The marks of rows."""
    if MARK in rows.schema.names:
        return rows[MARK].to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    return int((rows.schema.metadata or {}).get(MARK.encode(), 0))


def unmarked(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without their marks."""
    if MARK in rows.schema.names:
        rows = rows.drop_columns([MARK])
    return rows.replace_schema_metadata(None) if rows.schema.metadata else rows


def together(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Batches of marked rows as one batch."""
    table = pa.Table.from_batches([unmarked(batch) for batch in batches], schema).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema)
    marks = [(marks_of(batch), batch.num_rows) for batch in batches if batch.num_rows]
    constants = {each if isinstance(each, int) else None for each, _ in marks}
    if len(constants) == 1 and None not in constants:
        return mark(rows, constants.pop() or 0)
    parts = [np.full(size, each) if isinstance(each, int) else each for each, size in marks]
    return mark(rows, np.concatenate([np.empty(0, np.int64), *parts]))


def counted_here(rows: pa.RecordBatch) -> Booleans:
    """Which rows no other cell counts."""
    return np.broadcast_to((np.asarray(marks_of(rows)) & ELSEWHERE) == 0, rows.num_rows)


def all_meet_here(marks: Iterable[int | None]) -> bool:
    """Whether, of rows with these marks only, every combination counts where it meets; None is a mixture of marks."""
    different = set(marks) - {ALWAYS}
    return len(different) <= 1 and all(each is not None and not each & (NOT_NOW | NOT_BEFORE) for each in different)


def meet_here(marks: Sequence[Marks]) -> Booleans:
    """Which combinations count in this cell, from the marks of their rows, input by input.

    >>> old, new = 0, GENERATION  # of the first rows, the new row is here by its own layout only
    >>> meet_here([np.array([old, old, new]), np.array([new | NOT_BEFORE, new, new | NOT_BEFORE])]).tolist()
    [False, True, True]
    """
    several = np.broadcast_arrays(*marks)
    generations = [of_input // GENERATION for of_input in several]
    earliest = reduce(np.minimum, generations)
    missing = [
        of_input & np.where(generation == earliest, NOT_NOW, NOT_BEFORE)
        for of_input, generation in zip(several, generations, strict=True)
    ]
    return np.equal(reduce(np.bitwise_or, missing), 0)
