"""Attribute values as numbers: from an Arrow column of any plain type to a number for each row.

Every value is seen in two ways. Its *code* is a 64-bit number, the same in every process and for every width of an
integer; NULL has a code of its own. Its *number* is where it stands on a line, for types that have an order; NaN for
NULL and for all other types. (content-based-routing-2004, sections 3.1 and 4.1)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.ordering.types import Floats, Integers
from thalweg.tables import codes as exact
from thalweg.tables.codes import MULTIPLIER, is_bytes, mixed

NULL = -0x61C8864680B583EB  # the code of NULL
ODD = 0x2545F4914F6CDD1D  # tells the attributes of a pair apart
PARTS = 32  # buckets of a hash table (content-based-routing-2004, section 7.4)
FIXED_WIDTH = 8.0  # bytes that are read of a value that is no text

Column = Any  # an Arrow array, chunked or not, or a NumPy array


def refusal(kind: pa.DataType) -> str | None:
    """Why columns of a type cannot be classifiers, or None if they can.

    >>> refusal(pa.string()), refusal(pa.list_(pa.int64()))
    (None, 'it is a list<item: int64>; route by a plain column, such as one of its fields or its length')
    """
    if isinstance(kind, pa.BaseExtensionType):
        return refusal(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return refusal(kind.value_type)
    if pa.types.is_nested(kind):
        return f"it is a {kind}; route by a plain column, such as one of its fields or its length"
    if pa.types.is_interval(kind) or pa.types.is_run_end_encoded(kind):
        return f"it is a {kind}; route by a column of numbers, strings, times or booleans"
    return None


def plain(column: Column) -> Any:  # noqa: ANN401 - an Arrow array
    """A single Arrow array of a plain type or a dictionary of such a type; an error says what to route by instead."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if reason := refusal(array.type):
        raise TypeError(f"this column cannot be a classifier: {reason}")
    return array


def codes(column: Column) -> Integers:
    """A stable 64-bit number for each value: the same for equal values, and in practice different for all others.

    >>> narrow, wide = codes(pa.array([1, None, 2], pa.int8())), codes(pa.array([1, None, 2], pa.int64()))
    >>> (narrow == wide).all(), narrow[1] == NULL
    (np.True_, np.True_)
    >>> floats = codes(pa.array([0.0, -0.0, float("nan"), None]))
    >>> floats[0] == floats[1], floats[2] == floats[3]
    (np.True_, np.False_)
    """
    array = plain(column)
    if is_bytes(array.type):  # columns that are worth routing by have few values, each of which is hashed once
        array = pc.dictionary_encode(array.cast(pa.large_binary()))
        known = scattered(exact.codes(array.dictionary))
        found = known[array.indices.fill_null(0).to_numpy()] if known.size else np.zeros(len(array), np.int64)
    elif pa.types.is_dictionary(array.type):
        known = codes(array.dictionary)
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        found = known[places] if known.size else np.zeros(len(array), np.int64)
    else:
        found = scattered(exact.codes(array))
    if array.null_count:
        found[_nulls(array)] = NULL
    return found


def numbers(column: Column) -> Floats:
    """Where each value stands on a line; NaN for NULL and for types without an order that ranges could follow.

    >>> numbers(pa.array([3, None])).tolist(), numbers(pa.array(["a"])).tolist()
    ([3.0, nan], [nan])
    """
    array = plain(column)
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_floating(array.type)):
        return np.full(len(array), np.nan)
    whole = exact.codes(array)
    found = whole.view(np.float64).copy() if pa.types.is_floating(array.type) else whole.astype(np.float64)
    if array.null_count:
        found[_nulls(array)] = np.nan
    return found


def scattered(codes: Integers) -> Integers:
    """64-bit numbers spread evenly, different for different numbers (SplitMix64)."""
    return mixed(codes.view(np.uint64) + MULTIPLIER).view(np.int64)


def paired(first: Integers, second: Integers) -> Integers:
    """The codes of pairs of values.

    >>> left, right = codes(pa.array([1, 2])), codes(pa.array([2, 1]))
    >>> len(set(paired(left, right).tolist()))
    2
    """
    return scattered(first * np.int64(ODD) + second)


def width(column: Column) -> float:
    """Bytes that are read of an average value.

    >>> width(pa.array(["abcd", "ab"])), width(pa.array(["abcd", "ab"]).dictionary_encode())
    (3.0, 8.0)
    """
    array = plain(column)
    if array.type in {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}:
        return float(pc.mean(pc.binary_length(array)).as_py() or 0.0)
    return FIXED_WIDTH


class HashPartition:
    """Puts each value into one of so many buckets, also NULL, NaN and values never seen.

    >>> partition = HashPartition(16)
    >>> partition.of(pa.array([7, 8, None, 7])).tolist()
    [7, 6, 5, 7]
    """

    def __init__(self, parts: int = PARTS) -> None:
        if parts < 1:
            raise ValueError(f"a partition has at least 1 part, not {parts}")
        self.parts = parts

    def of(self, column: Column) -> Integers:
        """The bucket of each row's value."""
        found: Integers = (codes(column).view(np.uint64) % np.uint64(self.parts)).astype(np.int64)
        return found


def _nulls(array: Any) -> Any:  # noqa: ANN401 - an Arrow array in, a NumPy array of booleans out
    return array.is_null().to_numpy(zero_copy_only=False)
