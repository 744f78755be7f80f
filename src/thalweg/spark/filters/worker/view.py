"""Some rows of an Arrow batch, cut out only for the columns that a predicate looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.filters.worker.distinct_values import codes_of

LEAST_SHARE = 0.25  # of a batch's rows for which the values of all its rows are found


class View:
    """Some rows of a batch's columns; columns are cut to the rows only when a predicate looks at them."""

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: slice | Integers | None = None,
        numbers: dict[int, NDArray[Any] | None] | None = None,
        codes: dict[int, Integers] | None = None,
    ) -> None:
        self._columns = columns
        self._rows = slice(0, len(columns[0])) if rows is None else rows
        self._numbers = {} if numbers is None else numbers  # whole columns, for all views of the batch
        self._codes = {} if codes is None else codes  # the numbers of the values of whole columns, likewise

    def __len__(self) -> int:
        return self._rows.stop - self._rows.start if isinstance(self._rows, slice) else self._rows.size

    def __getitem__(self, which: slice | Integers) -> View:
        rows = self._rows
        if not isinstance(rows, slice):
            return View(self._columns, rows[which], self._numbers, self._codes)
        if isinstance(which, slice):
            start, stop, _ = which.indices(len(self))
            return View(self._columns, slice(rows.start + start, rows.start + stop), self._numbers, self._codes)
        return View(self._columns, which + rows.start if rows.start else which, self._numbers, self._codes)

    @property
    def batch(self) -> Sequence[pa.Array]:
        """The columns of the whole batch; all views of a batch have the very same."""
        return self._columns

    @property
    def positions(self) -> Integers:
        """Where the rows are in the batch."""
        return np.arange(self._rows.start, self._rows.stop) if isinstance(self._rows, slice) else self._rows

    def column(self, number: int) -> pa.Array:
        """One column, these rows."""
        whole = self._columns[number]
        if isinstance(self._rows, slice):
            return whole.slice(self._rows.start, len(self))
        numbers = self._plain(number)
        if numbers is None:
            return whole.take(pa.array(self._rows))
        return pa.array(numbers[self._rows], whole.type)  # several times faster than Arrow's own

    def kind(self, number: int) -> pa.DataType:
        """The type of one column."""
        return self._columns[number].type

    def has_null(self, number: int) -> bool:
        """Whether a column has a NULL anywhere in the batch."""
        return bool(self._columns[number].null_count)

    def numbers(self, number: int) -> NDArray[Any]:
        """One column as NumPy has it, these rows; NULLs as Arrow turns them."""
        numbers = self._plain(number)
        return self.column(number).to_numpy(zero_copy_only=False) if numbers is None else numbers[self._rows]

    def codes(self, number: int) -> Integers:
        """A number for each value of a column, the same for equal values, counted from 0 with gaps.

        The whole column is encoded, once for all views of the batch, unless these are few of its rows.
        """
        whole = self._codes.get(number)
        if whole is None:
            if len(self) < LEAST_SHARE * len(self._columns[number]):
                return codes_of(self.column(number))
            whole = self._codes[number] = codes_of(self._columns[number])
        return whole[self._rows]

    def groups_by_null(self, columns: Sequence[int]) -> list[Integers] | None:
        """The rows in groups, such that each integer or boolean column is NULL in all rows of a group or in none.

        NumPy and pandas have no NULL in such columns: one NULL would turn its neighbours into other types, and large
        integers into other numbers. None where no column has a NULL, as is usual.
        """
        nulls: list[Booleans] = [
            self.column(number).is_null().to_numpy(zero_copy_only=False)
            for number in columns
            if self._columns[number].null_count and _changes_with_null(self._columns[number].type)
        ]
        if not nulls:
            return None
        patterns = sum(null.astype(np.int64) << place for place, null in enumerate(nulls))
        return [np.flatnonzero(patterns == pattern) for pattern in np.unique(patterns)]

    def _plain(self, number: int) -> NDArray[Any] | None:
        """The whole of a column that is numbers without NULL, which Arrow and NumPy hold alike."""
        if number not in self._numbers:
            column = self._columns[number]
            plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            self._numbers[number] = column.to_numpy() if plain and not column.null_count else None
        return self._numbers[number]


def _changes_with_null(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))
