"""Columns as 64-bit numbers: the only way from Arrow values of any plain type to words that are compared and hashed.

Values of a fixed width become words that are equal exactly where the values are: NaN equals NaN and -0.0 equals 0.0, as
in Spark's joins. Text and bytes become words too if they are short (`byte_words`), or one hash each (`hash_bytes`).
`codes` gives one number for each value of any type, and `is_exact` says for which types equal numbers prove equal
values. The number of a NULL is not defined. Knows Arrow and NumPy alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thalweg.ordering.types import Integers

Words: TypeAlias = NDArray[np.uint64]

WORD_BYTES = 8
WORD_BITS = 64
ALL_BITS = (1 << WORD_BITS) - 1
FEW = 32  # values that are hashed together, however long they are, and not word by word
SHORT_DECIMAL = 18  # digits that fit into 64 bits

# Odd, hence multiplying by it loses nothing; its bits are the golden ratio's (Knuth, TAOCP 3, section 6.4).
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Which bytes of a little-endian word belong to a value that has 0..8 bytes left.
TAIL = np.array([(1 << 8 * count) - 1 for count in range(WORD_BYTES + 1)], np.uint64)


@lru_cache
def is_exact(kind: pa.DataType) -> bool:
    """Whether equal codes of a type prove equal values."""
    return not is_bytes(kind) and not (pa.types.is_decimal(kind) and kind.precision > SHORT_DECIMAL)


@lru_cache
def is_bytes(kind: pa.DataType) -> bool:
    """Whether values of a type are strings of letters or bytes."""
    tests = ("binary", "string", "large_binary", "large_string", "fixed_size_binary", "binary_view", "string_view")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def codes(column: pa.Array) -> Integers:
    """A number for each value, the same for equal values.

    >>> codes(pa.array([0.0, -0.0, 1.5])).tolist() == codes(pa.array([-0.0, 0.0, 1.5])).tolist()
    True
    >>> first, second = codes(pa.array(["a", "b"]))
    >>> bool(first == second)
    False
    """
    kind = column.type
    if is_bytes(kind):
        return hash_bytes(column.cast(pa.large_binary())).view(np.int64)
    words = fixed_words(column)
    if len(words) == 1 or is_exact(kind):
        return words[0].view(np.int64)
    total = np.zeros(len(column), np.uint64)
    for word in words:
        total = mixed(total * np.uint64(3) + word)
    return total.view(np.int64)


def fixed_words(column: pa.Array) -> list[Words]:
    """The words of values of a fixed width, one or more for each value: a list of columns of words.

    >>> [words.tolist() for words in fixed_words(pa.array([True, False]))]
    [[1, 0]]
    """
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = _buffer(column.cast(pa.float64()), np.float64) + 0.0  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan  # the many bit patterns of NaN become the same
        return [numbers.view(np.uint64)]
    if pa.types.is_decimal(kind):
        if kind.bit_width < WORD_BITS:
            return [_buffer(column, np.int32).astype(np.int64).view(np.uint64)]
        width = kind.bit_width // WORD_BITS
        return list(_buffer(column, np.uint64, width).reshape(len(column), width).T)
    if pa.types.is_null(kind):
        return [np.zeros(len(column), np.uint64)]
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == WORD_BITS else pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise ValueError(f"keys of type {kind} cannot be compared; join by numbers, times, strings or binaries")
    return [_buffer(column if column.type == pa.uint64() else column.cast(pa.int64()), np.uint64)]


def byte_words(column: pa.LargeBinaryArray, longest: int) -> list[Words]:
    """The length of every value, and its first bytes, up to the length `longest`, with zeros after its end."""
    data, offsets = bytes_and_offsets(column)
    starts, lengths = offsets[:-1], np.diff(offsets)
    words, shortest, end = [lengths.view(np.uint64)], lengths.min(initial=longest), data.size - WORD_BYTES
    for at in range(0, longest, WORD_BYTES):
        word = words_at(data, np.minimum(starts + at, end))
        if at + WORD_BYTES > shortest:
            word &= TAIL.take(np.clip(lengths - at, 0, WORD_BYTES))
        words.append(word)
    return words


def hash_bytes(column: pa.LargeBinaryArray, seed: int = 0, longest: int | None = None) -> Words:
    """A hash of every value's length and bytes, up to the length `longest`; another seed gives other hashes.

    The sum of a random number for each word at its place. Words are added place by place for all values at once, and,
    where few values are that long, all the rest at once: a very long value does not take a step for each of its words.

    >>> same, other, same_again = hash_bytes(pa.array([b"key", b"yek", b"key"], pa.large_binary()))
    >>> bool(same == same_again), bool(same == other)
    (True, False)
    """
    data, offsets = bytes_and_offsets(column)
    starts, lengths = offsets[:-1], np.diff(offsets)
    sums, at, end = lengths.astype(np.uint64), 0, data.size - WORD_BYTES
    hashed = lengths if longest is None else np.minimum(lengths, longest)
    shortest, rows = int(hashed.min()) if hashed.size else 0, None
    while rows is None or rows.size > FEW:  # None: all values have a word here
        if at >= shortest:
            rows = np.flatnonzero(hashed > at)
            if rows.size <= FEW:
                break
        own_starts, own_lengths = (starts, lengths) if rows is None else (starts[rows], lengths[rows])
        words = words_at(data, np.minimum(own_starts + at, end))
        if at + WORD_BYTES > shortest:
            words &= TAIL.take(np.minimum(own_lengths - at, WORD_BYTES))
        words = mixed(words + np.uint64((at + seed + 1) * int(MULTIPLIER) & ALL_BITS))
        if rows is None:
            sums += words
        else:
            sums[rows] += words
        at += WORD_BYTES
    if rows.size:
        sums[rows] += _hash_rest(data, starts[rows], lengths[rows], hashed[rows], at, seed)
    return mixed(sums)


def _hash_rest(
    data: NDArray[np.uint8], starts: Integers, lengths: Integers, hashed: Integers, start: int, seed: int
) -> Words:
    """The sum of the random numbers of all words of some values from a place on."""
    counts = (hashed - start + (WORD_BYTES - 1)) // WORD_BYTES
    ends = np.cumsum(counts)
    first = ends - counts
    at = start + (np.arange(ends[-1]) - np.repeat(first, counts)) * WORD_BYTES
    words = words_at(data, np.repeat(starts, counts) + at)
    words &= TAIL.take(np.minimum(np.repeat(lengths, counts) - at, WORD_BYTES))
    words += (at.view(np.uint64) + np.uint64(seed + 1)) * MULTIPLIER
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(words), dtype=np.uint64)])
    total: Words = sums[ends] - sums[first]
    return total


def mixed(words: Words) -> Words:
    """Words whose every bit depends on all bits, different for different words (the finalizer of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


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


def _buffer(column: pa.Array, kind: Any, width: int = 1) -> NDArray[Any]:  # noqa: ANN401 - a NumPy type
    """The values of an Arrow array as a NumPy array of so many numbers each, without a copy."""
    if not len(column):
        return np.zeros(0, kind)
    size = np.dtype(kind).itemsize
    return np.frombuffer(column.buffers()[1], kind, len(column) * width, size * width * column.offset)
