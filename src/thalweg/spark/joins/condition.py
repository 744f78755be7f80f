"""The condition of a join, taken apart: equalities of keys, filters of one input, and conditions on candidates.

Conditions are parsed by sqlglot, in Spark's dialect and with Spark's quotes; names are checked against the columns that
there are, and errors say what to write instead. This module knows the names of columns, and no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.joinorder.text import (
    EXAMPLE,
    Attribute,
    Equality,
    conjuncts,
    is_between_streams,
    is_equality_of_columns,
    key_of,
)
from thalweg.registry import hint

if TYPE_CHECKING:
    from sqlglot.expressions import Column, Expr

Columns = Mapping[str, Sequence[str]]  # of each input


@dataclass(frozen=True)
class Condition:
    """A join condition, taken apart."""

    equalities: tuple[Equality, ...]
    filters: tuple[tuple[str, str], ...]  # an input, and a condition on its rows alone, as Spark SQL
    residuals: tuple[tuple[str, tuple[Attribute, ...]], ...]  # other conditions: a text and the attributes in it
    computed: tuple[tuple[Attribute, str], ...] = ()  # keys that are no columns, and their expressions as Spark SQL


def parse_on(text: object, columns: Columns) -> Condition:
    """Take a join condition apart.

    >>> condition = parse_on("a.k = lower(b.k) AND a.x < b.x + 1 AND b.x > 5", {"a": ["k", "x"], "b": ["K", "x"]})
    >>> [str(equality) for equality in condition.equalities], condition.filters
    (['a.k = b.`lower(K)`'], (('b', '`b`.`x` > 5'),))
    >>> condition.computed
    ((Attribute(stream='b', name='lower(K)'), 'lower(`b`.`K`)'),)
    >>> condition.residuals
    (('a.x < b.x + 1', (Attribute(stream='a', name='x'), Attribute(stream='b', name='x'))),)
    """
    try:
        return _taken_apart(text, columns)
    except RecursionError:
        raise ValueError(f"on={text!r:.80} nests too deep; write a condition like {EXAMPLE}") from None


def _taken_apart(text: object, columns: Columns) -> Condition:
    from thalweg.sql.dialect import readable, render

    equalities, filters, residuals = list[Equality](), list[tuple[str, str]](), []
    computed: dict[Attribute, str] = {}
    for conjunct in conjuncts(_parsed(text)):
        attributes = _resolve_all(conjunct, columns)
        streams = {attribute.stream for attribute in attributes}
        if not streams:
            raise ValueError(f"{readable(conjunct)!r} names no column; leave it out")
        if is_equality_of_columns(conjunct) and len(streams) == 1:
            raise ValueError(
                f"{readable(conjunct)!r} compares {attributes[0].stream} with itself; a self-join needs a name for "
                f"each use of the DataFrame: tw.join({{'a': frame, 'b': frame}}, on='a.x = b.y', ...)"
            )
        if is_between_streams(conjunct):
            sides = [_key(side, columns, computed) for side in (conjunct.this, conjunct.expression)]
            equalities.append(Equality(*sorted(sides)))
        elif len(streams) == 1:
            filters.append((attributes[0].stream, render(conjunct)))
        else:
            residuals.append((readable(conjunct), attributes))
    condition = Condition(tuple(dict.fromkeys(equalities)), tuple(filters), tuple(residuals), tuple(computed.items()))
    _check_connected(condition, columns)
    return condition


def _parsed(text: object) -> Expr:
    """The condition as sqlglot has it."""
    import sqlglot
    from sqlglot import expressions as e
    from sqlglot.errors import SqlglotError

    from thalweg.sql.dialect import VerbatimSpark, put_interval_sums_in_parentheses, readable

    if not isinstance(text, str):
        given = "a Column of Spark" if type(text).__name__ == "Column" else repr(text)
        raise TypeError(f"on= is a condition as text, not {given}; write it like on={EXAMPLE}")
    try:
        condition = sqlglot.parse_one(text, dialect=VerbatimSpark, into=e.Condition)
    except SqlglotError as error:
        raise ValueError(f"on={text!r} does not parse; write a condition like {EXAMPLE}") from error
    for query in condition.find_all(e.Query):
        raise ValueError(
            f"on= has a subquery, {readable(query)!r}; give its result as an input of tw.join, or as a table"
        )
    put_interval_sums_in_parentheses(condition)
    return condition


def _resolve_all(expression: Expr, columns: Columns) -> tuple[Attribute, ...]:
    """The attributes of an expression, whose columns are spelt as the inputs spell them from now on."""
    from sqlglot import expressions as e

    attributes: dict[Attribute, None] = {}
    for column in list(expression.find_all(e.Column)):
        attribute = resolve(column, columns)
        attributes[attribute] = None
        column.set("this", e.to_identifier(attribute.name))
        column.set("table", e.to_identifier(attribute.stream))
    return tuple(attributes)


def _key(side: Expr, columns: Columns, computed: dict[Attribute, str]) -> Attribute:
    """The column that a side of an equality is; an expression becomes a computed column."""
    from sqlglot import expressions as e

    from thalweg.sql.dialect import render

    key = key_of(side)
    if isinstance(side.unnest(), e.Column):
        return key
    sql, taken = render(side), {name.lower() for name in columns[key.stream]}
    while key.name.lower() in taken:
        key = key._replace(name=f"({key.name})")
    computed[key] = sql
    return key


def _check_connected(condition: Condition, columns: Columns) -> None:
    """Refuse inputs that no equality connects."""
    groups = [{name} for name in columns]
    for equality in condition.equalities:
        left, right = (next(group for group in groups if side.stream in group) for side in equality)
        if left is not right:
            left |= right
            groups.remove(right)
    if len(groups) > 1:
        listed = " and ".join(", ".join(sorted(group)) for group in groups)
        other = next((text for text, _ in condition.residuals), None)
        about = f" {other!r} is no equality of a value of one input and a value of another." if other else ""
        raise ValueError(
            f"no equality connects {listed}.{about} Add the missing equalities, joined by AND, like {EXAMPLE}"
        )


def resolve(column: Column, columns: Columns) -> Attribute:
    """The attribute that a column of an expression is: upper and lower case are the same, as in Spark."""
    stream = resolve_stream(column, columns)
    own = columns[stream]
    if column.name in own:
        return Attribute(stream, column.name)
    alike = [name for name in own if name.lower() == column.name.lower()]
    if len(alike) != 1:
        raise ValueError(f"{stream} has no column {column.name!r}{hint(column.name, own)} It has: {', '.join(own)}")
    return Attribute(stream, alike[0])


def resolve_stream(column: Column, columns: Columns) -> str:
    """The stream that a column of an expression is of."""
    from thalweg.sql.dialect import readable

    if not column.table:
        raise ValueError(
            f"of which stream is {column.name!r}? Write it like '{Attribute(next(iter(columns)), column.name)}'"
        )
    if column.args.get("db"):
        raise ValueError(
            f"{readable(column)!r} is a part of a column; give it as a column of its own: "
            f"frame.withColumn('{column.name}', col('{column.table}.{column.name}'))"
        )
    if column.table in columns:
        return str(column.table)
    alike = [name for name in columns if name.lower() == column.table.lower()]
    if len(alike) != 1:
        raise ValueError(
            f"{readable(column)!r} is of no stream in the join{hint(column.table, columns)} "
            f"There are: {', '.join(columns)}"
        )
    return alike[0]
