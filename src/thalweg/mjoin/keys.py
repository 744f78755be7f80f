"""Join keys as whole numbers, so that an index of any type of key is an index of int64.

Most types have an exact code: two values are equal if and only if their codes are. NaN equals NaN and -0.0 equals 0.0,
as in Spark's joins. Long types (strings, binaries, long decimals) have a hash of 64 bits instead, which may very rarely
be the hash of another value too: a join by hashes compares the values in the end (`is_exact` tells).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers

WORD = 64  # bits
SHORT_DECIMAL = 18  # digits that fit into 64 bits
Words = NDArray[np.uint64]


def is_exact(kind: pa.DataType) -> bool:
    """Whether a type's codes are equal only for equal values."""
    return not _is_bytes(kind) and not (pa.types.is_decimal(kind) and kind.precision > SHORT_DECIMAL)


def codes(array: pa.Array) -> Integers:
    """A number for each value, the same for equal values. The array has no NULLs.

    >>> codes(pa.array([0.0, -0.0, 1.5])).tolist() == codes(pa.array([-0.0, 0.0, 1.5])).tolist()
    True
    >>> left, right = codes(pa.array(["a", "b"]))
    >>> bool(left == right)
    False
    """
    kind = array.type
    numbers: Integers
    if pa.types.is_floating(kind):
        floats = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan
        numbers = floats.view(np.int64)
    elif pa.types.is_uint64(kind):
        numbers = array.to_numpy().view(np.int64)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        numbers = array.cast(pa.int64()).to_numpy()
    elif pa.types.is_temporal(kind):
        numbers = array.view(pa.int64() if kind.bit_width == WORD else pa.int32()).cast(pa.int64()).to_numpy()
    elif pa.types.is_decimal(kind):
        numbers = _decimal_codes(array)
    elif _is_bytes(kind):
        numbers = _hashes(array)
    else:
        raise ValueError(f"keys of type {kind} cannot be compared; join by numbers, times, strings or binaries")
    return numbers


def mixed(words: Words) -> Words:
    """Numbers whose every bit depends on all bits (the finisher of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def combined(columns: Sequence[Integers]) -> Integers:
    """One number for several codes; a single code stays as it is."""
    if len(columns) == 1:
        return columns[0]
    total = np.zeros(columns[0].size, np.uint64)
    for column in columns:
        total = mixed(total * np.uint64(3) + column.view(np.uint64))
    return total.view(np.int64)


def equal(left: pa.Array, right: pa.Array) -> Booleans:
    """Which values of two arrays without NULLs are equal, as keys are."""
    same: Booleans = (
        codes(left) == codes(right) if is_exact(left.type) else pc.equal(left, right).to_numpy(zero_copy_only=False)
    )
    return same


def _is_bytes(kind: pa.DataType) -> bool:
    tests = ("binary", "string", "large_binary", "large_string", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def _decimal_codes(array: pa.Array) -> Integers:
    words = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, array.type.bit_width // 8)
    words = np.ascontiguousarray(words[array.offset : array.offset + len(array)])
    if array.type.bit_width < WORD:
        return words.view(np.int32)[:, 0].astype(np.int64)
    columns = words.view(np.int64)
    return columns[:, 0].copy() if is_exact(array.type) else combined([column.copy() for column in columns.T])


def _hashes(array: pa.Array) -> Integers:
    """Hashes of strings of bytes: the sum over all bytes of a random number for each byte at its place."""
    array = array.cast(pa.large_binary())
    _, ends, data = array.buffers()
    bounds = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    if not len(array) or data is None:
        return np.zeros(len(array), np.int64)
    lengths = np.diff(bounds)
    text = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64)
    places = np.arange(text.size, dtype=np.uint64) - np.repeat((bounds[:-1] - bounds[0]).view(np.uint64), lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed((places << np.uint64(8)) + text + np.uint64(1)))])
    offsets = bounds - bounds[0]
    return mixed(sums[offsets[1:]] - sums[offsets[:-1]] + lengths.view(np.uint64)).view(np.int64)
