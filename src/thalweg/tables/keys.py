"""The keys of a stored table, ready to be looked up batch by batch by `tw.lookup`.

`pyarrow.compute.is_in` hashes all keys anew at each call, which does not pay for a small batch against many keys. Here
every key is hashed once, to 64 bits; the hashes are sorted, and a table of their leading bits says where to search. A
batch is hashed, searched and compared with the keys that were found, so that the answer is exact, all with whole-array
operations. Knows Arrow and NumPy, not Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.ordering.types import Booleans, Integers
from thalweg.sealed import dump_table, load_table, odd, seal, unseal
from thalweg.tables.codes import MULTIPLIER, Words, byte_words, fixed_words, hash_bytes
from thalweg.tables.comparable import WIDE_DECIMAL, as_type, common_type, flat, spark_name
from thalweg.tables.sorted_words import SortedWords

KIND, VERSION = "key table", 2
# Strings are compared as words if the longest key is no longer than this: nine words a key, its length included.
SHORT_BYTES = 64
HALF = np.uint64(32)


class KeyTableError(ValueError):
    """A stored table that cannot be looked up in: NULL, duplicate or malformed keys."""


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
        _refuse_nulls(table)
        try:
            columns = [as_type(column, kind) for column, kind in zip(table.columns, self._types, strict=True)]
        except pa.ArrowInvalid as error:  # times finer than Spark's microseconds
            raise KeyTableError(f"a key of the lookup table is out of Spark's range: {error}") from None
        self._longest = [_longest(column) if column.type == pa.large_binary() else 0 for column in columns]
        parts = self._parts_of(columns)
        self._seed = 0
        hashes, order = self._hash_apart(table, parts)
        self._hashes = SortedWords(hashes)
        self._parts = [_take(part, order) for part in parts]
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def contains(self, columns: Sequence[pa.Array]) -> pa.BooleanArray:
        """Whether each row's key is in the table; NULL where a part of the key is NULL."""
        columns = [flat(column) for column in columns]
        self.check([column.type for column in columns])
        if any(map(_needs_wide_decimals, columns, self._types)):
            return self._wide.contains(columns)
        found = self.holds(columns)
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
                    f"write col(...).cast('{spark_name(own)}'), or give the table a key of type {other}"
                )

    def holds(self, columns: Sequence[pa.Array]) -> Booleans:
        """As `contains`, for columns without NULL: takes text as bytes too, and checks nothing."""
        found: Booleans = self._search(self._parts_of(columns)) >= 0
        return found

    def to_bytes(self) -> bytes:
        """The keys as bytes, for `from_bytes`."""
        return seal(KIND, VERSION, dump_table(self.table.combine_chunks().replace_schema_metadata(None)))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The keys that `to_bytes` wrote, or a `SavedStateError`."""
        parts = unseal(KIND, VERSION, data)
        if len(parts) != 1:
            raise odd(KIND, f"{len(parts)} parts")
        try:
            return cls(load_table(KIND, parts[0]))
        except KeyTableError as error:
            raise odd(KIND, str(error)) from None

    def _parts_of(self, columns: Sequence[pa.Array]) -> list[Words | pa.LargeBinaryArray]:
        """The columns as they are hashed and compared: 64-bit words, and bytes where keys are long."""
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"the columns of one key have one length, not {sorted(lengths)}")
        described = zip(columns, self._types, self._longest, strict=True)
        return [part for column, kind, longest in described for part in _parts(as_type(column, kind), longest)]

    def _search(self, parts: Sequence[Words | pa.LargeBinaryArray]) -> Integers:
        """The place of each row's key in the order of the hashes, -1 where it is not in the table."""
        if not len(self):
            return np.full(len(parts[0]), -1)
        hashes = self._hash(parts)
        places = self._hashes.rank(hashes) - 1
        # A hash less than all has place -1, that of the last key, which is a different key.
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
        """The same keys, for columns with decimals of another scale: only queries that meet them pay for it."""
        columns = [
            as_type(flat(column), WIDE_DECIMAL) if pa.types.is_decimal(kind) else column
            for column, kind in zip(self.table.columns, self._types, strict=True)
        ]
        return KeySet(pa.table(columns, self.table.column_names))

    def _hash(self, parts: Sequence[Words | pa.LargeBinaryArray]) -> Words:
        hashes = np.full(len(parts[0]), self._seed, np.uint64)
        for part in parts:
            hashes = mix(
                hashes, part if isinstance(part, np.ndarray) else hash_bytes(part, self._seed, max(self._longest))
            )
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
                raise _duplicates(table, int(same.sum()), int(order[twins[same][0]]))
            self._seed += 1


def _key_type(field: pa.Field) -> pa.DataType:
    """The type as which a key column is compared, or a `KeyTableError` that says what to write instead."""
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


def _refuse_nulls(table: pa.Table) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            raise KeyTableError(
                f"{column.null_count} of the {len(column)} keys of the lookup table are NULL in column {name!r}, "
                f"which no row can match: write table.dropna(subset={table.column_names})"
            )


def _duplicates(table: pa.Table, count: int, row: int) -> KeyTableError:
    """The error for keys that occur more than once."""
    return KeyTableError(
        f"{count} of the {table.num_rows} keys of the lookup table are there more than once, such as "
        f"{table.slice(row, 1).to_pylist()[0]}: write table.dropDuplicates({table.column_names})"
    )


def _needs_wide_decimals(column: pa.Array, kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and common_type(column.type) not in {kind, None} and kind != WIDE_DECIMAL)


def _parts(column: pa.Array, longest: int) -> Sequence[Words | pa.LargeBinaryArray]:
    """A column of a common type as 64-bit words, equal where the values are; bytes stay Arrow's where keys are long."""
    if column.type != pa.large_binary():
        return fixed_words(column)
    return [column] if longest > SHORT_BYTES else byte_words(column, longest)


def mix(hashes: Words, words: Words) -> Words:
    """Add a word to each hash. For any given hash, different words give different hashes."""
    mixed = (hashes ^ words) * MULTIPLIER
    mixed ^= mixed >> HALF
    return mixed


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
    for left_part, right_part in zip(left, right, strict=True):
        mine, theirs = _take(left_part, left_rows), _take(right_part, right_rows)
        same &= mine == theirs if isinstance(mine, np.ndarray) else _booleans(pc.equal(mine, theirs).fill_null(False))  # noqa: FBT003  # Arrow's signature
    return same


def _booleans(column: pa.BooleanArray) -> Booleans:
    booleans: Booleans = column.to_numpy(zero_copy_only=False)
    return booleans
