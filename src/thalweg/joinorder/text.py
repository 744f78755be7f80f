"""Join conditions as text: which attributes of which streams must be equal, and which equalities follow.

Equality is transitive, so the equalities of a condition fall into classes of attributes. Two questions are answered
from the classes: which equalities are enough to say the same (the reduction: a natural join of n streams, written
with all its pairs, needs n - 1; a-greedy-2004, section 8) and which follow without being written (the closure: more
orders to choose from). Knows no rates and no selectivities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

EXAMPLE = '"R1.pid = R2.pid AND R2.pid = R3.pid"'
QUERY = '"SELECT * FROM R1 JOIN R2 ON R1.pid = R2.pid JOIN R3 ON R2.ip = R3.ip"'
PLAIN_NAME = re.compile(r"\w+")


class Equalities(StrEnum):
    """Which equalities of a condition become predicates of the join graph."""

    WRITTEN = "written"  # as they stand
    REDUCED = "reduced"  # without the equalities that follow from the equalities before them
    CLOSED = "closed"  # with all that follow


class Attribute(NamedTuple):
    """An attribute of a stream."""

    stream: str
    name: str

    def __str__(self) -> str:
        return f"{_quoted(self.stream)}.{_quoted(self.name)}"


class Equality(NamedTuple):
    """Two attributes of two streams that must be equal, in alphabetical order."""

    left: Attribute
    right: Attribute

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


def parse_condition(text: str) -> tuple[Equality, ...]:
    """The equalities of a conjunction, as written but for repetitions.

    >>> [str(equality) for equality in parse_condition("R2.pid = R1.pid AND (R2.`ip.to` = lower(R3.source))")]
    ['R1.pid = R2.pid', 'R2.`ip.to` = R3.`lower(source)`']
    """
    return tuple(dict.fromkeys(_equality(conjunct) for conjunct in conjuncts(_parsed_condition(text))))


def join_condition(query: str) -> tuple[str, tuple[str, ...]]:
    """The equalities of a query, or of a condition, between its streams; and its other conditions.

    >>> join_condition("SELECT * FROM R1 JOIN R2 ON R1.pid = R2.pid, R3 AS c WHERE c.ip = R2.ip AND c.port < 1024")
    ('R1.pid = R2.pid AND R2.ip = c.ip', ('c.port < 1024',))
    >>> join_condition("R1.pid = R2.pid AND R1.size < R2.size * 2")
    ('R1.pid = R2.pid', ('R1.size < R2.size * 2',))

    Upper and lower case are the same in the name of a stream, as in Spark.

    >>> join_condition("A.k = B.k AND b.l = C.l")
    ('A.k = B.k AND B.l = C.l', ())
    """
    from sqlglot import expressions

    from thalweg.sql.dialect import readable

    is_query = query.lstrip().upper().startswith("SELECT ")
    select = _parsed_query(query) if is_query else None
    clauses = [_parsed_condition(query)] if select is None else _clauses(select)
    equalities, others = [], []
    for conjunct in (each for clause in clauses for each in conjuncts(clause)):
        if is_between_streams(conjunct) or (select is None and is_equality_of_columns(conjunct)):
            equalities.append(_equality(conjunct))
        else:
            others.append(readable(conjunct))
    if not equalities:
        example = f"a query like {QUERY}" if is_query else f"equalities like {EXAMPLE}"
        raise ValueError(f"{query!r} joins nothing: no equality is between two streams; write {example}")
    tables = [] if select is None else [table.alias_or_name for table in select.find_all(expressions.Table)]
    equalities = _with_one_spelling(equalities, tables)
    if select is not None:
        streams = set(tables)
        for attribute in (each for equality in equalities for each in equality):
            if attribute.stream not in streams:
                raise ValueError(
                    f"of which stream is {str(attribute)!r}? The query is FROM {', '.join(sorted(streams))}"
                )
    return " AND ".join(map(str, equalities)), tuple(others)


def _with_one_spelling(equalities: Iterable[Equality], streams: Iterable[str]) -> list[Equality]:
    """The equalities with the names of streams in upper and lower case as given, or else as they are written first."""
    spelling = {name.lower(): name for name in streams}
    return [
        Equality(
            *sorted(each._replace(stream=spelling.setdefault(each.stream.lower(), each.stream)) for each in equality)
        )
        for equality in equalities
    ]


def _parsed_condition(text: str) -> Expr:
    import sqlglot
    from sqlglot import expressions
    from sqlglot.errors import SqlglotError

    from thalweg.sql.dialect import VerbatimSpark

    try:
        return sqlglot.parse_one(text, dialect=VerbatimSpark, into=expressions.Condition)
    except SqlglotError as error:
        raise ValueError(f"the join condition {text!r} does not parse; write equalities like {EXAMPLE}") from error
    except RecursionError:
        raise ValueError(f"the join condition {text!r:.80} nests too deep; write equalities like {EXAMPLE}") from None


def _parsed_query(text: str) -> Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

    from thalweg.sql.dialect import VerbatimSpark

    try:
        return sqlglot.parse_one(text, dialect=VerbatimSpark)
    except SqlglotError as error:
        raise ValueError(f"the query {text!r} does not parse; write it like {QUERY}") from error
    except RecursionError:
        raise ValueError(f"the query {text!r:.80} nests too deep; write it like {QUERY}") from None


def _clauses(select: Expr) -> list[Expr]:
    """The conditions of a query: those of its joins, and of WHERE."""
    from sqlglot import expressions

    from thalweg.sql.dialect import readable

    joins = select.args.get("joins") or []
    for source in (*joins, *select.find_all(expressions.Subquery)):
        if isinstance(source, expressions.Subquery) or source.side or source.method or source.args.get("using"):
            raise ValueError(f"{readable(source)!r} is not understood; write a query like {QUERY}")
    where = select.args.get("where")
    return [*(join.args["on"] for join in joins if join.args.get("on")), *([where.this] if where else [])]


def reduced(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """The equalities that do not follow from the equalities before them.

    >>> [str(equality) for equality in reduced(parse_condition("A.k = B.k AND B.k = C.k AND A.k = C.k"))]
    ['A.k = B.k', 'B.k = C.k']
    """
    kept: list[Equality] = []
    class_of: dict[Attribute, set[Attribute]] = {}
    for equality in equalities:
        left, right = (class_of.setdefault(attribute, {attribute}) for attribute in equality)
        if left is not right:
            kept.append(equality)
            left |= right
            class_of.update(dict.fromkeys(right, left))
    return tuple(kept)


def classes(equalities: Iterable[Equality]) -> tuple[tuple[Attribute, ...], ...]:
    """The classes of attributes that are equal to each other.

    >>> found = classes(parse_condition("A.k = B.k AND C.l = D.l AND B.k = C.k"))
    >>> [[str(attribute) for attribute in attributes] for attributes in found]
    [['A.k', 'B.k', 'C.k'], ['C.l', 'D.l']]
    """
    class_of: dict[Attribute, frozenset[Attribute]] = {}
    for left, right in equalities:
        both = class_of.get(left, frozenset([left])) | class_of.get(right, frozenset([right]))
        class_of.update(dict.fromkeys(both, both))
    return tuple(tuple(sorted(attributes)) for attributes in dict.fromkeys(class_of.values()))


def closed(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """The equalities and, after them, all further equalities between two streams that follow from them.

    >>> [str(equality) for equality in closed(parse_condition("A.k = B.k AND B.k = C.k"))]
    ['A.k = B.k', 'B.k = C.k', 'A.k = C.k']
    """
    written = tuple(equalities)
    pairs = (Equality(*pair) for attributes in classes(written) for pair in combinations(attributes, 2))
    return tuple(dict.fromkeys((*written, *(pair for pair in pairs if pair.left.stream != pair.right.stream))))


def checked_equalities(which: object) -> Equalities:
    """Which equalities to use, or an error that lists the choices.

    >>> checked_equalities("reduced")
    <Equalities.REDUCED: 'reduced'>
    """
    try:
        return Equalities(which)  # type: ignore[arg-type]  # a file may hold anything
    except ValueError:
        raise ValueError(f"equalities are one of {', '.join(Equalities)}, not {which!r:.80}") from None


def chosen(equalities: Iterable[Equality], which: Equalities | str) -> tuple[Equality, ...]:
    """The equalities that become predicates."""
    match checked_equalities(which):
        case Equalities.WRITTEN:
            return tuple(equalities)
        case Equalities.REDUCED:
            return reduced(equalities)
        case Equalities.CLOSED:
            return closed(equalities)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The parts of a conjunction, as written."""
    from sqlglot import expressions

    waiting: list[Expr] = [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, expressions.Paren):
            waiting.append(part.this)
        elif isinstance(part, expressions.And):
            waiting += [part.expression, part.this]
        else:
            yield part


def key_of(expression: Expr) -> Attribute:
    """The attribute that a side of an equality is; an expression of one stream's columns is called by its text."""
    from sqlglot.expressions import Column

    from thalweg.sql.dialect import readable

    expression = expression.unnest()
    if not isinstance(expression, Column):
        streams = _streams_in(expression)
        if len(streams) != 1:
            raise ValueError(f"{readable(expression)!r} is no attribute of a stream; write it like 'R1.pid'")
        expression = expression.copy()
        for column in expression.find_all(Column):
            column.set("table", None)
        return Attribute(streams.pop(), readable(expression))
    if not expression.table:
        raise ValueError(f"of which stream is {expression.name!r}? Write it like 'R1.{expression.name}'")
    return Attribute(expression.table, expression.name)


def is_between_streams(expression: Expr) -> bool:
    """Whether an expression is an equality of a value of one stream and a value of another."""
    from sqlglot.expressions import EQ

    if not isinstance(expression, EQ):
        return False
    left, right = _streams_in(expression.this), _streams_in(expression.expression)
    return len(left) == len(right) == 1 and left != right


def is_equality_of_columns(expression: Expr) -> bool:
    """Whether an expression is an equality of two columns."""
    from sqlglot.expressions import EQ, Column

    sides = (expression.this, expression.expression) if isinstance(expression, EQ) else ()
    return bool(sides) and all(isinstance(side, Column) for side in sides)


def _streams_in(expression: Expr) -> set[str]:
    """The streams whose columns are in an expression; the empty text for columns that name no stream."""
    from sqlglot.expressions import Column

    return {column.table for column in expression.find_all(Column)}


def _equality(expression: Expr) -> Equality:
    from sqlglot.expressions import EQ

    from thalweg.sql.dialect import readable

    if not isinstance(expression, EQ):
        raise ValueError(  # noqa: TRY004 - it is the text that is wrong
            f"{readable(expression)!r} is no equality of two attributes; write equalities like {EXAMPLE}"
        )
    first, second = sorted((key_of(expression.this), key_of(expression.expression)))
    if first.stream == second.stream:
        raise ValueError(
            f"'{first} = {second}' compares {first.stream} with itself; a self-join needs an alias for each use of "
            f"the stream, like 'a.{first.name} = b.{second.name}'"
        )
    return Equality(first, second)


def _quoted(name: str) -> str:
    """A name as Spark reads it: in backticks, if it is not a plain name."""
    return name if PLAIN_NAME.fullmatch(name) else "`{}`".format(name.replace("`", "``"))
