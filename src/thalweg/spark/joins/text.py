"""The texts that a user writes about a join, as values: its condition, windows, durations and columns.

Texts are parsed by sqlglot; names are checked against the columns there are, and errors say what to write instead. This
module knows the names of columns, and no rows.
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
ResultColumn = tuple[str, str, str]  # an input, a column of it, and the name in the result
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", re.IGNORECASE)
WINDOW_EXAMPLE = "'10 minutes', or {'R1': '10 minutes', 'R2': '1 hour', 'T': None} with None for rows that never expire"


@dataclass(frozen=True)
class Condition:
    """A join condition, taken apart."""

    equalities: tuple[Equality, ...]
    filters: tuple[tuple[str, str], ...]  # an input, and a condition on its rows alone, as Spark SQL
    residuals: tuple[tuple[str, tuple[Attribute, ...]], ...]  # other conditions: a text and the attributes in it


def parse_on(text: str, columns: Columns) -> Condition:
    """Take a join condition apart.

    >>> condition = parse_on("a.k = b.k AND a.x < b.x + 1 AND b.x > 5", {"a": ["k", "x"], "b": ["K", "x"]})
    >>> [str(equality) for equality in condition.equalities], condition.filters
    (['a.k = b.K'], (('b', 'b.x > 5'),))
    >>> condition.residuals
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
    for conjunct in _conjuncts(condition):
        attributes = _resolve_all(conjunct, columns)
        streams = {attribute.stream for attribute in attributes}
        is_equality = (
            isinstance(conjunct, e.EQ)
            and isinstance(conjunct.this, e.Column)
            and isinstance(conjunct.expression, e.Column)
        )
        if is_equality and len(streams) == 1:
            raise ValueError(
                f"{conjunct.sql()!r} compares {attributes[0].stream} with itself; a self-join needs a name for each "
                f"use of the DataFrame: tw.join({{'a': frame, 'b': frame}}, on='a.x = b.y', ...)"
            )
        if is_equality:
            equalities.append(Equality(*sorted(attributes)))
        elif not streams:
            raise ValueError(f"{conjunct.sql()!r} names no column; leave it out")
        elif len(streams) == 1:
            filters.append((attributes[0].stream, conjunct.sql(dialect="spark")))
        else:
            compile_expression(conjunct)  # refuses expressions that workers could not evaluate
            residuals.append((conjunct.sql(dialect="spark"), attributes))
    return Condition(tuple(dict.fromkeys(equalities)), tuple(filters), tuple(residuals))


def _resolve_all(expression: Expr, columns: Columns) -> tuple[Attribute, ...]:
    """The attributes of an expression, whose columns are spelt as the inputs spell them from now on."""
    from sqlglot import expressions as e

    attributes: dict[Attribute, None] = {}
    for column in list(expression.find_all(e.Column)):
        attribute = resolve(column, columns)
        attributes[attribute] = None
        column.set("this", e.to_identifier(attribute.name))
    return tuple(attributes)


def parse_select(select: Sequence[str] | None, columns: Columns) -> tuple[ResultColumn, ...]:
    """The columns of the result.

    A column without a name of its own is called after its input and column: `R1.size` becomes `R1_size`.

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
    selected: list[ResultColumn] = []
    for text in [f"`{name}`.*" for name in columns] if select is None else select:
        try:
            expression = sqlglot.parse_one(text, read="spark")
        except (SqlglotError, TypeError) as error:
            raise ValueError(
                f"{text!r} in select does not parse; write it like 'R1.size' or 'R2.size AS s2'"
            ) from error
        column = expression.this if isinstance(expression, e.Alias) else expression
        if not isinstance(column, e.Column):
            raise ValueError(  # noqa: TRY004 - it is the text that is wrong
                f"{text!r} in select is no column; select columns, and compute with the result: joined.selectExpr(...)"
            )
        if isinstance(column.this, e.Star):
            stream = _stream(column, columns)
            selected += [(stream, name, f"{stream}_{name}") for name in columns[stream]]
            continue
        stream, name = resolve(column, columns)
        alias = expression.alias if isinstance(expression, e.Alias) else f"{stream}_{name}"
        selected.append((stream, name, alias))
    if not selected:
        raise ValueError("select names no column; leave it out for all columns")
    _check_aliases(selected)
    return tuple(selected)


def _check_aliases(selected: Sequence[ResultColumn]) -> None:
    aliases = [alias.lower() for *_, alias in selected]
    for stream, name, alias in selected:
        if aliases.count(alias.lower()) > 1:
            raise ValueError(
                f"two columns of the result would be called {alias!r}; give one of them another name: "
                f"select=['{stream}.{name} AS other', ...]"
            )


def resolve(column: Column, columns: Columns) -> Attribute:
    """The attribute that a column of an expression is: upper and lower case are the same, as in Spark."""
    stream = _stream(column, columns)
    own = columns[stream]
    if column.name in own:
        return Attribute(stream, column.name)
    alike = [name for name in own if name.lower() == column.name.lower()]
    if len(alike) != 1:
        raise ValueError(f"{stream} has no column {column.name!r}{hint(column.name, own)} It has: {', '.join(own)}")
    return Attribute(stream, alike[0])


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


def microseconds(duration: object, noun: str) -> int:
    """A duration as microseconds.

    >>> microseconds("1.5 hours", "the window of R1"), microseconds(timedelta(seconds=2), "the delay")
    (5400000000, 2000000)
    """
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    match = DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match is None or match[2].upper() not in MICROSECONDS:
        units = ", ".join(unit.lower() + "s" for unit in MICROSECONDS)
        raise ValueError(f"{noun} is {duration!r}; write it like '10 minutes', with a unit of {units}")
    return round(float(match[1]) * MICROSECONDS[match[2].upper()])


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that are joined by AND, as written."""
    from sqlglot import expressions as e

    waiting: list[Expr] = [condition]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, e.Paren):
            waiting.append(expression.this)
        elif isinstance(expression, e.And):
            waiting += [expression.expression, expression.this]
        else:
            yield expression
