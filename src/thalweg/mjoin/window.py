"""The window of an input: its rows in rings of columns, with indexes by key, in segments as they are in the state.

Rows have running numbers, and are at their number modulo the capacity in every ring; a full ring is replaced by a ring
of twice the size. Rows are appended and never moved but for one case: where rows that are still needed keep many rows
that are not, they are appended anew, so that the window takes at most about twice the memory of its rows. Segments are
runs of rows that came together; whole segments leave the state when the last of their rows has expired. Small segments
are merged, eight of a kind at a time, while the result is small beside the window, so that there are never many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.mjoin.index import Index
from thalweg.mjoin.keys import codes, combined, equal
from thalweg.mjoin.marks import Marks, constant, mark, marks_of
from thalweg.mjoin.query import Input, JoinQuery, Key, TimeWindow
from thalweg.ordering.types import Integers

FOREVER = 1 << 62  # later than any time
BEGINNING = -FOREVER  # earlier than any time: the watermark of streams that have none yet
LEAST_CAPACITY = 1024
SHRINK = 16  # times the rows there are: a ring that is this much larger is replaced
MERGED = 8  # segments that become one segment
SHARE = 16  # a merged segment is at most this part of the window, so that it expires not much later than its rows
LARGE_SEGMENT = 32 << 20  # bytes; the store of the state takes no values of any size, so larger segments are not merged
SMALL_CHUNK = 4096  # rows; a chunk that is larger
CHUNKS = 8  # is at most this part of the window, for it goes only with the last of its rows
WASTE = 2.0  # times the rows that are needed, that may be kept at most
HALF_WASTE = 1.5  # and are kept at most after some have been appended anew
SLACK = 1024  # rows that may be kept in vain in any window


@dataclass(frozen=True)
class Chunk:
    """Columns whose values are of any length, of a run of rows."""

    first: int  # the number of its first row
    columns: dict[str, pa.Array]
    rows: int


@dataclass
class Segment:
    """A run of rows."""

    number: int | None  # in the state; None when it is no longer there
    first: int  # the number of its first row
    rows: int
    tier: int  # how often its rows have been merged
    earliest: int  # deadline of its rows
    latest: int
    bytes: int = 0  # in the state
    mark: int | None = 0  # that all its rows have; None if they differ

    @property
    def numbers(self) -> Integers:
        """The numbers of its rows."""
        return np.arange(self.first, self.first + self.rows)


class Window:
    """The window of an input; `is_probed` tells whether rows are looked up in it by their keys, which are not NULL."""

    def __init__(self, query: JoinQuery, name: str, *, is_probed: bool = True) -> None:
        self.query, self.input = query, query.input(name)
        self.start = self.end = 0  # numbers of the rows there are
        self.alive = 0  # of these, rows that have not expired
        self.latest_left = BEGINNING  # the latest deadline of rows that have left
        self.segments: list[Segment] = []
        self.indexes: dict[Key, Index] = {}
        self._chunks: list[Chunk] = []
        self._capacity = LEAST_CAPACITY
        keys = query.key_columns[name].items() if is_probed else ()
        self._keys = {number: columns[0] for number, columns in keys}
        self._fixed = {field.name: dtype for field in self.input.schema if (dtype := _dtype(field.type)) is not None}
        # Times, and keys that are their own codes, are in the rings of their columns.
        sources: list[tuple[str | int, str | None]] = [("times", self.input.time), *self._keys.items()]
        self._column_rings = {ring: (column,) for ring, column in sources if column and _is_code(self.input, column)}
        numbers = (ring for ring in ("times", "deadlines", *self._keys) if ring not in self._column_rings)
        self._rings: dict[Any, NDArray[Any]] = {
            **{ring: np.empty(LEAST_CAPACITY, np.int64) for ring in numbers},
            **{(name,): np.empty(LEAST_CAPACITY, dtype) for name, dtype in self._fixed.items()},
        }

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        rings, indexes = self._rings.values(), self.indexes.values()
        long = sum(column.nbytes for chunk in self._chunks for column in chunk.columns.values())
        return sum(ring.nbytes for ring in rings) + sum(index.bytes for index in indexes) + int(long)

    def divide(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[pa.RecordBatch]]:
        """The rows that can match anything, and the others: a key is NULL, or columns that must be equal are not."""
        others = []
        for columns in self.query.key_columns[self.input.name].values():
            for column in columns:
                if rows[column].null_count:
                    others.append(rows.filter(rows[column].is_null()))
                    rows = rows.filter(rows[column].is_valid())
            for column in columns[1:]:
                same = pa.array(equal(rows[columns[0]], rows[column]))
                others.append(rows.filter(pc.invert(same)))
                rows = rows.filter(same)
        return rows, others

    def times(self, rows: pa.RecordBatch) -> Integers:
        """The times of rows; rows of a table are before all others."""
        if self.input.time is None:
            return np.full(rows.num_rows, BEGINNING)
        return rows[self.input.time].to_numpy()  # type: ignore[no-any-return]

    def deadlines(self, times: Integers) -> Integers:
        """When rows of some times expire, as far as that depends on nothing else."""
        window = self.input.window
        return times + window.microseconds if isinstance(window, TimeWindow) else np.full(times.size, FOREVER)

    def append(self, rows: pa.RecordBatch, number: int | None, deadlines: Integers | None = None) -> Segment:
        """Add rows as a segment with a number."""
        times = self.times(rows)
        if deadlines is None:
            deadlines = self.deadlines(times)
        first, size = self.end, rows.num_rows
        if self.end - self.start + size > self._capacity:
            self._resize(self.end - self.start + size)
        keys = {number: codes(rows[column]) for number, column in self._keys.items()}
        numbers: list[tuple[str | int, Integers]] = [("times", times), ("deadlines", deadlines), *keys.items()]
        for ring, values in numbers:
            if ring not in self._column_rings:
                self._put(ring, values)
        for name in self._fixed:
            self._put_column(name, rows[name])
        marks = marks_of(rows)
        self._put_marks(marks, size)
        self.end += size
        for key, index in self.indexes.items():
            index.insert(first, combined([keys[class_number] for class_number in key]), times, deadlines)
        earliest, latest = int(deadlines.min(initial=FOREVER)), int(deadlines.max(initial=BEGINNING))
        self._append_long(first, rows)
        self.segments.append(Segment(number, first, size, 0, earliest, latest, mark=constant(marks)))
        self.alive += size
        return self.segments[-1]

    def ring(self, name: str | int, rows: Integers) -> Integers:
        """Times, deadlines, marks or the codes of a class, by the numbers of rows."""
        return self._rings[self._column_rings.get(name, name)].take(rows & (self._capacity - 1))

    def index(self, key: Key) -> Index:
        """The index by some classes of equal columns, made when it is first needed."""
        if key not in self.indexes:
            self.indexes[key] = self._indexed(key)
        return self.indexes[key]

    def take(self, rows: Integers, column: str) -> pa.Array:
        """A column's values by the numbers of rows."""
        kind = self.input.schema.field(column).type
        if column not in self._fixed:
            return self._take_long(rows, column)
        places = rows & (self._capacity - 1)
        valid = self._rings.get((column, "valid"))
        bits = None if valid is None else pa.py_buffer(np.packbits(valid.take(places), bitorder="little"))
        return pa.Array.from_buffers(kind, rows.size, [bits, pa.py_buffer(self._rings[(column,)].take(places))])

    def rows(self, numbers: Integers) -> pa.RecordBatch:
        """Whole rows by their numbers, marked."""
        schema = self.input.schema
        rows = pa.record_batch([self.take(numbers, column) for column in schema.names], schema=schema)
        return mark(rows, self.marks(numbers))

    def marks(self, rows: Integers) -> Marks:
        """The marks of rows, by their numbers."""
        return self.ring("marks", rows) if "marks" in self._rings else 0

    def expired(self, after: int, until: int) -> Integers:
        """The numbers of rows whose deadline is later than `after` and not later than `until`."""
        near = [each.numbers for each in self.segments if each.latest > after and each.earliest <= until]
        rows = np.concatenate([np.empty(0, np.int64), *near])
        deadlines = self.ring("deadlines", rows)
        return rows[(deadlines > after) & (deadlines <= until)]

    def expire(self, watermark: int) -> list[int]:
        """Let go of segments whose rows have all expired; returns their numbers in the state."""
        gone = []
        self.alive = 0
        for segment in self.segments:
            if segment.latest <= watermark:
                if segment.number is not None:
                    gone.append(segment.number)
                    self.latest_left = max(self.latest_left, segment.latest)
                segment.number, segment.bytes = None, 0
            elif segment.earliest > watermark:
                self.alive += segment.rows
            else:
                self.alive += int(np.count_nonzero(self.ring("deadlines", segment.numbers) > watermark))
        while self.segments and self.segments[0].number is None:
            self.start += self.segments.pop(0).rows
        self._chunks = [chunk for chunk in self._chunks if chunk.first + chunk.rows > self.start]
        if self._capacity > SHRINK * max(self.end - self.start, LEAST_CAPACITY):
            self._resize(self.end - self.start)
        return gone

    def clear_out(self, watermark: int) -> tuple[list[int], pa.RecordBatch | None]:
        """Take out the oldest segments if most rows are kept in vain: their numbers, and their rows to append anew."""
        if self.end - self.start <= WASTE * self.alive + SLACK:
            return [], None
        gone, kept = [], [np.empty(0, np.int64)]
        alive, start = 0, self.start
        while self.end - start + alive > HALF_WASTE * self.alive:
            segment = self.segments[len(kept) - 1]
            deadlines = self.ring("deadlines", segment.numbers)
            kept.append(segment.numbers[deadlines > watermark])
            self.latest_left = max(self.latest_left, int(deadlines[deadlines <= watermark].max(initial=BEGINNING)))
            alive, start = alive + kept[-1].size, start + segment.rows
            gone += [] if segment.number is None else [segment.number]
        rows = self.rows(np.concatenate(kept))
        del self.segments[: len(kept) - 1]
        self.start, self.alive = start, self.alive - rows.num_rows
        return gone, rows

    def merge(self) -> list[int]:
        """Merge the newest segments into the last if they are many; returns the numbers of the merged segments."""
        gone: list[int] = []
        while True:
            tail = self.segments[-MERGED:]
            numbers = [each.number for each in tail if each.number is not None and each.tier == tail[-1].tier]
            rows = sum(each.rows for each in tail)
            is_large = sum(each.bytes for each in tail) > LARGE_SEGMENT
            if len(numbers) < MERGED or is_large or (self.input.window and rows * SHARE > self.alive):
                return gone
            merged = Segment(
                None,
                tail[0].first,
                rows,
                tail[0].tier + 1,
                min(each.earliest for each in tail),
                max(each.latest for each in tail),
                mark=tail[0].mark if len({each.mark for each in tail}) == 1 else None,
            )
            self.segments[-MERGED:] = [merged]
            merged.number = numbers[-1]
            gone += [number for number in numbers if number not in gone]

    def set_deadlines(self, rows: Integers, deadlines: Integers) -> None:
        """Change when rows expire."""
        places = rows & (self._capacity - 1)
        self._rings["deadlines"][places] = deadlines
        for index in self.indexes.values():
            index.set_deadlines(places, deadlines)
        for segment in self.segments:
            now = self.ring("deadlines", segment.numbers)
            segment.earliest, segment.latest = int(now.min(initial=FOREVER)), int(now.max(initial=BEGINNING))

    def _put(self, name: object, values: NDArray[Any]) -> None:
        ring, place = self._rings[name], self.end & (self._capacity - 1)
        whole = min(values.size, self._capacity - place)
        ring[place : place + whole] = values[:whole]
        ring[: values.size - whole] = values[whole:]

    def _put_column(self, name: str, values: pa.Array) -> None:
        if values.null_count and (name, "valid") not in self._rings:
            self._rings[name, "valid"] = np.ones(self._capacity, np.bool_)
        self._put((name,), _raw(values, self._fixed[name]))
        if (name, "valid") in self._rings:
            self._put((name, "valid"), values.is_valid().to_numpy(zero_copy_only=False))

    def _put_marks(self, marks: Marks, size: int) -> None:
        """Add marks; most windows have no marks but 0, and no ring for them."""
        if "marks" not in self._rings and not (isinstance(marks, int) and marks == 0):
            self._rings["marks"] = np.zeros(self._capacity, np.int32)
        if "marks" in self._rings:
            self._put("marks", np.full(size, marks) if isinstance(marks, int) else marks)

    def _append_long(self, first: int, rows: pa.RecordBatch) -> None:
        """Add a chunk, and join the last two while they are small, so that there are never many."""
        columns = {name: rows[name] for name in self.input.schema.names if name not in self._fixed}
        if not columns:
            return
        self._chunks.append(Chunk(first, columns, rows.num_rows))
        while len(self._chunks) > 1:
            older, last = self._chunks[-2:]
            size = older.rows + last.rows
            if older.rows > last.rows or size > max(SMALL_CHUNK, (self.end - self.start) // CHUNKS):
                return
            both = {name: pa.concat_arrays([older.columns[name], last.columns[name]]) for name in columns}
            self._chunks[-2:] = [Chunk(older.first, both, size)]

    def _take_long(self, rows: Integers, column: str) -> pa.Array:
        """Values of a column that is in no ring, chunk by chunk."""
        chunk_numbers = np.searchsorted([chunk.first for chunk in self._chunks], rows, "right") - 1
        order = np.argsort(chunk_numbers, kind="stable")
        bounds = np.searchsorted(chunk_numbers[order], np.arange(len(self._chunks) + 1))
        parts = [
            chunk.columns[column].take(pa.array(rows[order[begin:end]] - chunk.first))
            for chunk, begin, end in zip(self._chunks, bounds[:-1], bounds[1:], strict=True)
            if begin < end
        ]
        if len(parts) < 2:  # noqa: PLR2004 - nothing to put in order
            return parts[0] if parts else pa.array([], self.input.schema.field(column).type)
        places = np.empty(rows.size, np.int64)
        places[order] = np.arange(rows.size)
        return pa.concat_arrays(parts).take(pa.array(places))

    def _resize(self, rows: int) -> None:
        numbers, mask = np.arange(self.start, self.end), self._capacity - 1
        self._capacity = 1 << (max(rows, LEAST_CAPACITY) - 1).bit_length()
        for name, ring in self._rings.items():
            resized = np.empty(self._capacity, ring.dtype)
            resized[numbers & (self._capacity - 1)] = ring[numbers & mask]
            self._rings[name] = resized
        self.indexes = {key: self._indexed(key) for key in self.indexes}

    def _indexed(self, key: Key) -> Index:
        rows, index = np.arange(self.start, self.end), Index(self._capacity)
        keys = combined([self.ring(number, rows) for number in key])
        index.insert(self.start, keys, self.ring("times", rows), self.ring("deadlines", rows))
        return index


def _is_code(source: Input, column: str) -> bool:
    """Whether a column's values are their own codes."""
    return bool(source.schema.field(column).type == pa.int64())


def _dtype(kind: pa.DataType) -> np.dtype[Any] | None:
    """How NumPy holds values of a type, as mere bytes; None if they are not all of the same length."""
    has_bytes = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    if not has_bytes or kind.bit_width % 8 or not kind.bit_width:
        return None
    width = kind.bit_width // 8
    return np.dtype(f"i{width}" if width in {1, 2, 4, 8} else f"V{width}")


def _raw(values: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The bytes of fixed-size values."""
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros(len(values), dtype)
    return np.frombuffer(data, dtype, offset=values.offset * dtype.itemsize, count=len(values))
