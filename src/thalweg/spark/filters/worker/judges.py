"""Evaluates predicates on Arrow columns, in a worker: which rows are true, which NULL, which fail.

A *judge* is the form of a predicate that a worker runs. It never raises for a row: a function that does is isolated to
its failing rows by bisection. It does raise `PredicateError` for a function that breaks its contract, such as one that
returns too few values, as then nothing it says can be trusted. Imports no pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thalweg.ordering.types import Booleans, Integers

Takes = Literal["arrow", "numpy", "pandas", "rows"]

# What Spark computes for a predicate that it evaluated itself, see `native.code_of`; NULL where it raised.
FALSE, TRUE, UNKNOWN = 0, 1, 2


class PredicateError(Exception):
    """A predicate broke its contract or failed on a row that no other predicate rejects."""


class View:
    """Some rows of a batch's columns; columns are cut to the rows only when somebody looks at them."""

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: slice | Integers | None = None,
        numbers: dict[int, NDArray[Any] | None] | None = None,
    ) -> None:
        self._columns = columns
        self._rows = slice(0, len(columns[0])) if rows is None else rows
        self._numbers = {} if numbers is None else numbers  # whole columns, for all views of the batch

    def __len__(self) -> int:
        return self._rows.stop - self._rows.start if isinstance(self._rows, slice) else self._rows.size

    def __getitem__(self, which: slice | Integers) -> View:
        rows = self._rows
        if not isinstance(rows, slice):
            return View(self._columns, rows[which], self._numbers)
        if isinstance(which, slice):
            start, stop, _ = which.indices(len(self))
            return View(self._columns, slice(rows.start + start, rows.start + stop), self._numbers)
        return View(self._columns, which + rows.start if rows.start else which, self._numbers)

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

    def numbers(self, number: int) -> NDArray[Any]:
        """One column as NumPy has it, these rows; NULLs as Arrow turns them."""
        numbers = self._plain(number)
        return self.column(number).to_numpy(zero_copy_only=False) if numbers is None else numbers[self._rows]

    def _plain(self, number: int) -> NDArray[Any] | None:
        """The whole of a column that is numbers without NULL, which Arrow and NumPy hold alike."""
        if number not in self._numbers:
            column = self._columns[number]
            plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            self._numbers[number] = column.to_numpy() if plain and not column.null_count else None
        return self._numbers[number]


class Verdict(NamedTuple):
    """What a judge says of each row. NULL and failed are None where no row is; no row is two of the three."""

    true: Booleans
    null: Booleans | None = None
    failed: Booleans | None = None
    reasons: dict[int, str] | None = None  # of the failed rows


class Judge(Protocol):
    """A predicate as a worker runs it."""

    name: str

    def judge(self, view: View) -> Verdict:
        """Judge each row; there is at least one."""
        ...


class FunctionJudge:
    """A user's function, vectorised or per row."""

    def __init__(self, name: str, function: Callable[..., Any], takes: Takes, columns: Sequence[int]) -> None:
        self.name = name
        self.columns = tuple(columns)
        self._function = function
        self._takes = takes

    def judge(self, view: View) -> Verdict:
        """Call the function; where it raises, find the rows it raises for."""
        try:
            if self._takes == "numpy":
                columns = [view.numbers(number) for number in self.columns]
                return as_verdict(self._function(*columns), len(columns[0]), self.name)
            columns = [view.column(number) for number in self.columns]
            if self._takes == "rows":
                return self._each_row(columns)
            return as_verdict(self._call(columns), len(view), self.name)
        except PredicateError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the user's function raises
            columns = [view.column(number) for number in self.columns]
            true, null = np.zeros(len(view), np.bool_), np.zeros(len(view), np.bool_)
            reasons: dict[int, str] = {}
            self._isolate(columns, 0, error, (true, null, reasons))
            failed = np.zeros(len(view), np.bool_)
            failed[list(reasons)] = True
            return Verdict(true, null, failed, reasons)

    def _call(self, columns: Sequence[pa.Array]) -> object:
        if self._takes == "numpy":
            return self._function(*(column.to_numpy(zero_copy_only=False) for column in columns))
        if self._takes == "pandas":
            return self._function(*(column.to_pandas() for column in columns))
        return self._function(*columns)

    def _isolate(
        self, columns: Sequence[pa.Array], start: int, error: Exception, into: tuple[Booleans, Booleans, dict[int, str]]
    ) -> None:
        """Halve the rows until those that fail stand alone."""
        count = len(columns[0])
        if count == 1:
            into[2][start] = describe(error)
            return
        for first, size in ((0, count // 2), (count // 2, count - count // 2)):
            half = [column.slice(first, size) for column in columns]
            at = start + first
            try:
                verdict = as_verdict(self._call(half), size, self.name)
            except PredicateError:
                raise
            except Exception as another:  # noqa: BLE001 - as above
                self._isolate(half, at, another, into)
            else:
                into[0][at : at + size] = verdict.true
                if verdict.null is not None:
                    into[1][at : at + size] = verdict.null

    def _each_row(self, columns: Sequence[pa.Array]) -> Verdict:
        values: list[object] = []
        reasons: dict[int, str] = {}
        function = self._function
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            try:
                values.append(function(*row))
            except Exception as error:  # noqa: BLE001 - as above
                reasons[len(values)] = describe(error)
                values.append(False)
        verdict = as_verdict(values, len(values), self.name)
        if not reasons:
            return verdict
        failed = np.zeros(len(values), np.bool_)
        failed[list(reasons)] = True
        return Verdict(verdict.true, verdict.null, failed, reasons)


class CodeJudge:
    """A predicate that Spark has evaluated: its outcome comes as a column of codes."""

    def __init__(self, name: str, column: int) -> None:
        self.name = name
        self.column = column

    def judge(self, view: View) -> Verdict:
        """Read the codes."""
        codes = view.column(self.column)
        numbers = codes.fill_null(-1).to_numpy(zero_copy_only=False)
        if not codes.null_count:
            return Verdict(numbers == TRUE, numbers == UNKNOWN)
        failed = numbers == -1
        reason = "Spark could not evaluate the expression on this row"
        return Verdict(numbers == TRUE, numbers == UNKNOWN, failed, dict.fromkeys(np.flatnonzero(failed), reason))


class NotJudge:
    """The negation of a judge: NULL stays NULL, what failed has failed."""

    def __init__(self, name: str, of: Judge) -> None:
        self.name = name
        self.of = of

    def judge(self, view: View) -> Verdict:
        """Turn true and false about."""
        verdict = self.of.judge(view)
        false = ~verdict.true
        for other in (verdict.null, verdict.failed):
            if other is not None:
                false &= ~other
        return verdict._replace(true=false)


def describe(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}"


def as_verdict(result: object, count: int, name: str) -> Verdict:
    """What a function returned, checked.

    >>> as_verdict([True, None], 2, "seen").null.tolist()
    [False, True]
    >>> as_verdict(np.array([0.5]), 1, "score")
    Traceback (most recent call last):
        ...
    thalweg.spark.filters.worker.judges.PredicateError: predicate 'score' returned float64 values, not booleans: \
return a comparison, such as `score > 0.5`
    """
    if isinstance(result, np.ndarray) and result.dtype == np.bool_ and result.shape == (count,):
        return Verdict(result)
    array = as_boolean_array(result, name)
    if len(array) != count:
        raise PredicateError(
            f"predicate {name!r} returned {len(array)} values for {count} rows: return one boolean for each row"
        )
    if not array.null_count:
        return Verdict(array.to_numpy(zero_copy_only=False))
    return Verdict(
        array.fill_null(False).to_numpy(zero_copy_only=False),  # noqa: FBT003 - Arrow takes it by position
        array.is_null().to_numpy(zero_copy_only=False),
    )


def as_boolean_array(result: object, name: str) -> pa.BooleanArray:
    """Booleans of any library as one Arrow array."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.Array):
        array = result
    elif isinstance(result, np.ndarray | list | tuple) or hasattr(result, "__array__"):
        try:
            array = pa.array(result, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise PredicateError(
                f"predicate {name!r} returned values that are not booleans ({error}): return True, False or None"
            ) from None
    else:
        raise PredicateError(
            f"predicate {name!r} returned {type(result).__name__}, not booleans: return an array with one boolean for "
            f"each row, or declare it with takes='rows' if it tests one row at a time"
        )
    if pa.types.is_null(array.type):
        return array.cast(pa.bool_())
    if not pa.types.is_boolean(array.type):
        kind = result.dtype if isinstance(result, np.ndarray) else array.type
        raise PredicateError(
            f"predicate {name!r} returned {kind} values, not booleans: return a comparison, such as `score > 0.5`"
        )
    return array
