"""Layouts with heavy values split: where rows go whose key is so frequent that one cell could not bear them all.

A heavy value of a class of equal attributes has an input that is *spread*: its rows with that value go to a place along
the class that a hash of the whole row gives. The other inputs that have the class are *copied* along it, for rows with
that value. Each combination has exactly one row of the spread input, so it still meets in exactly one cell. Where the
value is frequent in a second input, too, the places form a table: the first input is spread over its lines and copied
along each, the second is spread over its columns. A row of either then meet in exactly one place. All other rows go
where the grid says. This module does not decide which values are heavy. (Decisions 0034, 0111)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.mjoin.keys import codes, combined, mixed
from thalweg.mjoin.marks import ELSEWHERE, GENERATION, NOT_BEFORE, NOT_NOW, mark
from thalweg.mjoin.place import by_cell, first_cells
from thalweg.mjoin.shares import Shares
from thalweg.ordering.types import Booleans, Integers

WORD = 64  # bits
TURN = 7  # bits of a row's hash, between the bits that the places along two classes begin with


class HeavyValue(NamedTuple):
    """A value that is split."""

    number: int  # of its class of equal attributes
    hashed: int  # the hash of the value
    spread: str  # the input whose rows with this value are spread
    lines: int = 0  # over which it is spread, if another input is spread as well; 0 for all places
    across: str = ""  # the input that is spread over the columns of each line

    def places(self, name: str, places: int) -> CopiedPlaces:
        """Where rows of an input with this value go, of so many places along the class.

        >>> value = HeavyValue(0, 17, "A", 2, "B")
        >>> [list(value.places(name, 6).copies) for name in "ABC"]
        [[0, 1, 2], [0, 3], [0, 1, 2, 3, 4, 5]]
        """
        columns = places // (self.lines or places)
        if name == self.spread:
            return CopiedPlaces(places // columns, columns, range(columns))
        if name == self.across:
            return CopiedPlaces(columns, 1, range(0, places, columns))
        return CopiedPlaces(1, 1, range(places))


class CopiedPlaces(NamedTuple):
    """The places of a row: the first is its hash modulo `parts`, times `step`; the others are `copies` after it."""

    parts: int
    step: int
    copies: range


@dataclass(frozen=True)
class ActiveLayouts:
    """The layouts by which rows in windows were sent: the newest, and the previous layout while it still has rows.

    >>> layouts = ActiveLayouts(3, (HeavyValue(0, 17, "A"),), before=())
    >>> ActiveLayouts.from_json(layouts.to_json()) == layouts
    True
    """

    generation: int = 0
    heavy: tuple[HeavyValue, ...] = ()
    before: tuple[HeavyValue, ...] | None = None  # the heavy values of the previous layout

    @property
    def mark(self) -> int:
        """The mark of a row that goes to the same cells by all active layouts."""
        return self.generation * GENERATION

    def to_json(self) -> dict[str, Any]:
        """The layouts as plain values for JSON."""
        before = None if self.before is None else [list(value) for value in self.before]
        return {"generation": self.generation, "heavy": [list(value) for value in self.heavy], "before": before}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> ActiveLayouts:
        """The layouts that `to_json` was called on."""
        before = None if saved["before"] is None else tuple(HeavyValue(*value) for value in saved["before"])
        return cls(saved["generation"], tuple(HeavyValue(*value) for value in saved["heavy"]), before)

    def touches(self, hashes: Mapping[int, Integers], rows: int) -> Booleans:
        """Which rows do not simply go where the grid says, from the hashes of their attributes by class."""
        touched = np.zeros(rows, np.bool_)
        for number, hashed in hashes.items():
            touched |= _among(
                hashed, (value for value in (*self.heavy, *(self.before or ())) if value.number == number)
            )
        return touched


PLAIN = ActiveLayouts()  # no value has ever been split


def split_by_cells(
    layouts: ActiveLayouts, shares: Shares, name: str, hashes: Mapping[int, Integers], rows: pa.RecordBatch
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """The rows of an input by the cells that they go to, marked.

    >>> grid = Shares((2,), {"A": frozenset([0]), "B": frozenset([0])})
    >>> rows, hashes = pa.record_batch({"key": [6, 7, 7]}), {0: np.array([6, 7, 7])}
    >>> [(cells, part.to_pydict()) for cells, part in split_by_cells(PLAIN, grid, "B", hashes, rows)]
    [([0], {'key': [6]}), ([1], {'key': [7, 7]})]
    >>> split = ActiveLayouts(0, (HeavyValue(0, 7, "A"),))
    >>> [(cells, part["key"].to_pylist()) for cells, part in split_by_cells(split, grid, "B", hashes, rows)]
    [([0], [7, 7]), ([1], [7, 7]), ([0], [6])]
    """
    touched = layouts.touches(hashes, rows.num_rows)
    if touched.any():
        heavy, others = np.flatnonzero(touched), np.flatnonzero(~touched)
        heavy_hashes = {number: hashed[heavy] for number, hashed in hashes.items()}
        yield from _split_heavy_rows(layouts, shares, name, heavy_hashes, rows.take(pa.array(heavy)))
        hashes = {number: hashed[others] for number, hashed in hashes.items()}
        rows = rows.take(pa.array(others))
    cells = first_cells(hashes, shares, rows.num_rows)
    for first, part in by_cell(rows, cells, shares.cells):
        yield [first + offset for offset in shares.offsets(name)], mark(part, layouts.mark)


def _split_heavy_rows(
    layouts: ActiveLayouts, shares: Shares, name: str, hashes: Mapping[int, Integers], rows: pa.RecordBatch
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """The same as `split_by_cells`, for rows that have a heavy value."""
    scattered = row_hashes(rows)
    first, numbers, cells = _places(layouts.heavy, shares, name, hashes, scattered)
    missing = np.zeros(cells.size, np.int64)
    if layouts.before is not None:
        _, numbers_before, cells_before = _places(layouts.before, shares, name, hashes, scattered)
        now, before = numbers * shares.cells + cells, numbers_before * shares.cells + cells_before
        both = np.union1d(now, before)
        missing = NOT_NOW * ~np.isin(both, now) + NOT_BEFORE * ~np.isin(both, before)
        numbers, cells = np.divmod(both, shares.cells)
    marks = layouts.mark + missing + ELSEWHERE * (cells != first[numbers])
    order = np.argsort(cells, kind="stable")
    for of_cell in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        yield [int(cells[of_cell[0]])], mark(rows.take(pa.array(numbers[of_cell])), marks[of_cell])


def row_hashes(rows: pa.RecordBatch) -> Integers:
    """Hashes of whole rows: a task that is repeated gives the same hashes, in whichever order it gets the rows.

    >>> first, second, third = row_hashes(pa.record_batch({"a": [1, 2, 1], "b": ["x", None, "x"]})).tolist()
    >>> first == third, first == second
    (True, False)
    """
    columns = [np.zeros(rows.num_rows, np.int64)]
    for column in rows.columns:
        if not pa.types.is_nested(column.type):
            values = np.zeros(rows.num_rows, np.int64)
            values[column.is_valid().to_numpy(zero_copy_only=False)] = codes(column.drop_null())
            columns.append(values)
    return mixed(combined(columns).view(np.uint64)).view(np.int64)


def _places(
    heavy: Sequence[HeavyValue], shares: Shares, name: str, hashes: Mapping[int, Integers], scattered: Integers
) -> tuple[Integers, Integers, Integers]:
    """By a single layout: the first cell of each row, and all pairs of rows' numbers and cells."""
    first = np.zeros(scattered.size, np.int64)
    # Rows by the copies that are made of them, class by class.
    groups: dict[tuple[tuple[int, range], ...], Integers] = {(): np.arange(scattered.size)}
    for number, hashed in hashes.items():
        size, stride = shares.sizes[number], shares.strides[number]
        place, copies_of = hashed % size, np.zeros(scattered.size, np.int64)
        kinds = [range(1)]  # the different copies that are made of rows; most rows have none
        for value in (value for value in heavy if value.number == number):
            places, is_value = value.places(name, size), hashed == value.hashed
            place[is_value] = (scattered[is_value] >> TURN * number % WORD) % places.parts * places.step
            if places.copies not in kinds:
                kinds.append(places.copies)
            copies_of[is_value] = kinds.index(places.copies)
        first += place * stride
        groups = {
            (*before, (number, copies)): rows[copies_of[rows] == kind]
            for before, rows in groups.items()
            for kind, copies in enumerate(kinds)
        }
    numbers, cells = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for copied, rows in groups.items():
        offsets = np.array(shares.offsets(name))
        for number, copies in copied:
            offsets = np.add.outer(offsets, np.array(copies) * shares.strides[number]).ravel()
        numbers.append(np.repeat(rows, offsets.size))
        cells.append(np.add.outer(first[rows], offsets).ravel())
    return first, np.concatenate(numbers), np.concatenate(cells)


def _among(hashed: Integers, heavy: Iterable[HeavyValue]) -> Booleans:
    """Which hashes are hashes of some heavy values."""
    known = np.unique(np.array([value.hashed for value in heavy], np.int64))
    if not known.size:
        return np.zeros(hashed.size, np.bool_)
    is_known: Booleans = known[np.searchsorted(known, hashed).clip(max=known.size - 1)] == hashed
    return is_known
