"""Equalities between the inputs of a query: which follow from others, and how selective they are together.

The rule for equalities that follow from one another is that of `thalweg.joinorder` (decision 0015): of T.a = U.b,
U.b = S.c and T.a = S.c only two count, those with the greatest selectivities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations

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


def joint_selectivity(equalities: Iterable[EquiJoin], selectivities: Mapping[str, float]) -> float:
    """The share of all combinations of tuples for which all equalities hold.

    Equalities that follow from others with greater selectivities are left out; the rest are taken to be independent.
    """
    by_selectivity = sorted(
        ((selectivities.get(equality_name(equality), DEFAULT_SELECTIVITY), equality) for equality in equalities),
        key=lambda entry: -entry[0],
    )
    parents: dict[str, str] = {}

    def representative(sql: str) -> str:
        while sql in parents:
            sql = parents[sql]
        return sql

    counted = []
    for selectivity, equality in by_selectivity:
        left, right = representative(equality.left.sql), representative(equality.right.sql)
        if left != right:
            parents[left] = right
            counted.append(selectivity)
    return math.prod(counted)
