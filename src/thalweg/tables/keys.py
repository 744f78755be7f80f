"""The keys of a stored table, ready to be looked up batch by batch: what `tw.lookup` probes.

`pyarrow.compute.is_in` hashes all keys anew at each call, which a small batch against many keys cannot pay. Here every
key is hashed once, to 64 bits; the hashes are sorted, and a table of their leading bits says where to look. A batch is
hashed, searched and compared with the keys that were found, so that the answer is exact, all with whole-array
operations. Knows Arrow and NumPy, not Spark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers

FORMAT_VERSION = 1
DIGEST_BYTES = 32
WORD_BYTES = 8
WORD_BITS = 64
# Strings are compared as words if the longest key is no longer than this: nine words a key, its length included.
SHORT_BYTES = 64
# The table of leading bits is at most 128 MB, enough for some eight million keys; more take a step or two longer.
MOST_LEADING_BITS = 24

# Odd, hence multiplying by it loses nothing; its bits are those of the golden ratio (Knuth, TAOCP 3, section 6.4).
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)
# What of a little-endian word belongs to a string that has 0..8 bytes left.
TAIL = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], np.uint64)

# Spark's decimals have up to 38 digits before and after the point: this holds every one of them.
WIDE_DECIMAL = pa.decimal256(76, 38)
SPARK_DIGITS = 38

Words: TypeAlias = NDArray[np.uint64]

# The types that are compared with one another, as what, and Spark's name for that.
FAMILIES: tuple[tuple[Callable[[Any], bool], Any, str], ...] = (
    (lambda kind: pa.types.is_integer(kind) and kind != pa.uint64(), pa.int64(), "bigint"),
    (pa.types.is_floating, pa.float64(), "double"),
    (lambda kind: kind in {pa.string(), pa.large_string(), pa.string_view()}, pa.large_string(), "string"),
    (lambda kind: kind in {pa.binary(), pa.large_binary(), pa.binary_view()}, pa.large_binary(), "binary"),
    (pa.types.is_fixed_size_binary, pa.large_binary(), "binary"),
    (pa.types.is_boolean, pa.bool_(), "boolean"),
    (pa.types.is_date, pa.date32(), "date"),
    (pa.types.is_time, pa.time64("ns"), "time"),
    (pa.types.is_duration, pa.duration("us"), "interval day to second"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, pa.timestamp("us"), "timestamp_ntz"),
    (pa.types.is_timestamp, pa.timestamp("us", "UTC"), "timestamp"),
)


class KeyTableError(ValueError):
    """A stored table that cannot be looked up in: NULL, duplicate or malformed keys, or a damaged copy."""


class KeySet:
    """The keys of a stored table.

    Parameters
    ----------
    table
        The key columns and nothing else, without NULL and without duplicates.

    Examples
    --------
    >>> keys = KeySet(pa.table({"host": ["a", "b", "b"], "port": [80, 80, 443]}))
    >>> keys.contains([pa.array(["b", "b", None, "a"]), pa.array([443, 22, 80, 80])]).to_pylist()
    [True, False, None, True]
    """

    def __init__(self, table: pa.Table) -> None:
        if not table.num_columns:
            raise KeyTableError("a lookup needs at least one key column: write on='column' or on=['first', 'second']")
        self._types = [_key_type(field) for field in table.schema]
        self._refuse_nulls(table)
        try:
            columns = [_cast(column, kind) for column, kind in zip(table.columns, self._types, strict=True)]
        except pa.ArrowInvalid as error:  # times finer than Spark's microseconds
            raise KeyTableError(f"a key of the lookup table is out of Spark's range: {error}") from None
        self._longest = [_longest(column) if column.type == pa.large_binary() else 0 for column in columns]
        parts = self._prepare(columns)
        self._seed = 0
        hashes, self._order = self._hash_apart(table, parts)
        self._hashes = SortedWords(hashes)
        self._parts = [_take(part, self._order) for part in parts]
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def contains(self, columns: Sequence[pa.Array]) -> pa.BooleanArray:
        """Whether each row's key is in the table; NULL where a part of the key is NULL."""
        columns = [flat(column) for column in columns]
        self.check([column.type for column in columns])
        if any(map(self._needs_wide_decimals, columns, self._types)):
            return self._wide.contains(columns)
        found = self._search(self._prepare(columns)) >= 0
        nulls = [column.is_null() for column in columns if column.null_count]
        return pa.array(found, mask=np.logical_or.reduce([_booleans(null) for null in nulls]) if nulls else None)

    def check(self, types: Sequence[pa.DataType]) -> None:
        """Raise a TypeError unless columns of these types can be looked up; needs no data.

        >>> KeySet(pa.table({"id": [1, 2]})).check([pa.string()])
        Traceback (most recent call last):
        TypeError: key 'id' of the lookup table is int64, but the column to look up is string: write
        col(...).cast('bigint'), or give the table a key of type string
        """
        if len(types) != len(self._types):
            raise TypeError(
                f"a key of this lookup has {len(self._types)} columns, not {len(types)}: "
                f"{', '.join(self.table.column_names)}"
            )
        for field, own, other in zip(self.table.schema, self._types, types, strict=True):
            common = common_type(other)
            both_decimal = pa.types.is_decimal(own) and common is not None and pa.types.is_decimal(common)
            if not (common == own or both_decimal or pa.types.is_null(other)):
                raise TypeError(
                    f"key {field.name!r} of the lookup table is {field.type}, but the column to look up is {other}: "
                    f"write col(...).cast('{_spark_name(own)}'), or give the table a key of type {other}"
                )

    def search(self, columns: Sequence[pa.Array]) -> Integers:
        """The row of the table where each row's key is, -1 where it is not; any where it is NULL.

        Takes text as bytes too, and checks nothing.
        """
        places = self._search(self._prepare(columns))
        return np.where(places < 0, -1, self._order.take(places, mode="wrap")) if len(self) else places

    def to_bytes(self) -> bytes:
        """The keys as an Arrow IPC stream, followed by its SHA-256 digest (which Arrow readers ignore)."""
        return pack(self.table, "keys")

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The keys that `to_bytes` wrote, checked before anything is built."""
        return cls(unpack(data, "keys")[0])

    def _prepare(self, columns: Sequence[pa.Array]) -> list[Words | pa.LargeBinaryArray]:
        """The columns as what is hashed and compared: 64-bit words, and bytes where keys are long."""
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"the columns of one key have one length, not {sorted(lengths)}")
        described = zip(columns, self._types, self._longest, strict=True)
        return [part for column, kind, longest in described for part in _parts(_cast(column, kind), longest)]

    def _search(self, parts: Sequence[Words | pa.LargeBinaryArray]) -> Integers:
        """As `search`, in the order of the hashes."""
        if not len(self):
            return np.full(len(parts[0]), -1)
        hashes = self._hash(parts)
        places = self._hashes.rank(hashes) - 1
        # A hash less than all has place -1, that of the last key, which is another one.
        if all(isinstance(part, np.ndarray) for part in parts):
            same = np.logical_and.reduce(
                [own.take(places) == part for own, part in zip(self._parts, parts, strict=True)]
            )
        else:
            same = self._hashes.values.take(places) == hashes
            hits = np.flatnonzero(same)
            same[hits] = _equal(self._parts, places[hits], parts, hits)
        places[~same] = -1
        return places

    @cached_property
    def _wide(self) -> KeySet:
        """The same keys, for columns with decimals of another scale: the few that meet them pay for it."""
        columns = [
            _cast(flat(column), WIDE_DECIMAL) if pa.types.is_decimal(kind) else column
            for column, kind in zip(self.table.columns, self._types, strict=True)
        ]
        return KeySet(pa.table(columns, self.table.column_names))

    @staticmethod
    def _needs_wide_decimals(column: pa.Array, kind: pa.DataType) -> bool:
        return bool(pa.types.is_decimal(kind) and common_type(column.type) not in {kind, None} and kind != WIDE_DECIMAL)

    def _hash(self, parts: Sequence[Words | pa.LargeBinaryArray]) -> Words:
        hashes = np.full(len(parts[0]), self._seed, np.uint64)
        for part in parts:
            hashes = mix(hashes, part) if isinstance(part, np.ndarray) else mix_bytes(hashes, part, max(self._longest))
        return hashes

    def _hash_apart(self, table: pa.Table, parts: Sequence[Words | pa.LargeBinaryArray]) -> tuple[Words, Integers]:
        """Sorted hashes of the keys and the order that sorts them, with a seed that gives each key its own hash."""
        while True:
            hashes = self._hash(parts)
            order = np.argsort(hashes)
            hashes = hashes[order]
            twins = np.flatnonzero(hashes[1:] == hashes[:-1])
            if not twins.size:
                return hashes, order
            same = _equal(parts, order[twins], parts, order[twins + 1])
            if same.any():
                self._refuse_duplicates(table, int(same.sum()), int(order[twins[same][0]]))
            self._seed += 1

    @staticmethod
    def _refuse_nulls(table: pa.Table) -> None:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count:
                raise KeyTableError(
                    f"{column.null_count} of the {len(column)} keys of the lookup table are NULL in column {name!r}, "
                    f"which no row can match: write table.dropna(subset={table.column_names})"
                )

    @staticmethod
    def _refuse_duplicates(table: pa.Table, count: int, row: int) -> None:
        raise KeyTableError(
            f"{count} of the {table.num_rows} keys of the lookup table are there more than once, such as "
            f"{table.slice(row, 1).to_pylist()[0]}: write table.dropDuplicates({table.column_names})"
        )


class SortedWords:
    """Sorted 64-bit words, searched from a table of their leading bits by halving what is left.

    Faster than `numpy.searchsorted`, which starts from all words and, word by word, waits for memory at each step.

    >>> SortedWords(np.array([3, 5, 5, 9], np.uint64)).rank(np.array([0, 5, 8, 10], np.uint64)).tolist()
    [0, 3, 3, 4]
    """

    def __init__(self, values: Words) -> None:
        bits = min(values.size.bit_length() + 1, MOST_LEADING_BITS)
        self._shift = np.uint64(WORD_BITS - bits)
        counts = np.bincount((values >> self._shift).view(np.int64), minlength=1 << bits)
        self._first = np.cumsum(counts) - counts
        steps = int(counts.max()).bit_length()
        self._strides = [1 << step for step in reversed(range(steps))]
        # A stride may look past the end, and must find nothing there.
        self._padded = np.append(values, np.full(1 << steps, np.iinfo(np.uint64).max, np.uint64))
        self.values = self._padded[: values.size]

    def rank(self, words: Words) -> Integers:
        """How many of the values are at most as great as each word."""
        ranks: Integers = self._first.take((words >> self._shift).view(np.int64))
        for stride in self._strides:
            ranks += (self._padded.take(ranks + (stride - 1)) <= words) * stride
        return np.minimum(ranks, self.values.size)


def pack(table: pa.Table, what: str, **about: object) -> bytes:
    """A table and a few facts about it as an Arrow IPC stream, followed by its SHA-256 digest.

    >>> table, about = unpack(pack(pa.table({"a": [1]}), "keys", color="red"), "keys")
    >>> table.to_pydict(), about["color"]
    ({'a': [1]}, 'red')
    """
    metadata = {f"thalweg.{what}": json.dumps({"version": FORMAT_VERSION, **about})}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table.replace_schema_metadata(metadata))
    body: bytes = sink.getvalue().to_pybytes()
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes, what: str) -> tuple[pa.Table, dict[str, Any]]:
    """What `pack` wrote, or a `KeyTableError` that says why not."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise KeyTableError(f"the saved {what} are damaged or cut short; save them again")
    with pa.ipc.open_stream(body) as reader:
        about = json.loads((reader.schema.metadata or {}).get(f"thalweg.{what}".encode(), b"{}"))
        if about.get("version") != FORMAT_VERSION:
            raise KeyTableError(
                f"the saved {what} have format version {about.get('version')}, this Thalweg reads {FORMAT_VERSION}; "
                f"upgrade Thalweg, or save them again"
            )
        return reader.read_all().replace_schema_metadata(None), about


@lru_cache
def common_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as which values of this type are compared, None where they cannot be.

    >>> common_type(pa.int16()), common_type(pa.dictionary(pa.int8(), pa.string())), common_type(pa.list_(pa.int8()))
    (DataType(int64), DataType(large_string), None)
    """
    if pa.types.is_dictionary(kind):
        return common_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return pa.decimal128(SPARK_DIGITS, kind.scale) if kind.precision <= SPARK_DIGITS else WIDE_DECIMAL
    return next((common for belongs, common, _ in FAMILIES if belongs(kind)), None)


def bytes_and_offsets(column: pa.LargeBinaryArray) -> tuple[NDArray[np.uint8], Integers]:
    """A copy of a column's bytes, followed by at least eight zeros, and where in it each value starts and ends."""
    if not len(column):  # may have no buffers at all
        return np.zeros(WORD_BYTES, np.uint8), np.zeros(1, np.int64)
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(column) + 1, WORD_BYTES * column.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    copy = np.zeros(last - first + WORD_BYTES, np.uint8)
    if last > first:
        copy[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    return copy, offsets - first


def words_at(data: NDArray[np.uint8], places: Integers) -> Words:
    """The eight bytes from each place on, as little-endian words."""
    every: Words = np.ndarray(data.size - WORD_BYTES + 1, "<u8", data, strides=(1,))
    return every[places]


def _key_type(field: pa.Field) -> pa.DataType:
    common = common_type(field.type)
    if common is None:
        remedy = f"write table.withColumn('{field.name}', col('{field.name}').cast('string'))"
        if pa.types.is_nested(field.type):
            remedy = f"give its parts as columns of their own, such as col('{field.name}.part')"
        elif pa.types.is_null(field.type):
            remedy = "give the key a type, such as pa.int64()"
        raise KeyTableError(
            f"key {field.name!r} of the lookup table is {field.type}, which cannot be looked up: {remedy}"
        )
    return common


def _spark_name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({SPARK_DIGITS},{kind.scale})"
    return next(name for _, common, name in FAMILIES if common == kind)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, without a dictionary."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _cast(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column as the type it is compared as, text as its bytes; an error where values would change."""
    column = flat(column)
    kind = pa.large_binary() if kind == pa.large_string() else kind
    return column if column.type == kind else column.cast(kind)


def _parts(column: pa.Array, longest: int) -> Sequence[Words | pa.LargeBinaryArray]:
    """A column of a common type as 64-bit words, equal where the values are; bytes stay Arrow's where keys are long."""
    kind, size = column.type, len(column)
    if kind == pa.large_binary():
        return [column] if longest > SHORT_BYTES else _words(column, longest)
    if pa.types.is_boolean(kind) or pa.types.is_date(kind):
        column = column.cast(pa.int32()).cast(pa.int64())
    width = max(kind.bit_width // WORD_BITS, 1)
    data = column.buffers()[1]
    words = np.frombuffer(data, np.uint64, size * width, WORD_BYTES * width * column.offset) if size else np.zeros(0)
    if kind == pa.float64():
        numbers = words.view(np.float64) + 0.0  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan  # one NaN of many
        words = numbers
    return list(words.view(np.uint64).reshape(size, width).T)


def _words(column: pa.LargeBinaryArray, longest: int) -> list[Words]:
    """The length of every string, and its bytes as far as keys go, zeros after its end."""
    data, offsets = bytes_and_offsets(column)
    starts, lengths = offsets[:-1], np.diff(offsets)
    words, shortest, end = [lengths.view(np.uint64)], lengths.min(initial=longest), data.size - WORD_BYTES
    for at in range(0, longest, WORD_BYTES):
        word = words_at(data, np.minimum(starts + at, end))
        if at + WORD_BYTES > shortest:
            word &= TAIL.take(np.clip(lengths - at, 0, WORD_BYTES))
        words.append(word)
    return words


def mix(hashes: Words, words: Words) -> Words:
    """Hash one word more. For one given hash, different words give different hashes."""
    mixed = (hashes ^ words) * MULTIPLIER
    mixed ^= mixed >> HALF
    return mixed


def mix_bytes(hashes: Words, column: pa.LargeBinaryArray, longest: int) -> Words:
    """Hash the length of every string, and its bytes as far as keys go: what `_words` has, without keeping it."""
    data, offsets = bytes_and_offsets(column)
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = mix(hashes, lengths.view(np.uint64))
    rows = np.arange(lengths.size)
    for at in range(0, longest, WORD_BYTES):
        left = lengths > at
        rows, starts, lengths = rows[left], starts[left], lengths[left]
        if not rows.size:
            break
        words = words_at(data, starts + at) & TAIL.take(np.minimum(lengths - at, WORD_BYTES))
        hashes[rows] = mix(hashes[rows], words)
    return hashes


def _longest(column: pa.LargeBinaryArray) -> int:
    return pc.max(pc.binary_length(column)).as_py() or 0


def _take(part: Words | pa.LargeBinaryArray, rows: Integers) -> Words | pa.LargeBinaryArray:
    return part.take(rows if isinstance(part, np.ndarray) else pa.array(rows))


def _equal(
    left: Sequence[Words | pa.LargeBinaryArray],
    left_rows: Integers,
    right: Sequence[Words | pa.LargeBinaryArray],
    right_rows: Integers,
) -> Booleans:
    """Whether the keys at these rows of both sides are equal, pair by pair."""
    same = np.ones(left_rows.size, np.bool_)
    for mine, theirs in zip(left, right, strict=True):
        one, other = _take(mine, left_rows), _take(theirs, right_rows)
        same &= one == other if isinstance(one, np.ndarray) else _booleans(pc.equal(one, other).fill_null(False))  # noqa: FBT003  # Arrow's signature
    return same


def _booleans(column: pa.BooleanArray) -> Booleans:
    booleans: Booleans = column.to_numpy(zero_copy_only=False)
    return booleans
