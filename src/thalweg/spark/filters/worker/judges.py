"""Evaluates predicates on Arrow columns, in a worker: which rows are true, which NULL, which fail.

A *judge* is the form of a predicate that a worker runs. It never raises for a row: a function that raises is isolated
to its failing rows by bisection. It does raise `PredicateError` for a function that breaks its contract, such as a
function that returns too few values, as then nothing it returns can be trusted. Imports no pyspark.

A worker process keeps the judges of a query from task to task, since some of them learn. Spark sends the user's
functions anew with each task, and they may hold an accumulator of that task: `adopt` takes them over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans
from thalweg.spark.filters.worker.values import python_values
from thalweg.spark.filters.worker.view import View

Counts = dict[str, dict[str, Any]]  # of calls and of scores, by the name of the predicate

Takes = Literal["arrow", "numpy", "pandas", "rows", "async"]

# The outcomes of a condition that Spark evaluated for a worker, see `conditions.attempt`; NULL where it raised.
FALSE, TRUE, UNKNOWN = 0, 1, 2

NOT_ADDED = ("budget", "spent", "accept", "reject")  # counts of which the greatest is told; others are added up

# Code in these folders calls the user's functions.
CALLERS = (str(Path(__file__).parents[3]), str(Path(os.__file__).parent / "asyncio"))


class PredicateError(Exception):
    """A predicate broke its contract or failed on a row that no other predicate rejects."""


class Verdict(NamedTuple):
    """The outcome of a predicate for each row.

    `null` and `failed` are None where no row is. No row is in two of the three.
    """

    true: Booleans
    null: Booleans | None = None
    failed: Booleans | None = None
    reasons: dict[int, str] | None = None  # of the failed rows


class Judge(Protocol):
    """A predicate as a worker runs it."""

    name: str

    @property
    def repeated(self) -> int:
        """Rows for which nothing was asked so far, because an equal row was asked for before."""
        ...

    def judge(self, view: View) -> Verdict:
        """Judge each row; there is at least one row."""
        ...

    def adopt(self, fresh: Self) -> None:
        """Go on with the functions of the same judge as it was sent with a new task."""
        ...

    def begin_task(self) -> None:
        """Prepare for the rows of a new task."""
        ...

    def counts(self) -> Counts:
        """Counts for `tw.explain` of calls and scores: its own, and those of the judges that it asks."""
        ...


class FunctionJudge:
    """A user's function, vectorised or per row."""

    repeated = 0  # it is asked for every row

    def __init__(self, name: str, function: Callable[..., Any], takes: Takes, columns: Sequence[int]) -> None:
        self.name = name
        self.columns = tuple(columns)
        self._function = function
        self._takes = takes

    def adopt(self, fresh: FunctionJudge) -> None:
        """Call the function that came with the new task."""
        self._function = fresh._function

    def begin_task(self) -> None:
        """Let a function that follows a file look at it."""
        if hasattr(self._function, "begin_task"):
            self._function.begin_task()

    def counts(self) -> Counts:
        """There is nothing to tell of a function that computes."""
        return {}

    def judge(self, view: View) -> Verdict:
        """Call the function; where it raises, find the rows it raises for."""
        if self._takes == "rows":
            return self._judge_each_row(view)
        groups = view.groups_by_null(self.columns) if self._takes in {"numpy", "pandas"} else None
        if groups is None:
            try:
                return self._call(view)
            except PredicateError:
                raise
            except Exception as error:  # noqa: BLE001 - any error of the user's function
                outcome = _outcome_of(view)
                self._isolate(view, np.arange(len(view)), error, outcome)
        else:
            outcome = _outcome_of(view)
            for rows in groups:
                self._judge_part(view[rows], rows, outcome)
        return verdict_of(*outcome)

    def _call(self, view: View) -> Verdict:
        arguments: list[Any]
        if self._takes == "numpy":
            arguments = [view.numbers(number) for number in self.columns]
        else:
            arguments = [view.column(number) for number in self.columns]
            if self._takes == "pandas":
                arguments = [column.to_pandas() for column in arguments]
        return as_verdict(self._function(*arguments), len(view), self.name)

    def _judge_part(self, view: View, rows: Any, into: tuple[Booleans, Booleans, dict[int, str]]) -> None:  # noqa: ANN401 - an array
        """Judge some rows, and write the outcome to their places."""
        try:
            verdict = self._call(view)
        except PredicateError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._isolate(view, rows, error, into)
        else:
            into[0][rows] = verdict.true
            if verdict.null is not None:
                into[1][rows] = verdict.null

    def _isolate(
        self,
        view: View,
        rows: Any,  # noqa: ANN401 - an array
        error: Exception,
        into: tuple[Booleans, Booleans, dict[int, str]],
    ) -> None:
        """Halve the rows until the rows that fail stand alone."""
        count = len(view)
        if count == 1:
            into[2][int(rows[0])] = describe(error)
            return
        for half in (slice(0, count // 2), slice(count // 2, count)):
            self._judge_part(view[half], rows[half], into)

    def _judge_each_row(self, view: View) -> Verdict:
        values: list[object] = []
        reasons: dict[int, str] = {}
        function = self._function
        for row in zip(*(python_values(view.column(number)) for number in self.columns), strict=True):
            try:
                values.append(function(*row))
            except Exception as error:  # noqa: BLE001 - as above
                reasons[len(values)] = describe(error)
                values.append(False)
        verdict = as_verdict(values, len(values), self.name)
        return verdict_of(verdict.true, verdict.null, reasons)


def _outcome_of(view: View) -> tuple[Booleans, Booleans, dict[int, str]]:
    """Room for which rows are true, which NULL, and why others fail."""
    return np.zeros(len(view), np.bool_), np.zeros(len(view), np.bool_), {}


class CodeJudge:
    """A predicate that Spark has evaluated: its outcome comes as a column of codes."""

    repeated = 0

    def __init__(self, name: str, column: int) -> None:
        self.name = name
        self.column = column

    def adopt(self, fresh: CodeJudge) -> None:
        """There is no function to take over."""

    def begin_task(self) -> None:
        """There is nothing to prepare."""

    def counts(self) -> Counts:
        """There is nothing to tell."""
        return {}

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
    """The negation of a judge: NULL stays NULL, and a row that failed has failed."""

    def __init__(self, name: str, negated: Judge) -> None:
        self.name = name
        self.negated = negated

    @property
    def repeated(self) -> int:
        """Rows for which the negated judge did not ask."""
        return self.negated.repeated

    def adopt(self, fresh: NotJudge) -> None:
        """Pass the function on to the negated judge."""
        self.negated.adopt(fresh.negated)

    def begin_task(self) -> None:
        """Let the negated judge prepare."""
        self.negated.begin_task()

    def counts(self) -> Counts:
        """What the negated judge tells."""
        return self.negated.counts()

    def judge(self, view: View) -> Verdict:
        """Turn true and false about."""
        return self.negation_of(self.negated.judge(view))

    @staticmethod
    def negation_of(verdict: Verdict) -> Verdict:
        """The verdict with true and false turned about."""
        false = ~verdict.true
        for other in (verdict.null, verdict.failed):
            if other is not None:
                false &= ~other
        return verdict._replace(true=false)


def counts_of(judges: Iterable[Judge]) -> Counts:
    """What judges tell together; a predicate that several of them ask is told once, with the sum of its counts."""
    return sum_of(judge.counts() for judge in judges)


def sum_of(counts: Iterable[Counts]) -> Counts:
    """Counts added up by the names of predicates.

    >>> sum_of([{"seen": {"calls": 2, "cost": None, "budget": 9}}, {"seen": {"calls": 1, "cost": 3.0, "budget": 9}}])
    {'seen': {'calls': 3, 'cost': 3.0, 'budget': 9}}
    """
    found: Counts = {}
    for each in counts:
        for name, own in each.items():
            total = found.setdefault(name, {})
            for count, value in own.items():
                known = total.get(count)
                if known is None or value is None:
                    total[count] = known if value is None else value
                else:
                    total[count] = max(known, value) if count in NOT_ADDED else known + value
    return found


def describe(error: BaseException) -> str:
    """An exception as a single line, with the line of the user's code that raised it.

    >>> try:
    ...     int("ten")
    ... except ValueError as error:
    ...     print(describe(error).partition(" of ")[0])
    ValueError: invalid literal for int() with base 10: 'ten' (line 2
    """
    text = f"{type(error).__name__}: {error}"
    for frame, line in walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(CALLERS):
            return f"{text} (line {line} of {Path(file).name})"
    return text


def verdict_of(true: Booleans, null: Booleans | None, reasons: dict[int, str]) -> Verdict:
    """A verdict of which some rows may have failed."""
    null = null if null is not None and null.any() else None
    if not reasons:
        return Verdict(true, null)
    failed = np.zeros(true.size, np.bool_)
    failed[list(reasons)] = True
    return Verdict(true & ~failed, null, failed, reasons)


def as_verdict(result: object, count: int, name: str) -> Verdict:
    """The verdict that a function returned, checked.

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
