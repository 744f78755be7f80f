"""Gives the columns of an expression other names, in its parsed form."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one

from thalweg.sql.dialect import VerbatimSpark, render
from thalweg.sql.functions import is_aggregate


def with_columns_renamed(sql: str, names: Mapping[tuple[str, ...], str]) -> str:
    """An expression with other names for its columns: for a plain name, or for an alias and a name.

    >>> with_columns_renamed("`a` > 5 AND upper(`b`.`field`) = 'X'", {("a",): "s:a", ("b",): "s:b"})
    "`s:a` > 5 AND upper(`s:b`.`field`) = 'X'"
    >>> with_columns_renamed("`t`.`a` + 1", {("t", "a"): "s:a"})
    '`s:a` + 1'
    """
    tree = parse_one(sql, dialect=VerbatimSpark)
    for column in list(tree.find_all(exp.Column)):
        parts = [part.name for part in column.parts]
        known = next((parts[:count] for count in range(1, len(parts) + 1) if tuple(parts[:count]) in names), None)
        if known is None or _is_parameter(column, parts[0]):
            continue
        first = exp.to_identifier(names[tuple(known)], quoted=True)
        renamed = (
            exp.Dot.build([exp.Column(this=first), *column.parts[len(known) :]])
            if parts[len(known) :]
            else exp.Column(this=first)
        )
        if column is tree:
            tree = renamed
        else:
            column.replace(renamed)
    return render(tree)


def with_keys_replaced(sql: str, keys: Mapping[str, str]) -> str:
    """An expression over groups with columns in the place of the keys, but not in arguments of aggregates.

    >>> with_keys_replaced("upper(`a`.`s`) || max(`a`.`s`)", {"`a`.`s`": "key0"})
    'upper(`key0`) || max(`a`.`s`)'
    >>> with_keys_replaced("`a`.`x` + 1", {"`a`.`x` + 1": "key0", "`a`.`x`": "key1"})
    '`key0`'
    """
    names = {render(parse_one(key, dialect=VerbatimSpark)): name for key, name in keys.items()}

    def replaced(node: exp.Expr) -> exp.Expr:
        if is_aggregate(node) or isinstance(node, exp.Filter | exp.WithinGroup):
            return node
        name = names.get(render(node))
        if name is not None:
            return exp.Column(this=exp.to_identifier(name, quoted=True))
        for child in list(node.iter_expressions()):
            other = replaced(child)
            if other is not child:
                child.replace(other)
        return node

    return render(replaced(parse_one(sql, dialect=VerbatimSpark)))


def _is_parameter(column: exp.Column, name: str) -> bool:
    """Whether a name is the parameter of a lambda function around it."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(parameter.name == name for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False
