"""The predicates of a query, as a user writes them.

Knows what is asked for; how it is evaluated is the business of `judges` (in Python) and `native` (in Spark).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import numpy as np
import pyarrow as pa

from thalweg.spark.filters.worker.judges import Takes
from thalweg.tables.keys import KeySet, KeyTableError
from thalweg.tables.prefixes import Prefixes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True, eq=False)
class Predicate:
    """What all predicates have.

    `cost` is what a row costs, in any unit, if all predicates of a query have one; otherwise it is measured. `pinned`
    keeps the predicate's place among the others as written, as `deterministic=False` does; `after` names the predicates
    that must have accepted a row before this one sees it.
    """

    name: str
    cost: float | None = None
    pinned: bool = False
    deterministic: bool = True
    after: tuple[Predicate | str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a predicate's name is a text that is not empty")
        if self.cost is not None and not self.cost > 0:
            raise ValueError(f"predicate {self.name!r}: a cost is above 0, not {self.cost}")

    @property
    def holds_place(self) -> bool:
        """Whether the predicate keeps its place as written."""
        return self.pinned or not self.deterministic


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionPredicate(Predicate):
    """A Python function of one or more columns. It can still be called as the function it was."""

    function: Callable[..., Any]
    on: tuple[str, ...]
    takes: Takes

    def __post_init__(self) -> None:
        super().__post_init__()
        for attribute in ("__doc__", "__name__"):
            object.__setattr__(self, attribute, getattr(self.function, attribute, None))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401, D102 - as the function has it
        return self.function(*args, **kwargs)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpressionPredicate(Predicate):
    """A condition that Spark evaluates."""

    condition: str | Column


@dataclass(frozen=True, kw_only=True, eq=False)
class LookupPredicate(Predicate):
    """Whether a row's key is in a stored table."""

    table: Any
    on: tuple[str, ...]  # columns of the stream
    columns: tuple[str, ...]  # the table's, in the same order
    brings: Mapping[str, str] = field(default_factory=dict)  # more of its columns, to the kept rows, under which names
    negate: bool = False
    fixed: list[str] = field(default_factory=list, repr=False)  # running queries that cannot follow a refresh
    followers: list[Callable[[KeySet], None]] = field(default_factory=list, repr=False)  # told of a refresh
    _loaded: list[tuple[KeySet, pa.Table]] = field(default_factory=list, repr=False)
    _frames: dict[tuple[Any, ...], DataFrame] = field(default_factory=dict, repr=False)

    @property
    def keys(self) -> KeySet:
        """The table's keys; read once, and again after `refresh`."""
        return self._load()[0]

    def frame(self, spark: SparkSession, found: str, *names: str) -> DataFrame:
        """The same as a DataFrame, with a column that says that they were found; made once for a session."""
        key = (spark, found, *names)
        if key not in self._frames:
            table = self._load()[1].select(list(self.columns)).rename_columns(list(names))
            table = table.append_column(found, pa.array(np.ones(table.num_rows, np.bool_)))
            self._frames[key] = spark.createDataFrame(table)
        return self._frames[key]

    def brought(self, spark: SparkSession, *names: str) -> DataFrame:
        """The keys, under these names, with the columns to bring back; made once for a session."""
        key = (spark, "brought", *names)
        if key not in self._frames:
            table = self._load()[1]
            columns = [table[name] for name in (*self.columns, *self.brings)]
            self._frames[key] = spark.createDataFrame(pa.table(columns, [*names, *self.brings.values()]))
        return self._frames[key]

    def refresh(self, table: Any = None) -> None:  # noqa: ANN401 - as in `lookup`
        """Read the table again, or take another; a running stream follows with its next micro-batch."""
        if self.fixed:
            raise ValueError(
                f"predicate {self.name!r} brings columns into a streaming DataFrame, whose plan is fixed: write "
                f"tw.stream(...), which plans every micro-batch anew, or stop the query and start it again"
            )
        if table is not None:
            object.__setattr__(self, "table", table)
        self._loaded.clear()
        self._frames.clear()
        for follower in self.followers:
            follower(self.keys)

    def _load(self) -> tuple[KeySet, pa.Table]:
        if not self._loaded:
            table = read_columns(self.table, list(dict.fromkeys((*self.columns, *self.brings))), self.name)
            try:
                self._loaded.append((KeySet(table.select(list(self.columns))), table))
            except KeyTableError as error:
                raise KeyTableError(f"predicate {self.name!r}: {error}") from None
        return self._loaded[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixPredicate(Predicate):
    """Whether a stored prefix matches a row's address or text."""

    prefixes: Prefixes
    on: str
    negate: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class AnyOfPredicate(Predicate):
    """Whether at least one of some predicates is true."""

    members: tuple[Predicate, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class NotPredicate(Predicate):
    """Whether a predicate is false."""

    of: Predicate


@overload
def predicate(
    function: Callable[..., Any],
    *,
    on: str | Sequence[str],
    takes: Takes | None = ...,
    name: str | None = ...,
    cost: float | None = ...,
    pinned: bool = ...,
    deterministic: bool = ...,
    after: Predicate | str | Sequence[Predicate | str] = ...,
) -> FunctionPredicate: ...


@overload
def predicate(
    *,
    on: str | Sequence[str],
    takes: Takes | None = ...,
    name: str | None = ...,
    cost: float | None = ...,
    pinned: bool = ...,
    deterministic: bool = ...,
    after: Predicate | str | Sequence[Predicate | str] = ...,
) -> Callable[[Callable[..., Any]], FunctionPredicate]: ...


def predicate(
    function: Callable[..., Any] | None = None,
    *,
    on: str | Sequence[str],
    takes: Takes | None = None,
    name: str | None = None,
    cost: float | None = None,
    pinned: bool = False,
    deterministic: bool = True,
    after: Predicate | str | Sequence[Predicate | str] = (),
) -> FunctionPredicate | Callable[[Callable[..., Any]], FunctionPredicate]:
    """Make a predicate of your own function.

    Parameters
    ----------
    on
        The column or columns that the function takes, in order; ``"user.country"`` is a nested field.
    takes
        ``"arrow"``: Arrow arrays in, one boolean a row out. ``"numpy"`` and ``"pandas"``: the same with NumPy arrays or
        pandas Series. ``"rows"``: the values of one row in, one boolean out. By default, what the function's
        annotations say, else Arrow. NULL, as None or a missing value, means not kept.
    name
        By default, the function's.
    cost
        What a row costs, in any unit (seconds, tokens, money). Give it for all predicates of a query or for none; if
        none has it, time is measured.
    pinned, deterministic
        A pinned or non-deterministic predicate keeps its place among the others as written.
    after
        Predicates, or their names, that must have accepted a row before this one sees it.

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
            function, on=on, takes=takes, name=name, cost=cost, pinned=pinned, deterministic=deterministic, after=after
        )
    if not callable(function):
        raise TypeError(f"tw.predicate makes a predicate of a function, not of {function!r}")
    if takes is not None and takes not in get_args(Takes):
        raise ValueError(f"takes is one of {', '.join(get_args(Takes))}, not {takes!r}")
    columns = _columns(on, "on")
    _check_parameters(function, columns)
    return FunctionPredicate(
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        cost=cost,
        pinned=pinned,
        deterministic=deterministic,
        after=_predicates(after),
        function=function,
        on=columns,
        takes=takes or _takes_of(function),
    )


def expr(condition: str | Column, *, name: str | None = None, **options: Any) -> ExpressionPredicate:  # noqa: ANN401
    """A condition in Spark SQL, or a Column, evaluated by Spark itself.

    >>> expr("amount > 100").name
    'amount > 100'
    """
    text = condition if isinstance(condition, str) else str(condition)
    if isinstance(condition, str) and not condition.strip():
        raise ValueError("tw.expr takes a condition such as 'amount > 100', not an empty text")
    short = text.removeprefix("Column<'").removesuffix("'>")
    return ExpressionPredicate(name=name or short, condition=condition, **_options(options))


def regex(column: str, pattern: str, *, name: str | None = None, **options: Any) -> ExpressionPredicate:  # noqa: ANN401
    r"""Whether a pattern, in Java's syntax, is found in a text column; evaluated by Spark itself.

    >>> regex("url", r"/login\b").name
    'url rlike /login\\b'
    """
    quoted = pattern.replace("\\", "\\\\").replace("'", "\\'")
    return ExpressionPredicate(
        name=name or f"{column} rlike {pattern}", condition=f"{column} rlike '{quoted}'", **_options(options)
    )


def lookup(
    table: Any,  # noqa: ANN401 - see below
    *,
    on: str | Sequence[str] | Mapping[str, str],
    columns: str | Sequence[str] | Mapping[str, str] = (),
    negate: bool = False,
    name: str | None = None,
    **options: Any,  # noqa: ANN401 - checked by _options
) -> LookupPredicate:
    """Whether a row's key is in a stored table: a semi-join, or with ``negate=True`` an anti-join.

    With `columns` it is a join: the kept rows get these columns of the table. First all predicates decide which rows
    are kept, this one by the keys alone; columns are brought to those rows only.

    A row whose key is NULL is kept by neither. `refresh` on the predicate reads the table again.

    Parameters
    ----------
    table
        A DataFrame, an Arrow table, or the path of Parquet files. Its keys must be unique and not NULL.
    on
        The key column or columns; ``{"src_ip": "ip"}`` where the table calls them otherwise.
    columns
        Columns of the table to bring back; ``{"name": "customer"}`` to call them otherwise.

    Examples
    --------
    >>> blocked = lookup(pa.table({"ip": ["10.0.0.1"]}), on={"src": "ip"}, negate=True)
    >>> blocked.name, len(blocked.keys)
    ('src not in lookup', 1)
    """
    pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in _columns(on, "on")}
    if not pairs:
        raise ValueError("tw.lookup needs key columns: on='ip', or on={'src_ip': 'ip'} for other names in the table")
    brings = (
        dict(columns)
        if isinstance(columns, Mapping)
        else {one: one for one in columns and _columns(columns, "columns")}
    )
    if brings and negate:
        raise ValueError("rows that are not in the table have no columns of it: leave out columns= or negate=True")
    if len(set(brings.values())) < len(brings):
        raise ValueError(f"columns= brings two columns under one name: {', '.join(brings.values())}")
    what = os.path.basename(os.fspath(table)) if isinstance(table, str | os.PathLike) else "lookup"  # noqa: PTH119
    found = LookupPredicate(
        name=name or f"{', '.join(pairs)} {'not in' if negate else 'in'} {what}",
        table=table,
        on=tuple(pairs),
        columns=tuple(pairs.values()),
        brings=brings,
        negate=negate,
        **_options(options),
    )
    if isinstance(table, pa.Table):
        _ = found.keys  # what is wrong with it shows at once
    return found


def prefix_match(
    table: Any,  # noqa: ANN401 - as in `lookup`
    *,
    on: str | Mapping[str, str],
    kind: Literal["ip", "string"] = "ip",
    negate: bool = False,
    name: str | None = None,
    **options: Any,  # noqa: ANN401 - checked by _options
) -> PrefixPredicate:
    """Whether a stored prefix matches: networks such as ``10.0.0.0/8`` for addresses, or plain text prefixes.

    >>> inside = prefix_match(pa.table({"net": ["10.0.0.0/8"]}), on={"dest": "net"})
    >>> inside.prefixes.matches(pa.array(["10.1.2.3", "11.0.0.1"])).to_pylist()
    [True, False]
    """
    pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in _columns(on, "on")}
    if len(pairs) != 1:
        raise ValueError("tw.prefix_match takes one column: on='dest', or on={'dest': 'net'}")
    ((column, theirs),) = pairs.items()
    shown = name or f"{column} {'outside' if negate else 'inside'} prefixes"
    prefixes = Prefixes(read_columns(table, (theirs,), shown).column(0), kind=kind)
    return PrefixPredicate(name=shown, prefixes=prefixes, on=column, negate=negate, **_options(options))


def any_of(*members: Any, name: str | None = None, **options: Any) -> AnyOfPredicate:  # noqa: ANN401 - as in `where`
    """Whether at least one member is true: one predicate. If it runs in Python, its inner order adapts as well.

    >>> any_of("a > 1", "b > 1").name
    'a > 1 or b > 1'
    """
    if len(members) < 2:  # noqa: PLR2004 - of one there is no order
        raise ValueError("tw.any_of takes two predicates or more; a single one needs no tw.any_of")
    checked = tuple(as_predicate(one) for one in members)
    return AnyOfPredicate(
        name=name or " or ".join(one.name for one in checked), members=checked, **_inherited(checked, _options(options))
    )


def not_(of: Any, *, name: str | None = None, **options: Any) -> NotPredicate:  # noqa: ANN401 - as in `where`
    """Whether a predicate is false; where it is NULL, so is this.

    >>> not_("a > 1").name
    'not (a > 1)'
    """
    checked = as_predicate(of)
    return NotPredicate(name=name or f"not ({checked.name})", of=checked, **_inherited((checked,), _options(options)))


def as_predicate(one: object) -> Predicate:
    """A predicate of what `tw.where` accepts: a predicate, a Column, or text in Spark SQL."""
    if isinstance(one, Predicate):
        return one
    if isinstance(one, str):
        return expr(one)
    if callable(one) and hasattr(one, "__code__"):
        raise TypeError(
            f"{getattr(one, '__name__', one)!s} is a plain function: write @tw.predicate(on='column') above it, so "
            f"that its columns are known"
        )
    if type(one).__module__.startswith("pyspark.") and type(one).__name__ == "Column":
        return expr(one)  # type: ignore[arg-type]
    raise TypeError(
        f"{one!r} is no predicate: pass tw.predicate, tw.expr, tw.regex, tw.lookup, tw.prefix_match, tw.any_of, "
        f"tw.not_, a Column, or a condition as text"
    )


def read_columns(table: Any, columns: Sequence[str], name: str) -> pa.Table:  # noqa: ANN401 - as in `lookup`
    """Some columns of a stored table, from wherever it is."""
    if isinstance(table, str | os.PathLike):
        from thalweg.spark.start import local_session

        table = local_session().read.load(os.fspath(table))
    names = table.column_names if isinstance(table, pa.Table) else getattr(table, "columns", None)
    if names is None:
        raise TypeError(f"predicate {name!r}: a stored table is a DataFrame, an Arrow table or a path, not {table!r}")
    for column in columns:
        if column not in names:
            raise ValueError(
                f"predicate {name!r}: the stored table has no column {column!r}; it has {', '.join(names)}. "
                f"Write on={{'column of the stream': 'column of the table'}} where the names differ"
            )
    found: pa.Table = table.select(list(columns)) if isinstance(table, pa.Table) else table.select(*columns).toArrow()
    return found


def _columns(on: object, what: str) -> tuple[str, ...]:
    columns = (on,) if isinstance(on, str) else tuple(on) if isinstance(on, Sequence) else ()
    if not columns or not all(isinstance(one, str) and one for one in columns):
        raise TypeError(f"{what} is a column's name or a list of them, not {on!r}")
    return columns


def _predicates(after: object) -> tuple[Predicate | str, ...]:
    found = (after,) if isinstance(after, str | Predicate) else tuple(after) if isinstance(after, Sequence) else None
    if found is None or not all(isinstance(one, str | Predicate) for one in found):
        raise TypeError(f"after is a predicate, its name, or a list of them, not {after!r}")
    return found


OPTIONS = ("cost", "pinned", "deterministic", "after")


def _options(options: dict[str, Any]) -> dict[str, Any]:
    for option in options:
        if option not in OPTIONS:
            raise TypeError(f"there is no option {option!r} of a predicate; there are name, {', '.join(OPTIONS)}")
    if "after" in options:
        options["after"] = _predicates(options["after"])
    return options


def _inherited(members: Sequence[Predicate], options: dict[str, Any]) -> dict[str, Any]:
    """A predicate made of others holds its place if one of them does."""
    if any(one.holds_place for one in members):
        options["pinned"] = True
    return options


def _takes_of(function: Callable[..., Any]) -> Takes:
    """What a function takes, by its first annotation."""
    annotations = [str(one) for name, one in getattr(function, "__annotations__", {}).items() if name != "return"]
    first = annotations[0] if annotations else ""
    for mark, takes in (("ndarray", "numpy"), ("Series", "pandas"), ("Array", "arrow")):
        if mark in first:
            return takes  # type: ignore[return-value]
    return "rows" if first in {str(one) for one in SCALARS} | {one.__name__ for one in SCALARS} else "arrow"


SCALARS = (str, int, float, bool, bytes)


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


def parts_of(one: Predicate) -> list[Predicate]:
    """A predicate and all in it."""
    inner = one.members if isinstance(one, AnyOfPredicate) else (one.of,) if isinstance(one, NotPredicate) else ()
    return [one, *(part for member in inner for part in parts_of(member))]


def columns_of(one: Predicate) -> tuple[str, ...]:
    """The columns that a predicate takes to Python or looks up, without those of its members."""
    if isinstance(one, FunctionPredicate | LookupPredicate):
        return one.on
    return (one.on,) if isinstance(one, PrefixPredicate) else ()
