"""Python UDFs of Spark in a worker: called as Spark calls them, with the values that Spark hands them.

A UDF returns values of the type that it declares. They are turned into that type as Spark turns them, and compared with
a constant as Spark compares if the condition says so. Imports no pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.filters.worker.judges import FunctionJudge, PredicateError, Verdict, as_verdict, describe, verdict_of
from thalweg.spark.filters.worker.nested_series import is_converted_by_pyspark, nested_series
from thalweg.spark.filters.worker.values import python_values
from thalweg.spark.filters.worker.view import View

INTEGER_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
MOST_BITS = 64
PICKLED = {bool, int, float, str, bytes, date, datetime, Decimal, type(None)}  # types that are pickled and read back
EPOCH = date(1970, 1, 1).toordinal()


class Convention(IntEnum):
    """How Spark calls a UDF; the numbers are Spark's."""

    ROWS = 100  # `udf`: a row at a time, values pickled
    ARROW_ROWS = 101  # `udf` with Arrow: a row at a time, values in Arrow batches
    PANDAS = 200  # `pandas_udf` of Series
    PANDAS_ITERATOR = 204
    ARROW = 250  # `arrow_udf` of arrays
    ARROW_ITERATOR = 251

    @property
    def is_by_row(self) -> bool:
        """Whether the function is called for each row."""
        return self in {Convention.ROWS, Convention.ARROW_ROWS}

    @property
    def is_of_pandas(self) -> bool:
        """Whether the function takes pandas Series."""
        return self in {Convention.PANDAS, Convention.PANDAS_ITERATOR}

    @property
    def is_of_iterators(self) -> bool:
        """Whether the function takes an iterator of batches, and is called once."""
        return self in {Convention.PANDAS_ITERATOR, Convention.ARROW_ITERATOR}


@dataclass(frozen=True)
class Comparison:
    """A comparison of a UDF's values with a constant, as Spark evaluates it: NaN is equal to itself, and greatest."""

    operator: str  # of SQL: =, <=>, <, <=, >, >=, or IN
    constant: Any  # None for NULL; of IN a tuple of constants
    kind: pa.DataType  # in which Spark compares

    def apply(self, values: pa.Array) -> pa.BooleanArray:
        """Compare each value.

        >>> Comparison(">", 0.5, pa.float64()).apply(pa.array([0.2, 0.7, float("nan"), None])).to_pylist()
        [False, True, True, None]
        >>> Comparison("IN", (1, None), pa.int64()).apply(pa.array([1, 2, None])).to_pylist()
        [True, None, None]
        """
        if self.operator == "IN":
            equals = [replace(self, operator="=", constant=constant) for constant in self.constant]
            return reduce(pc.or_kleene, (equal.apply(values) for equal in equals))
        values = values if values.type == self.kind else values.cast(self.kind, safe=False)
        if self.constant is None:
            return values.is_null() if self.operator == "<=>" else pa.nulls(len(values), pa.bool_())
        is_equal, is_less = self._equal_and_less(values)
        if self.operator == "<=>":
            return is_equal.fill_null(False)  # noqa: FBT003 - Arrow takes it by position
        return {
            "=": lambda: is_equal,
            "<": lambda: is_less,
            "<=": lambda: pc.or_(is_less, is_equal),
            ">": lambda: pc.invert(pc.or_(is_less, is_equal)),
            ">=": lambda: pc.invert(is_less),
        }[self.operator]()

    def _equal_and_less(self, values: pa.Array) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        constant = pa.scalar(self.constant, self.kind)
        is_equal, is_less = pc.equal(values, constant), pc.less(values, constant)
        if not pa.types.is_floating(self.kind):
            return is_equal, is_less
        is_nan = pc.is_nan(values)
        if self.constant != self.constant:  # NaN alone
            return is_nan, pc.invert(is_nan)
        return is_equal, is_less


@dataclass(frozen=True)
class UdfCall:
    """A UDF in a condition: the function, how to call it, and what is asked of its values."""

    function: Callable[..., Any]
    convention: Convention
    keywords: tuple[str | None, ...]  # for each argument, its name if it is passed by name
    returns: pa.DataType
    safely: bool  # whether Spark refuses conversions to that type which lose something
    comparison: Comparison | None = None  # None for a function that is a condition itself
    time_zone: str = ""  # of the session, if an argument has times inside


class UdfJudge(FunctionJudge):
    """A UDF as a judge."""

    def __init__(self, name: str, call: UdfCall, columns: Sequence[int]) -> None:
        super().__init__(name, call.function, "arrow", columns)
        self._udf = call
        self._iterator: IteratorCall | None = None
        self._nested: dict[int, Any] = {}  # whole columns of `_batch` that PySpark has converted
        self._batch: Sequence[pa.Array] | None = None

    def adopt(self, fresh: FunctionJudge) -> None:
        """Call the function that came with the new task."""
        super().adopt(fresh)
        self._iterator = None
        self._batch, self._nested = None, {}

    def judge(self, view: View) -> Verdict:
        """Call the function as Spark does; where it raises, find the rows it raises for."""
        return self._judge_rows(view) if self._udf.convention.is_by_row else super().judge(view)

    def _judge_rows(self, view: View) -> Verdict:
        """Call the function once for each row."""
        values: list[Any] = []
        reasons: dict[int, str] = {}
        for row in zip(*(python_values(view.column(number)) for number in self.columns), strict=True):
            try:
                values.append(self._with_keywords(row))
            except Exception as error:  # noqa: BLE001 - any error of the user's function
                reasons[len(values)] = describe(error)
                values.append(None)
        array = self._converted(values, 0, reasons)
        verdict = as_verdict(self._compared(array), len(values), self.name)
        return verdict_of(verdict.true, verdict.null, reasons) if reasons else verdict

    def _converted(self, values: list[Any], start: int, reasons: dict[int, str]) -> pa.Array:
        """The values of rows as Spark's type; a value that cannot be converted is the failure of its row."""
        convert = pickled_values if self._udf.convention is Convention.ROWS else arrow_values
        try:
            return convert(values, self._udf.returns, safely=self._udf.safely)
        except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError) as error:
            if len(values) == 1:
                reasons[start] = describe(error)
                return pa.nulls(1, self._udf.returns)
        middle = len(values) // 2
        halves = (values[:middle], start), (values[middle:], start + middle)
        return pa.concat_arrays([self._converted(half, first, reasons) for half, first in halves])

    def _call(self, view: View) -> Verdict:
        """Call the function of arrays or Series once."""
        of_pandas = self._udf.convention.is_of_pandas
        arguments = [self._series_of(view, number) if of_pandas else view.column(number) for number in self.columns]
        if self._udf.convention.is_of_iterators:
            self._iterator = self._iterator or IteratorCall(self._function)
            results = self._iterator(arguments[0] if len(arguments) == 1 else tuple(arguments), len(view))
        else:
            results = [self._with_keywords(arguments)]
        arrays = [self._as_array(result) for result in results]
        array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays) if arrays else pa.nulls(0, pa.bool_())
        return as_verdict(self._compared(array), len(view), self.name)

    def _series_of(self, view: View, number: int) -> Any:  # noqa: ANN401 - a Series, or a DataFrame of a struct
        """A column as Spark hands it to a pandas UDF: a NULL anywhere in a batch may change the types of values."""
        if not is_converted_by_pyspark(view.kind(number)):
            return series_of(view, number)
        if view.batch is not self._batch:
            self._batch, self._nested = view.batch, {}
        if number not in self._nested:
            self._nested[number] = nested_series(view.batch[number], self._udf.time_zone)
        return self._nested[number].iloc[view.positions].reset_index(drop=True)

    def _with_keywords(self, arguments: Sequence[Any]) -> Any:  # noqa: ANN401 - as the function has it
        keywords = self._udf.keywords
        if not any(keywords):
            return self._function(*arguments)
        plain = [value for value, keyword in zip(arguments, keywords, strict=True) if keyword is None]
        named = {keyword: value for value, keyword in zip(arguments, keywords, strict=True) if keyword is not None}
        return self._function(*plain, **named)

    def _as_array(self, result: Any) -> pa.Array:  # noqa: ANN401 - of the user's function
        """Arrays or Series that a function returned, as Spark's type."""
        call = self._udf
        if not call.convention.is_of_pandas:
            if not isinstance(result, pa.Array):
                raise PredicateError(f"{self.name!r} returned {type(result).__name__}: an arrow_udf returns arrays")
            return result if result.type == call.returns else result.cast(call.returns)
        if not hasattr(result, "isnull"):
            raise PredicateError(f"{self.name!r} returned {type(result).__name__}: a pandas_udf returns a Series")
        mask = None if hasattr(result.array, "__arrow_array__") else result.isnull()
        try:
            return pa.Array.from_pandas(result, mask=mask, type=call.returns, safe=call.safely)
        except pa.ArrowInvalid:
            return pa.Array.from_pandas(result, mask=mask).cast(call.returns, safe=call.safely)

    def _compared(self, values: pa.Array) -> pa.Array:
        return values if self._udf.comparison is None else self._udf.comparison.apply(values)


class IteratorCall:
    """A function from an iterator of batches to an iterator of results, called batch by batch.

    Between two batches the function waits where it asked for the next. If it asks for a batch before it has given all
    results of the batch before, its input ends there: it gives the results that it holds back, and is called anew.
    """

    def __init__(self, function: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        self._function = function
        self._results: Iterator[Any] | None = None
        self._waiting: list[Any] = []  # at most one batch

    def __call__(self, batch: Any, rows: int) -> list[Any]:  # noqa: ANN401 - as the function has it
        """The results of a batch of some rows.

        >>> doubled = IteratorCall(lambda batches: ([2 * number for number in batch] for batch in batches))
        >>> doubled([1, 2], 2), doubled([3], 1)
        ([[2, 4]], [[6]])
        """
        self._waiting = [batch]
        found: list[Any] = []
        try:
            while self._waiting:
                if self._results is None:
                    self._results = iter(self._function(self._batches()))
                for result in self._results:
                    found.append(result)
                    if sum(map(len, found)) >= rows:
                        return found
                self._results = None
        except BaseException:
            self._results = None
            raise
        return found

    def _batches(self) -> Iterator[Any]:
        while self._waiting:
            yield self._waiting.pop()


def series_of(view: View, number: int) -> Any:  # noqa: ANN401 - a Series of pandas
    """A column as Spark hands it to a pandas UDF: times naive in the session's time zone.

    One NULL in a batch turns a whole column of integers into floats, and of booleans into objects.
    """
    column = view.column(number)
    if pa.types.is_integer(column.type) and view.has_null(number):
        column = column.cast(pa.float64(), safe=False)
    series = column.to_pandas(date_as_object=True, coerce_temporal_nanoseconds=True)
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return series.dt.tz_localize(None)
    return series.astype(object) if pa.types.is_boolean(column.type) and view.has_null(number) else series


def pickled_values(values: Sequence[Any], returns: pa.DataType, *, safely: bool) -> pa.Array:  # noqa: ARG001 - as below
    """Values of a UDF whose results are pickled: Spark makes NULL of a value of another type.

    >>> pickled_values([True, 1, None], pa.bool_(), safely=True).to_pylist()
    [True, None, None]
    """
    if not set(map(type, values)) <= PICKLED:
        for value in values:
            _check_pickled(value)
    if returns == pa.bool_():
        return pa.array([value if type(value) is bool else None for value in values], returns)
    if returns == pa.string():
        return pa.array(list(map(_as_text, values)), returns)
    if returns == pa.date32():  # PySpark asks a value for its day before it pickles it
        return pa.array([None if value is None else value.toordinal() - EPOCH for value in values], pa.int32()).cast(
            returns
        )
    if returns in INTEGER_BITS:
        return pa.array([_as_integer(value, INTEGER_BITS[returns]) for value in values], returns)
    return pa.array([value if type(value) is float else None for value in values], pa.float64()).cast(returns)


def _check_pickled(value: Any) -> None:  # noqa: ANN401 - of the user's function
    """Refuse a value that cannot be pickled, as a match of a regular expression, or that Java cannot read then."""
    if type(value) in PICKLED:
        return
    if isinstance(value, np.generic | np.ndarray):
        raise TypeError("Spark cannot read NumPy's values from a udf: return bool(...), int(...) or float(...)")
    from pyspark.cloudpickle import dumps

    try:
        dumps(value)  # type: ignore[no-untyped-call]
    except Exception as error:  # noqa: BLE001 - any error of pickling the user's objects
        raise TypeError(f"Spark cannot pickle what the udf returns, {error}: return bool(...), say") from None


def arrow_values(values: Sequence[Any], returns: pa.DataType, *, safely: bool) -> pa.Array:
    """Values of a UDF whose results are sent as Arrow: Arrow casts a value of another type, or refuses it.

    >>> arrow_values([1, 0, None], pa.bool_(), safely=True).to_pylist()
    [True, False, None]
    """
    if returns == pa.string():
        values = list(map(_as_text, values))
    try:
        return pa.array(values, returns)
    except pa.ArrowInvalid:
        return pa.array(values).cast(returns, safe=safely)


def _as_text(value: Any) -> str | None:  # noqa: ANN401 - of the user's function
    if value is None or type(value) is str:
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_integer(value: Any, bits: int) -> int | None:  # noqa: ANN401 - of the user's function
    """An integer of some bits, of which Spark keeps the last; None for a value that is no integer for the JVM."""
    if type(value) is not int or not -(1 << MOST_BITS - 1) <= value < 1 << MOST_BITS - 1:
        return None
    wrapped = value & (1 << bits) - 1
    return wrapped - (1 << bits) if wrapped >> bits - 1 else wrapped


def udf_judge(name: str, call: UdfCall, columns: Sequence[int], codes: Sequence[int]) -> UdfJudge:  # noqa: ARG001 - as all makers
    """The judge of a UDF of the columns at these places."""
    return UdfJudge(name, call, columns)
