"""Join conditions as text: which attributes of which streams must be equal, and which equalities follow.

Equality is transitive, so the equalities of a condition fall into classes of attributes. Two questions are answered
from the classes: which equalities are enough to say the same (the reduction: a natural join of n streams, written
with all its pairs, needs n - 1; a-greedy-2004, section 8) and which follow without being written (the closure: more
orders to choose from). Knows no rates and no selectivities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

EXAMPLE = '"R1.pid = R2.pid AND R2.pid = R3.pid"'
QUERY = '"SELECT * FROM R1 JOIN R2 ON R1.pid = R2.pid JOIN R3 ON R2.ip = R3.ip"'


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
        return f"{self.stream}.{self.name}"


class Equality(NamedTuple):
    """Two attributes of two streams that must be equal, in alphabetical order."""

    left: Attribute
    right: Attribute

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


def parse_condition(text: str) -> tuple[Equality, ...]:
    """The equalities of a conjunction, as written but for repetitions.

    >>> [str(equality) for equality in parse_condition("R2.pid = R1.pid AND (R2.ip = R3.source)")]
    ['R1.pid = R2.pid', 'R2.ip = R3.source']
    """
    import sqlglot
    from sqlglot import expressions
    from sqlglot.errors import SqlglotError

    try:
        condition = sqlglot.parse_one(text, into=expressions.Condition)
    except SqlglotError as error:
        raise ValueError(f"the join condition {text!r} does not parse; write equalities like {EXAMPLE}") from error
    except RecursionError:
        raise ValueError(f"the join condition {text!r:.80} nests too deep; write equalities like {EXAMPLE}") from None
    return tuple(dict.fromkeys(_equality(conjunct) for conjunct in _conjuncts(condition)))


def join_condition(query: str) -> tuple[str, tuple[str, ...]]:
    """The join condition of a query, and its conditions on single streams. A mere condition is returned as it is.

    >>> join_condition("SELECT * FROM R1 JOIN R2 ON R1.pid = R2.pid, R3 AS c WHERE c.ip = R2.ip AND c.port < 1024")
    ('R1.pid = R2.pid AND R2.ip = c.ip', ('c.port < 1024',))
    """
    import sqlglot
    from sqlglot import expressions
    from sqlglot.errors import SqlglotError

    if not query.lstrip().upper().startswith("SELECT "):
        return query, ()
    try:
        select = sqlglot.parse_one(query)
    except SqlglotError as error:
        raise ValueError(f"the query {query!r} does not parse; write it like {QUERY}") from error
    except RecursionError:
        raise ValueError(f"the query {query!r:.80} nests too deep; write it like {QUERY}") from None
    joins = select.args.get("joins") or []
    for source in (*joins, *select.find_all(expressions.Subquery)):
        if isinstance(source, expressions.Subquery) or source.side or source.method or source.args.get("using"):
            raise ValueError(f"{source.sql()!r} is not understood; write a query like {QUERY}")
    where = select.args.get("where")
    clauses = [*(join.args["on"] for join in joins if join.args.get("on")), *([where.this] if where else [])]
    equalities, filters = [], []
    for conjunct in (each for clause in clauses for each in _conjuncts(clause)):
        if len({column.table for column in conjunct.find_all(expressions.Column)}) > 1:
            equalities.append(_equality(conjunct))
        else:
            filters.append(conjunct.sql())
    if not equalities:
        raise ValueError(f"the query {query!r} joins nothing; write it like {QUERY}")
    streams = {table.alias_or_name for table in select.find_all(expressions.Table)}
    for attribute in (each for equality in equalities for each in equality):
        if attribute.stream not in streams:
            raise ValueError(f"of which stream is {str(attribute)!r}? The query is FROM {', '.join(sorted(streams))}")
    return " AND ".join(map(str, equalities)), tuple(filters)


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


def _conjuncts(condition: Expr) -> Iterator[Expr]:
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


def _equality(expression: Expr) -> Equality:
    from sqlglot.expressions import EQ

    if not isinstance(expression, EQ):
        raise ValueError(  # noqa: TRY004 - it is the text that is wrong
            f"{expression.sql()!r} is no equality of two attributes; write equalities like {EXAMPLE}"
        )
    first, second = sorted((_attribute(expression.this), _attribute(expression.expression)))
    if first.stream == second.stream:
        raise ValueError(
            f"'{first} = {second}' compares {first.stream} with itself; a self-join needs an alias for each use of "
            f"the stream, like 'a.{first.name} = b.{second.name}'"
        )
    return Equality(first, second)


def _attribute(expression: Expr) -> Attribute:
    from sqlglot.expressions import Column

    if not isinstance(expression, Column):
        raise ValueError(  # noqa: TRY004 - it is the text that is wrong
            f"{expression.sql()!r} is no attribute of a stream; write it like 'R1.pid'"
        )
    if not expression.table:
        raise ValueError(f"of which stream is {expression.name!r}? Write it like 'R1.{expression.name}'")
    return Attribute(expression.table, expression.name)
