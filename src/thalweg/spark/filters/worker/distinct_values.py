"""The distinct values of columns in a batch, and a bounded memory of a predicate's outcomes for them.

Values are the same if their bytes are: -0.0 and 0.0 are two values, and a predicate may tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thalweg.ordering.types import Integers

MOST_VALUES = 1 << 16  # that are remembered of a predicate, and
MOST_BYTES = 1 << 24  # that they take in Arrow
BITS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
NOT_KNOWN = -1  # the outcome of a value that is not remembered

Outcomes = NDArray[np.int8]


class DistinctValues(NamedTuple):
    """The distinct values of some columns, or combinations of their values, and where they are."""

    codes: Integers  # for each row, the number of its value
    first_rows: Integers  # for each value, the first row that has it

    def __len__(self) -> int:
        return self.first_rows.size


def can_be_found(kind: pa.DataType) -> bool:
    """Whether the distinct values of a type can be found: those of lists, structs and maps cannot.

    >>> can_be_found(pa.string()), can_be_found(pa.list_(pa.int64()))
    (True, False)
    """
    return not (pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind))


def distinct_values(codes: Sequence[Integers]) -> DistinctValues:
    """The distinct values of one column, or combinations of the values of several, by the codes of the values.

    >>> found = distinct_values([codes_of(pa.array(["b", "a", "b", None]))])
    >>> found.codes.tolist(), found.first_rows.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    >>> len(distinct_values([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])]))
    3
    """
    together = codes[0]
    for others in codes[1:]:
        together = codes_of(pa.array(together * (others.max() + 1) + others))
    is_there = np.zeros(together.max() + 1, np.bool_)
    is_there[together] = True
    dense = (np.cumsum(is_there) - 1)[together]
    first_rows = np.empty(np.count_nonzero(is_there), np.int64)
    first_rows[dense[::-1]] = np.arange(dense.size - 1, -1, -1)  # of the rows with a value, the first is written last
    return DistinctValues(dense, first_rows)


def codes_of(column: pa.Array) -> Integers:
    """A number for each value of a column, counted from 0; NULL has a number, too."""
    encoded = _as_bits(column).dictionary_encode(null_encoding="encode")
    codes: Integers = encoded.indices.to_numpy().astype(np.int64)
    return codes


def _as_bits(column: pa.Array) -> pa.Array:
    """A column whose values are equal only if their bytes are."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return column.view(BITS.get(kind.bit_width, kind))
    return column


class RememberedOutcomes:
    """The outcomes of a predicate for values that it was asked for; when there is no room, all are forgotten.

    >>> remembered = RememberedOutcomes()
    >>> keys = remembered.keys([pa.array(["a", "b"])])
    >>> remembered.outcomes(keys).tolist()
    [-1, -1]
    >>> remembered.remember(keys[:1], [1], size=10)
    >>> remembered.outcomes(keys).tolist()
    [1, -1]
    """

    def __init__(self) -> None:
        self._outcomes: dict[Any, int] = {}
        self._bytes = 0

    def keys(self, columns: Sequence[pa.Array]) -> list[Any]:
        """The values of some rows as keys."""
        values = [_as_bits(column).to_pylist() for column in columns]
        return values[0] if len(values) == 1 else list(zip(*values, strict=True))

    def outcomes(self, keys: Sequence[Any]) -> Outcomes:
        """The outcome for each value, `NOT_KNOWN` if it is not remembered."""
        return np.fromiter(map(self._outcomes.get, keys, repeat(NOT_KNOWN)), np.int8, len(keys))

    def remember(self, keys: Sequence[Any], outcomes: Sequence[int], size: int) -> None:
        """Remember the outcomes for values that take so many bytes."""
        if len(self._outcomes) + len(keys) > MOST_VALUES or self._bytes + size > MOST_BYTES:
            self.clear()
        if len(keys) <= MOST_VALUES and size <= MOST_BYTES:
            self._outcomes.update(zip(keys, outcomes, strict=True))
            self._bytes += size

    def clear(self) -> None:
        """Forget all."""
        self._outcomes.clear()
        self._bytes = 0
