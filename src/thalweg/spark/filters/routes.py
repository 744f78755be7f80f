"""Which columns may tell classes of rows apart: the columns in `tw.where(route_by=...)`, checked, or chosen for it.

Knows names and types alone. Which of these columns are worth an order for each class is found out while the query runs,
by `thalweg.routing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from thalweg.ordering import POLICIES, Policy
from thalweg.registry import hint
from thalweg.routing.attributes import MOST_ATTRIBUTES
from thalweg.routing.partition import refusal
from thalweg.spark.arrow_types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

RouteBy = str | Sequence[str] | None

AUTO = "auto"
# Types of columns that often have few values, and cost little to bring to Python.
CHEAP = ("boolean", "byte", "short", "integer", "date", "string")
MOST_BROUGHT = 8  # columns that may be brought to Python for the sake of classes alone, unless they are named
LETTERS = 80  # of a text that are brought along: more than make a column too wide, and no more


@dataclass(frozen=True)
class Routes:
    """The columns that may tell classes apart."""

    in_python: tuple[str, ...]  # columns that always go to Python: named, or taken there by predicates anyway
    optional: tuple[str, ...] = ()  # columns that go to Python if a sample shows that they pay
    types: dict[str, Any] = field(default_factory=dict)  # Spark's, of these and of more that a plan may branch by
    left_out: dict[str, str] = field(default_factory=dict)  # the other columns, with the reason
    off: str | None = None  # why there are no classes at all

    def brought(self, name: str) -> Column:
        """A column as it goes to Python, if no predicate needs the whole of it."""
        from pyspark.sql import functions as f

        column = f.col(name)
        return f.substring(column, 1, LETTERS) if self.types[name].typeName() == "string" else column


def check_route_by(route_by: object) -> None:
    """Refuse values that are no names of columns, before anything is compared with them."""
    names = [route_by] if isinstance(route_by, str) else route_by if isinstance(route_by, list | tuple) else None
    if route_by is not None and (not names or not all(isinstance(name, str) and name for name in names)):
        raise TypeError(f"route_by is 'auto', a column's name, a list of names, or None, not {route_by!r}")


def routes_of(
    frame: DataFrame, route_by: RouteBy, used: Sequence[str], kind: type[Policy], predicates: int
) -> Routes | None:
    """The columns to classify by; `used` are the columns that come to Python anyway."""
    if route_by is None:
        return None
    routes = _chosen(frame, used) if route_by == AUTO else _named(frame, route_by)
    if not kind.profiles_all_filters:
        names = " or ".join(f"policy={policy.name!r}" for policy in POLICIES if policy.profiles_all_filters)
        off = f"policy {kind.name} does not evaluate profile tuples on all predicates: write {names} for classes"
    elif predicates < 2:  # noqa: PLR2004 - a single predicate has no order
        off = "there is one predicate, hence one order"
    elif not routes.types:
        off = "no column may tell classes apart"
    else:
        return routes
    return Routes((), left_out=routes.left_out, off=off)


def _named(frame: DataFrame, route_by: str | Sequence[str]) -> Routes:
    """Exactly the columns that the user names."""
    from pyspark.errors import AnalysisException

    names = [route_by] if isinstance(route_by, str) else list(route_by)
    if len(set(names)) < len(names) or len(names) > MOST_ATTRIBUTES:
        raise ValueError(f"route_by takes up to {MOST_ATTRIBUTES} different columns, not {', '.join(names)}")
    types = {}
    for name in names:
        try:
            types[name] = frame.select(name).schema.fields[0].dataType
        except AnalysisException:
            there = ", ".join(frame.columns)
            raise ValueError(
                f"route_by needs a column {name!r}; the DataFrame has {there}{hint(name, frame.columns)}"
            ) from None
        if reason := _refusal(types[name]):
            raise ValueError(f"route_by: {name!r} cannot tell classes apart: {reason}")
    return Routes(tuple(names), types=types)


def _chosen(frame: DataFrame, used: Sequence[str]) -> Routes:
    """Columns that predicates take to Python anyway, and, if a sample shows that they pay, some cheap columns."""
    types: dict[str, Any] = {}
    sampled: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(used):
        kind = frame.select(name).schema.fields[0].dataType
        if reason := _refusal(kind):
            left_out[name] = reason
        elif len(types) >= MOST_ATTRIBUTES - MOST_BROUGHT:
            left_out[name] = f"others come first: write route_by={name!r} for it"
        else:
            types[name] = kind
    in_python = tuple(types)
    found = list(_with_fields(frame.schema))
    spelt_alike = Counter(".".join(path).lower() for path, _ in found)
    for path, kind in found:
        name, type_name = ".".join(path), kind.typeName()
        if name in types or name in left_out:
            continue
        is_unique = spelt_alike[name.lower()] == 1 == spelt_alike[path[0].lower()]
        if reason := _refusal(kind):
            left_out[name] = reason
        elif not is_unique or not all(part.isidentifier() for part in path):
            left_out[name] = "its name needs quotes or is not unique: write it into route_by= as Spark understands it"
        elif type_name not in CHEAP:
            left_out[name] = f"not for Python: a {type_name} mostly has many values; write route_by={name!r} if not"
            sampled[name] = kind
        elif len(types) - len(in_python) >= MOST_BROUGHT:
            left_out[name] = f"not for Python: {MOST_BROUGHT} columns are considered already; write route_by={name!r}"
            sampled[name] = kind
        else:
            types[name] = kind
    more = list(sampled.items())[: MOST_ATTRIBUTES - len(types)]
    return Routes(in_python, tuple(types)[len(in_python) :], types | dict(more), left_out)


def _with_fields(schema: StructType) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The path and the type of each column, and then of the fields of columns that are structs."""
    from pyspark.sql.types import StructType

    for column in schema.fields:
        yield (column.name,), column.dataType
    for column in schema.fields:
        if isinstance(column.dataType, StructType):
            for inner in column.dataType.fields:
                yield (column.name, inner.name), inner.dataType


def _refusal(kind: Any) -> str | None:  # noqa: ANN401 - a Spark type
    """Why columns of a type cannot tell classes apart, or None if they can."""
    from pyspark.errors import PySparkTypeError

    try:
        return refusal(arrow_type(kind))
    except PySparkTypeError:
        return f"it is a {kind.simpleString()}; route by a column of numbers, strings, times or booleans"
