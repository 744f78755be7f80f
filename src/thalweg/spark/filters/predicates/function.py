"""Predicates that are the user's own Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Literal, get_args, overload
from weakref import WeakSet

import pyarrow as pa  # noqa: F401 - for the doctest

from thalweg.keywords import checks_keywords
from thalweg.sealed import short_digest
from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.predicates.base import Analysis, Predicate, checked_after, column_names, is_column, is_udf
from thalweg.spark.filters.predicates.digests import answers_digest, code_digest
from thalweg.spark.filters.worker.distinct_judge import distinct_judge
from thalweg.spark.filters.worker.judges import FunctionJudge, Judge, NotJudge, Takes
from thalweg.spark.filters.worker.waiting.cache import CacheSpec
from thalweg.spark.filters.worker.waiting.judge import waiting_judge
from thalweg.spark.filters.worker.waiting.options import Waiting, cache_spec
from thalweg.spark.folder import scratch

SCALARS = (str, int, float, bool, bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionPredicate(Predicate):
    """A Python function of one or more columns. It can still be called as the function it was."""

    function: Callable[..., Any]
    on: tuple[str, ...]
    takes: Takes
    waiting: Waiting | None = None  # of a coroutine function

    def __post_init__(self) -> None:
        super().__post_init__()
        for attribute in ("__doc__", "__name__"):
            object.__setattr__(self, attribute, getattr(self.function, attribute, None))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102 - as the function has it
        if any(map(is_column, args)):
            raise TypeError(
                f"predicate {self.name!r} knows its columns, on={list(self.on)}: write tw.where(df, {self.name}), or "
                f"tw.condition({self.name}) for a Column"
            )
        return self.function(*args, **kwargs)

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102 - as the base has it
        return self.on

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102
        return self.on, self.takes, code_digest(self.function)

    def check_can_be_sent(self) -> None:
        """Refuse a function that cannot be pickled."""
        check_pickles(self.name, self.function)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        return PythonForm(self.on, (), self.judge_maker_in(analysis.folder), waits=self.waiting is not None)

    @property
    def judge_maker(self) -> Callable[[Sequence[int], Sequence[int]], Judge]:
        """Makes the judge of the function, on the columns at some places."""
        return self.judge_maker_in(scratch())

    def judge_maker_in(self, folder: str) -> Callable[[Sequence[int], Sequence[int]], Judge]:
        """The same for workers that share a folder."""
        if self.waiting is not None:
            signature = short_digest([self.signature, answers_digest(self.function)])
            return partial(waiting_judge, self.name, self.function, self.waiting, folder, signature)
        make = partial(function_judge, self.name, self.function, self.takes, negate=False)
        return partial(distinct_judge, make) if self.deterministic else make


_pickled: WeakSet[Callable[..., Any]] = WeakSet()  # functions that could be pickled


def check_pickles(name: str, function: Callable[..., Any]) -> None:
    """Refuse a predicate whose function cannot be pickled; a function that could be is not tried again."""
    from pyspark.cloudpickle import dumps

    if isinstance(function, FunctionType) and function in _pickled:
        return
    try:
        dumps(function)  # type: ignore[no-untyped-call]
        if isinstance(function, FunctionType):
            _pickled.add(function)
    except Exception as error:  # noqa: BLE001 - any error of pickling the user's objects
        raise TypeError(
            f"predicate {name!r} cannot be sent to workers ({error}): make the objects that it uses inside the "
            f"function, or keep them in a module's variable that the function fills on first use"
        ) from None


def function_judge(
    name: str,
    function: Callable[..., Any],
    takes: Takes,
    columns: Sequence[int],
    codes: Sequence[int],  # noqa: ARG001 - as all makers of judges
    *,
    negate: bool,
) -> Judge:
    """The judge of a function of the columns at these places."""
    judge = FunctionJudge(name, function, takes, columns)
    return NotJudge(name, judge) if negate else judge


@overload
def predicate(
    function: Callable[..., Any],
    *,
    on: str | Sequence[str] | None = ...,
    takes: Takes | None = ...,
    name: str | None = ...,
    concurrency: int | None = ...,
    batch: int | None = ...,
    timeout: float | None = ...,
    retries: int | None = ...,
    deadline: float | None = ...,
    outage: float | None = ...,
    rate: float | None = ...,
    cache: Literal["batch", "worker"] | CacheSpec | None = ...,
    budget: float | None = ...,
    cost: float | None = ...,
    pinned: bool = ...,
    deterministic: bool = ...,
    after: Predicate | str | Sequence[Predicate | str] = ...,
) -> FunctionPredicate: ...


@overload
def predicate(
    *,
    on: str | Sequence[str] | None = ...,
    takes: Takes | None = ...,
    name: str | None = ...,
    concurrency: int | None = ...,
    batch: int | None = ...,
    timeout: float | None = ...,
    retries: int | None = ...,
    deadline: float | None = ...,
    outage: float | None = ...,
    rate: float | None = ...,
    cache: Literal["batch", "worker"] | CacheSpec | None = ...,
    budget: float | None = ...,
    cost: float | None = ...,
    pinned: bool = ...,
    deterministic: bool = ...,
    after: Predicate | str | Sequence[Predicate | str] = ...,
) -> Callable[[Callable[..., Any]], FunctionPredicate]: ...


@checks_keywords("tw.predicate")
def predicate(
    function: Callable[..., Any] | None = None,
    *,
    on: str | Sequence[str] | None = None,
    takes: Takes | None = None,
    name: str | None = None,
    concurrency: int | None = None,
    batch: int | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    deadline: float | None = None,
    outage: float | None = None,
    rate: float | None = None,
    cache: Literal["batch", "worker"] | CacheSpec | None = None,
    budget: float | None = None,
    cost: float | None = None,
    pinned: bool = False,
    deterministic: bool = True,
    after: Predicate | str | Sequence[Predicate | str] = (),
) -> FunctionPredicate | Callable[[Callable[..., Any]], FunctionPredicate]:
    """Make a predicate of your own function.

    Parameters
    ----------
    on
        The column or columns that the function takes, in order; ``"user.country"`` is a nested field. By default, the
        names of its parameters.
    takes
        ``"arrow"``: Arrow arrays in, a boolean for each row out. ``"numpy"`` and ``"pandas"``: the same with NumPy
        arrays or pandas Series. ``"rows"``: the values of a row in, as a Python UDF of Spark gets them, a boolean out.
        ``"async"``: the same by a coroutine function, ``async def``, which waits for a service. By default, as the
        function says, or its annotations, else Arrow. NULL, as None or a missing value, means not kept.
    name
        By default, the function's.
    concurrency, batch, rate
        Of a coroutine function: how many of its calls a worker has under way at once, 32 by default; for how many rows
        a call asks at most, if the function takes a list of each column and returns a list of booleans; and how many
        calls a second all workers together may begin.
    timeout, retries, deadline, outage
        Of a coroutine function: the seconds that an attempt may take; how often to ask again after an error, with
        growing delays; the seconds that all attempts of a row may take together, after which a call under way is
        cancelled; and the seconds that rows wait for a service that is down, 30 by default, until they fail without
        being asked for.
    cache
        Of a coroutine function: where answers are remembered, so that equal rows are asked for once: within a
        ``"batch"``, the default, in a ``"worker"``, or as `tw.cache` says.
    budget
        Of a coroutine function: how much all workers together may spend, in the unit of the costs that `tw.judged`
        tells, else in calls. Rows for which nothing is left fail, and are treated as `on_error` says.
    cost
        The cost of a row, in any unit (seconds, tokens, money). Give it for all predicates of a query or for none; if
        none has it, time is measured.
    pinned, deterministic
        A pinned or non-deterministic predicate keeps its place among the others as written.
    after
        Predicates, or their names, that must have accepted a row before this predicate sees it.

    Examples
    --------
    >>> import pyarrow.compute as pc
    >>> @predicate(on="body")
    ... def is_short(body):
    ...     return pc.less(pc.utf8_length(body), 5)
    >>> is_short.name, is_short(pa.array(["word", "sentence"])).to_pylist()
    ('is_short', [True, False])
    """
    if function is None:
        return lambda function: predicate(
            function,
            on=on,
            takes=takes,
            name=name,
            concurrency=concurrency,
            batch=batch,
            timeout=timeout,
            retries=retries,
            deadline=deadline,
            outage=outage,
            rate=rate,
            cache=cache,
            budget=budget,
            cost=cost,
            pinned=pinned,
            deterministic=deterministic,
            after=after,
        )
    if not callable(function):
        raise TypeError(
            f"tw.predicate makes a predicate of a function, not of {function!r}: tw.where takes Columns and conditions "
            f"as text as they are, and tw.expr gives them a name or other options"
        )
    if is_udf(function):
        raise TypeError("a Spark UDF is no plain function: write the_udf('column'), which tw.where takes as it is")
    if takes is not None and takes not in get_args(Takes):
        raise ValueError(f"takes is one of {', '.join(get_args(Takes))}, not {takes!r}")
    takes = takes or takes_of(function) or "arrow"
    given = {
        "concurrency": concurrency,
        "batch": batch,
        "timeout": timeout,
        "retries": retries,
        "deadline": deadline,
        "outage": outage,
        "rate": rate,
        "cache": cache,
        "budget": budget,
    }
    waiting = _waiting(function, takes, {option: value for option, value in given.items() if value is not None})
    columns = parameter_names(function, "on='column'") if on is None else column_names(on, "on")
    _check_parameters(function, columns)
    return FunctionPredicate(
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        cost=cost,
        pinned=pinned,
        deterministic=deterministic,
        after=checked_after(after),
        function=function,
        on=columns,
        takes=takes,
        waiting=waiting,
    )


def predicate_of(function: Callable[..., Any]) -> FunctionPredicate:
    """The predicate of a plain function, whose annotations have to say which values it takes."""
    if takes_of(function) is None:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"{name} does not say which values it takes: write tw.predicate({name}, takes='rows') if it takes a row at "
            f"a time, or takes='arrow', 'numpy' or 'pandas' if it takes many rows at once"
        )
    return predicate(function)


def _waiting(function: Callable[..., Any], takes: Takes, options: dict[str, Any]) -> Waiting | None:
    """How a coroutine function is asked; None for another function."""
    name = getattr(function, "__name__", function)
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} yields values: a predicate that waits returns its answer, return instead of yield")
    if _is_coroutine_function(function) is not (takes == "async"):
        raise TypeError(
            f"{name} is {'no' if takes == 'async' else 'a'} coroutine function: takes='async' and async def go together"
        )
    if takes != "async" and options:
        raise TypeError(f"{next(iter(options))}= is for a predicate that waits: write async def {name}(...)")
    if takes != "async":
        return None
    if "cache" in options:
        options["cache"] = cache_spec(options["cache"])
    return Waiting(**options)


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a function is a coroutine function, or an object that is called as such."""
    call = getattr(function, "__call__", None)  # noqa: B004 - what it does is asked, not whether it is there
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def parameter_names(function: Callable[..., Any], instead: str) -> tuple[str, ...]:
    """The names of a function's parameters; the error says what to write instead."""
    name = getattr(function, "__name__", repr(function))
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin that does not tell
        parameters = ()  # type: ignore[assignment]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or any(parameter.kind not in plain for parameter in parameters):
        raise TypeError(f"the columns that {name} takes cannot be told from its parameters: write {instead}")
    return tuple(parameter.name for parameter in parameters)


def takes_of(function: Callable[..., Any]) -> Takes | None:
    """The kind of values that a function takes, by its first annotation; None if that does not tell."""
    if _is_coroutine_function(function):
        return "async"
    annotations = [str(each) for name, each in getattr(function, "__annotations__", {}).items() if name != "return"]
    first = annotations[0] if annotations else ""
    for mark, takes in (("ndarray", "numpy"), ("Series", "pandas"), ("Array", "arrow")):
        if mark in first:
            return takes  # type: ignore[return-value]
    return "rows" if first in {str(kind) for kind in SCALARS} | {kind.__name__ for kind in SCALARS} else None


def _check_parameters(function: Callable[..., Any], columns: tuple[str, ...]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin that does not tell
        return
    try:
        signature.bind(*columns)
    except TypeError:
        name = getattr(function, "__name__", function)
        raise TypeError(
            f"{name} cannot take {len(columns)} column(s) {', '.join(columns)}: it is {name}{signature}. "
            f"List in on= one column for each of its parameters"
        ) from None
