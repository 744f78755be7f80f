"""Equalities between the inputs of a query: which follow from others, and how selective they are together.

The rule for equalities that follow from one another is that of `thalweg.joinorder` (decision 0015): of T.a = U.b,
U.b = S.c and T.a = S.c only two count, those with the greatest selectivities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from thalweg.joinorder.graph import DEFAULT_SELECTIVITY
from thalweg.sql.query import EquiJoin, Expression


def equality_name(equality: EquiJoin) -> str:
    """The name under which the selectivity of an equality is kept: the same for both ways to write it.

    >>> from thalweg.sql.query import Position
    >>> left, right = (Expression(sql, frozenset("TU"), frozenset(), Position(1, 1)) for sql in ("`T`.`a`", "`U`.`b`"))
    >>> equality_name(EquiJoin(right, left))
    '`T`.`a` = `U`.`b`'
    """
    return " = ".join(sorted((equality.left.sql, equality.right.sql)))


class NamedEquality(NamedTuple):
    """An equality as estimates see it: its name, and the SQL of its sides."""

    name: str
    left: str
    right: str


def named_equality(equality: EquiJoin) -> NamedEquality:
    """An equality with its name."""
    return NamedEquality(equality_name(equality), equality.left.sql, equality.right.sql)


def implied_equalities(written: Iterable[EquiJoin]) -> tuple[EquiJoin, ...]:
    """The equalities between two inputs that follow from the written equalities and are not written."""
    equalities = tuple(written)
    classes: dict[str, dict[str, Expression]] = {}
    for equality in equalities:
        both = {
            side.sql: side
            for end in (equality.left, equality.right)
            for side in (end, *classes.get(end.sql, {}).values())
        }
        classes.update(dict.fromkeys(both, both))
    names = {equality_name(equality) for equality in equalities}
    distinct = {id(members): members for members in classes.values()}.values()
    pairs = (EquiJoin(*pair) for members in distinct for pair in combinations(members.values(), 2))
    return tuple(pair for pair in pairs if pair.left.inputs != pair.right.inputs and equality_name(pair) not in names)


def joint_selectivity(equalities: Iterable[NamedEquality], selectivities: Mapping[str, float]) -> float:
    """The share of all combinations of tuples for which all equalities hold.

    Equalities that follow from others with greater selectivities are left out; the rest are taken to be independent.

    >>> every = [NamedEquality(*text) for text in (("ab", "a", "b"), ("bc", "b", "c"), ("ac", "a", "c"))]
    >>> joint_selectivity(every, {"ab": 0.5, "bc": 0.125, "ac": 0.25})
    0.125
    """
    known = [(selectivities.get(equality.name, DEFAULT_SELECTIVITY), equality) for equality in equalities]
    if len(known) > 1:
        known.sort(key=lambda entry: -entry[0])
    classes: dict[str, str] = {}  # from an expression to an expression that is equal to it, up to a last expression
    share = 1.0
    for selectivity, equality in known:
        left, right = equality.left, equality.right
        while left in classes:
            left = classes[left]
        while right in classes:
            right = classes[right]
        if left != right:
            classes[left] = right
            share *= selectivity
    return share
