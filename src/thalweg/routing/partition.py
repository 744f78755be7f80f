"""Partitions of attribute values: from an Arrow column of any plain type to a number for each row.

Two views of a value serve all partitions. Its *code* is a 64-bit number, the same in every process and for every width
of an integer; NULL has one of its own, and so has NaN. Its *number* is where it stands on a line, for types that have
an order; NaN for NULL and for all other types. (content-based-routing-2004, sections 3.1 and 4.1)
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.ordering.types import Floats, Integers

NULL = -0x61C8864680B583EB  # the code of NULL
NOT_A_NUMBER = 0x3C6EF372FE94F82B  # and that of NaN
ODD = 0x2545F4914F6CDD1D  # tells the attributes of a pair apart
PARTS = 32  # buckets of a hash table (content-based-routing-2004, section 7.4)


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


def codes(column: Any) -> Integers:  # noqa: ANN401 - an Arrow array, chunked or not, or a NumPy array
    """A stable 64-bit number for each value: the same for equal values, and in practice for no others.

    >>> one, same = codes(pa.array([1, None, 2], pa.int8())), codes(pa.array([1, None, 2], pa.int64()))
    >>> (one == same).all(), one[1] == NULL
    (np.True_, np.True_)
    >>> floats = codes(pa.array([0.0, -0.0, float("nan"), None]))
    >>> floats[0] == floats[1], floats[2] == floats[3]
    (np.True_, np.False_)
    """
    array = plain(column)
    return _codes(array, _integers(array))


def numbers(column: Any) -> Floats:  # noqa: ANN401 - as above
    """Where each value stands on a line; NaN for NULL and for types without an order that ranges could follow.

    >>> numbers(pa.array([3, None])).tolist(), numbers(pa.array(["a"])).tolist()
    ([3.0, nan], [nan])
    """
    array = plain(column)
    return _numbers(array, _integers(array))


def codes_and_numbers(column: Any) -> tuple[Integers, Floats]:  # noqa: ANN401 - as above
    """Both, for little more than one of them takes.

    >>> found, line = codes_and_numbers(pa.array([2.5, None]))
    >>> found[1] == NULL, line.tolist()
    (np.True_, [2.5, nan])
    """
    array = plain(column)
    whole = _integers(array)
    return _codes(array, whole), _numbers(array, whole)


def mixed(numbers: NDArray[Any]) -> Integers:
    """Scatters 64-bit numbers evenly, each to another one (the finalizer of SplitMix64)."""
    scattered = numbers.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    scattered = (scattered ^ (scattered >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    scattered = (scattered ^ (scattered >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (scattered ^ (scattered >> np.uint64(31))).view(np.int64)


def paired(first: Integers, second: Integers) -> Integers:
    """The codes of pairs of values.

    >>> one, other = codes(pa.array([1, 2])), codes(pa.array([2, 1]))
    >>> len(set(paired(one, other).tolist()))
    2
    """
    return mixed(first * np.int64(ODD) + second)


def width(column: Any) -> float:  # noqa: ANN401 - as above
    """Bytes of an average value that has to be looked at.

    >>> width(pa.array(["abcd", "ab"])), width(pa.array(["abcd", "ab"]).dictionary_encode())
    (3.0, 8.0)
    """
    array = plain(column)
    if array.type in {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}:
        return float(pc.mean(pc.binary_length(array)).as_py() or 0.0)
    return 8.0


class HashPartition:
    """Puts each value into one of so many buckets; NULL, NaN and values never seen have theirs too.

    >>> partition = HashPartition(16)
    >>> partition.of(pa.array(["a", "b", None, "a"])).tolist()
    [0, 4, 5, 0]
    """

    def __init__(self, parts: int = PARTS) -> None:
        if parts < 1:
            raise ValueError(f"a partition has at least 1 part, not {parts}")
        self.parts = parts

    def of(self, column: Any) -> Integers:  # noqa: ANN401 - an Arrow or a NumPy array
        """The bucket of each row's value."""
        found: Integers = (codes(column).view(np.uint64) % np.uint64(self.parts)).astype(np.int64)
        return found


class RangePartition:
    """Ranges of equal width between the least and the greatest number so far, which move as those do.

    Part 0 is for what has no place on the line: NULL, NaN, and types without an order. What lies outside of all that
    was seen counts as in the range nearest to it.

    >>> partition = RangePartition(parts=4)
    >>> partition.update(pa.array([0.0, 8.0]))
    >>> partition.of(pa.array([-5.0, 1.0, 5.0, 99.0, None, float("nan")])).tolist()
    [1, 1, 2, 3, 0, 0]
    >>> partition.update(pa.array([32.0]))
    >>> partition.of(pa.array([1.0, 5.0, 30.0])).tolist()
    [1, 1, 3]
    """

    def __init__(self, parts: int = PARTS) -> None:
        if parts < 2:  # noqa: PLR2004 - one for NULL, one for the rest
            raise ValueError(f"a partition into ranges has at least 2 parts, one of them for NULL, not {parts}")
        self.parts = parts
        self.least, self.greatest = np.inf, -np.inf

    def update(self, column: Any) -> None:  # noqa: ANN401 - an Arrow or a NumPy array
        """Take in the least and the greatest number of a column."""
        values = numbers(column)
        values = values[np.isfinite(values)]
        if values.size:
            self.least, self.greatest = min(self.least, values.min()), max(self.greatest, values.max())

    def of(self, column: Any) -> Integers:  # noqa: ANN401 - as above
        """The range of each row's value."""
        values = numbers(column)
        edges: Floats = np.linspace(0.0, 1.0, self.parts)[1:-1]
        if self.least <= self.greatest:  # else nothing was seen
            edges = self.least * (1.0 - edges) + self.greatest * edges
            return np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, values, side="right"))
        return np.where(np.isnan(values), 0, 1)


def plain(column: Any) -> Any:  # noqa: ANN401 - as above
    """One Arrow array of a plain type or a dictionary of one; an error says what to use instead of another."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if reason := refusal(array.type):
        raise TypeError(f"this column cannot be a classifier: {reason}")
    return array


def _codes(array: Any, whole: Integers | None) -> Integers:  # noqa: ANN401 - an Arrow array
    kind = array.type
    if whole is not None:
        found = mixed(whole)
    elif pa.types.is_dictionary(kind):
        known = codes(array.dictionary)
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        found = known[places] if known.size else np.zeros(len(array), np.int64)
    elif pa.types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        found = mixed((values + 0.0).view(np.int64))  # adding makes -0 a 0
        found[np.isnan(values)] = NOT_A_NUMBER
    elif pa.types.is_null(kind):
        found = np.zeros(len(array), np.int64)
    else:
        found = _digests(array)
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = NULL
    return found


def _numbers(array: Any, whole: Integers | None) -> Floats:  # noqa: ANN401 - as above
    kind = array.type
    if whole is not None and not pa.types.is_boolean(kind):
        found = whole.astype(np.float64)
        if array.null_count:
            found[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return found
    if pa.types.is_floating(kind):
        floats: Floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
        return floats
    return numbers(array.cast(pa.float64())) if pa.types.is_decimal(kind) else np.full(len(array), np.nan)


def _integers(array: Any) -> Integers | None:  # noqa: ANN401 - an Arrow array
    """The values of integers, booleans, dates and times, 0 for NULL; None for other types."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64())
    elif not pa.types.is_integer(kind):
        return None
    values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    whole: Integers = values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64)
    return whole


def _digests(array: Any) -> Integers:  # noqa: ANN401 - an Arrow array
    """Codes of strings, bytes and decimals, made once for each that occurs."""
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.cast(pa.string())
    if not pa.types.is_binary(array.type):
        array = array.cast(pa.large_binary())
    encoded = pc.dictionary_encode(array)
    digests = [hashlib.blake2b(value, digest_size=8).digest() for value in encoded.dictionary.to_pylist()]
    known = np.frombuffer(b"".join(digests) or bytes(8), "<i8")
    found: Integers = known[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)].astype(np.int64)
    return found
