"""Gives the columns of an expression other names, in its parsed form."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp, parse_one

from thalweg.sql.dialect import VerbatimSpark, render


def with_columns_renamed(sql: str, names: Mapping[str, str]) -> str:
    """An expression whose columns have plain names, with other names for them.

    >>> with_columns_renamed("`a` > 5 AND upper(`b`.`field`) = 'X'", {"a": "s:a", "b": "s:b"})
    "`s:a` > 5 AND upper(`s:b`.`field`) = 'X'"
    """
    tree = parse_one(sql, dialect=VerbatimSpark)
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        if first.name in names and not _is_parameter(column, first.name):
            first.replace(exp.to_identifier(names[first.name], quoted=True))
    return render(tree)


def _is_parameter(column: exp.Column, name: str) -> bool:
    """Whether a name is the parameter of a lambda function around it."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(parameter.name == name for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False
