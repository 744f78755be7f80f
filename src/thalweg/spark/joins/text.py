"""What a user writes of a join, as values: its condition, windows, durations and columns.

Parsed by sqlglot; names are checked against the columns there are, and errors say what to write instead. Knows the
names and types of columns, and no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from thalweg.joinorder.text import EXAMPLE, Attribute, Equality
from thalweg.mjoin.query import CountWindow, TimeWindow
from thalweg.registry import hint
from thalweg.spark.joins.residuals import MICROSECONDS, compile_expression

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

Columns = Mapping[str, Sequence[str]]  # of each input
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", re.IGNORECASE)
WINDOW_EXAMPLE = "'10 minutes', or {'R1': '10 minutes', 'R2': '1 hour', 'T': None} with None for what never expires"


@dataclass(frozen=True)
class Condition:
    """A join condition, taken apart."""

    equalities: tuple[Equality, ...]
    filters: tuple[tuple[str, str], ...]  # an input, and what is asked of its rows alone, as Spark SQL
    residuals: tuple[tuple[str, tuple[Attribute, ...]], ...]  # the rest: a text and the attributes in it


def parse_on(text: str, columns: Columns) -> Condition:
    """Take a join condition apart.

    >>> found = parse_on("a.k = b.k AND a.x < b.x + 1 AND b.x > 5", {"a": ["k", "x"], "b": ["K", "x"]})
    >>> [str(one) for one in found.equalities], found.filters
    (['a.k = b.K'], (('b', 'b.x > 5'),))
    >>> found.residuals
    (('a.x < b.x + 1', (Attribute(stream='a', name='x'), Attribute(stream='b', name='x'))),)
    """
    import sqlglot
    from sqlglot import expressions as e
    from sqlglot.errors import SqlglotError

    try:
        condition = sqlglot.parse_one(text, read="spark", into=e.Condition)
    except SqlglotError as error:
        raise ValueError(f"on={text!r} does not parse; write a condition like {EXAMPLE}") from error
    equalities, filters, residuals = list[Equality](), list[tuple[str, str]](), []
    for one in _conjuncts(condition):
        attributes = tuple(dict.fromkeys(resolve(column, columns) for column in one.find_all(e.Column)))
        for column in one.find_all(e.Column):  # as the input spells it
            column.set("this", e.to_identifier(resolve(column, columns).name))
        streams = {each.stream for each in attributes}
        sides = isinstance(one, e.EQ) and isinstance(one.this, e.Column) and isinstance(one.expression, e.Column)
        if sides and len(streams) == 1:
            name = attributes[0].stream
            raise ValueError(
                f"{one.sql()!r} compares {name} with itself; a self-join needs a name for each use of the DataFrame: "
                f"tw.join({{'a': frame, 'b': frame}}, on='a.x = b.y', ...)"
            )
        if sides:
            equalities.append(Equality(*sorted(attributes)))
        elif not streams:
            raise ValueError(f"{one.sql()!r} names no column; leave it out")
        elif len(streams) == 1:
            filters.append((attributes[0].stream, one.sql(dialect="spark")))
        else:
            compile_expression(one)  # refuses what workers could not evaluate
            residuals.append((one.sql(dialect="spark"), attributes))
    return Condition(tuple(dict.fromkeys(equalities)), tuple(filters), tuple(residuals))


def parse_select(select: Sequence[str] | None, columns: Columns) -> tuple[tuple[str, str, str], ...]:
    """The columns of the result: input, column, and the name in the result.

    A name that is not given is that of input and column: `R1.size` becomes `R1_size`.

    >>> parse_select(["R1.size", "R2.size AS s2"], {"R1": ["size"], "R2": ["size", "id"]})
    (('R1', 'size', 'R1_size'), ('R2', 'size', 's2'))
    >>> parse_select(["R2.*"], {"R1": ["size"], "R2": ["size", "id"]})
    (('R2', 'size', 'R2_size'), ('R2', 'id', 'R2_id'))
    """
    import sqlglot
    from sqlglot import expressions as e
    from sqlglot.errors import SqlglotError

    if isinstance(select, str):
        raise TypeError(f"select is a list of columns, not a text: write select=[{select!r}]")
    found: list[tuple[str, str, str]] = []
    for text in [f"`{name}`.*" for name in columns] if select is None else select:
        try:
            one = sqlglot.parse_one(text, read="spark")
        except (SqlglotError, TypeError) as error:
            raise ValueError(
                f"{text!r} in select does not parse; write it like 'R1.size' or 'R2.size AS s2'"
            ) from error
        column = one.this if isinstance(one, e.Alias) else one
        if not isinstance(column, e.Column):
            raise ValueError(  # noqa: TRY004 - it is the text that is wrong
                f"{text!r} in select is no column; select columns, and compute with the result: joined.selectExpr(...)"
            )
        if isinstance(column.this, e.Star):
            stream = _stream(column, columns)
            found += [(stream, name, f"{stream}_{name}") for name in columns[stream]]
            continue
        stream, name = resolve(column, columns)
        found.append((stream, name, one.alias if isinstance(one, e.Alias) else f"{stream}_{name}"))
    if not found:
        raise ValueError("select names no column; leave it out for all columns")
    names = [name.lower() for *_, name in found]
    for stream, column_name, name in found:
        if names.count(name.lower()) > 1:
            raise ValueError(
                f"two columns of the result would be called {name!r}; give one another name: "
                f"select=['{stream}.{column_name} AS other', ...]"
            )
    return tuple(found)


def resolve(column: Column, columns: Columns) -> Attribute:
    """The attribute that a column of an expression is: upper and lower case are the same, as in Spark."""
    stream = _stream(column, columns)
    own = columns[stream]
    if column.name in own:
        return Attribute(stream, column.name)
    same = [name for name in own if name.lower() == column.name.lower()]
    if len(same) != 1:
        raise ValueError(f"{stream} has no column {column.name!r}{hint(column.name, own)} It has: {', '.join(own)}")
    return Attribute(stream, same[0])


def _stream(column: Column, columns: Columns) -> str:
    if not column.table:
        raise ValueError(f"of which stream is {column.name!r}? Write it like '{next(iter(columns))}.{column.name}'")
    if column.args.get("db"):
        raise ValueError(
            f"{column.sql()!r} is a part of a column; give it as a column of its own: "
            f"frame.withColumn('{column.name}', col('{column.table}.{column.name}'))"
        )
    if column.table not in columns:
        raise ValueError(
            f"{column.sql()!r} is of no stream in the join{hint(column.table, columns)} There are: {', '.join(columns)}"
        )
    return str(column.table)


def parse_window(window: object, name: str) -> TimeWindow | CountWindow | None:
    """A window of an input.

    >>> parse_window("10 minutes", "R1"), parse_window("100 rows", "R1"), parse_window(None, "R1")
    (TimeWindow(microseconds=600000000), CountWindow(rows=100), None)
    """
    if window is None:
        return None
    if isinstance(window, str) and (match := DURATION.fullmatch(window)) and match[2].lower() == "row":
        return CountWindow(int(match[1]))
    return TimeWindow(microseconds(window, f"the window of {name}"))


def microseconds(duration: object, what: str) -> int:
    """A duration as microseconds.

    >>> microseconds("1.5 hours", "the window of R1"), microseconds(timedelta(seconds=2), "the delay")
    (5400000000, 2000000)
    """
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    match = DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None or match[2].upper() not in MICROSECONDS:
        units = ", ".join(unit.lower() + "s" for unit in MICROSECONDS)
        raise ValueError(f"{what} is {duration!r}; write it like '10 minutes', with a unit of {units}")
    return round(float(match[1]) * MICROSECONDS[match[2].upper()])


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    """What a condition demands at once, as written."""
    from sqlglot import expressions as e

    waiting: list[Expr] = [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, e.Paren):
            waiting.append(one.this)
        elif isinstance(one, e.And):
            waiting += [one.expression, one.this]
        else:
            yield one
