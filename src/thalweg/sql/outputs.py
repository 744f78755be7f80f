"""The columns of a query's result, and the groups of rows they are computed of: SELECT, GROUP BY and HAVING."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import TokenType
from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.sql.dialect import readable, render
from thalweg.sql.functions import function_name, has_aggregate, is_aggregate
from thalweg.sql.inputs import Scope
from thalweg.sql.query import Expression, Output

RESERVED_NAMES = ("round_start", "round_end")  # a session adds these columns to every result


@dataclass(frozen=True)
class SelectedColumn:
    """A column of the result: its name, its resolved expression, and whether the name is an alias in the text."""

    name: str
    tree: Expr
    is_alias: bool


@dataclass(frozen=True)
class Results:
    """The SELECT, GROUP BY and HAVING clauses."""

    outputs: tuple[Output, ...]
    group_by: tuple[Expression, ...]
    having: Expression | None


def read_results(select: e.Select, scope: Scope) -> Results:
    """The result columns, groups and condition on groups of a query."""
    selected = list(_selected_columns(select, scope))
    _check_names(selected, scope)
    groups = [_group(item, selected, scope) for item in _group_items(select, scope)]
    grouped = {render(group) for group in groups}
    having = select.args.get("having")
    condition = None if having is None else _resolve_having(having.this, selected, grouped, scope)
    if groups or condition is not None or any(has_aggregate(column.tree) for column in selected):
        for tree in (*(column.tree for column in selected), *([] if condition is None else [condition])):
            _check_grouped(tree, grouped, scope)
    outputs = [Output(column.name, scope.expression(column.tree), has_aggregate(column.tree)) for column in selected]
    return Results(
        tuple(outputs),
        tuple(scope.expression(group) for group in groups),
        None if condition is None else scope.expression(condition),
    )


def _selected_columns(select: e.Select, scope: Scope) -> Iterator[SelectedColumn]:
    if not select.expressions:
        hint = "name columns after SELECT, or write SELECT *"
        raise scope.text.error("SELECT names no column", scope.text.tokens[0], hint)
    for item in select.expressions:
        if isinstance(item, e.Star) or (isinstance(item, e.Column) and isinstance(item.this, e.Star)):
            yield from _star(item, scope)
        elif isinstance(item, e.Alias):
            yield SelectedColumn(item.alias, scope.resolve(item.this), is_alias=True)
        else:
            tree = scope.resolve(item)
            name = tree.name if isinstance(tree, e.Column | e.Dot) else readable(item)
            yield SelectedColumn(name, tree, is_alias=False)


def _star(item: Expr, scope: Scope) -> Iterator[SelectedColumn]:
    star = item if isinstance(item, e.Star) else item.this
    if any(star.args.values()):
        raise scope.text.error("* with exceptions is not supported", item, "name the columns")
    columns = scope.columns_of(item) if isinstance(item, e.Column) else scope.star_columns
    for alias, name in columns:
        table = e.to_identifier(alias, quoted=True)
        table.meta.update(star.meta)
        yield SelectedColumn(name, e.Column(this=e.to_identifier(name, quoted=True), table=table), is_alias=False)


def _check_names(selected: Sequence[SelectedColumn], scope: Scope) -> None:
    names = [column.name.lower() for column in selected]
    for index, column in enumerate(selected):
        other = f"{readable(column.tree).replace('`', '')} AS another_name"
        if column.name.lower() in RESERVED_NAMES:
            message = f"every result has a column {column.name.lower()} already: the bounds of its round"
            raise scope.text.error(message, column.tree, f"write {other}")
        if column.name.lower() in names[:index]:
            message = f"two columns of the result are called {column.name}"
            raise scope.text.error(message, column.tree, f"name the columns, and write {other}")


def _group_items(select: e.Select, scope: Scope) -> Sequence[Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    unsupported = [key for key, value in group.args.items() if value and key != "expressions"]
    if unsupported:
        word = unsupported[0].replace("_", " ").upper()
        hint = "write the expressions to group by; add a query for each other grouping"
        raise scope.text.error(
            f"GROUP BY with {word} is not supported", scope.text.last_token(TokenType.GROUP_BY), hint
        )
    return list(group.expressions)


def _group(item: Expr, selected: Sequence[SelectedColumn], scope: Scope) -> Expr:
    """A resolved expression to group by. As in Spark: an ordinal, or input columns before aliases of the result."""
    if isinstance(item, e.Literal) and item.is_int:
        ordinal = int(item.name)
        if not 1 <= ordinal <= len(selected):
            hint = f"write a number from 1 to {len(selected)}, or the expression"
            raise scope.text.error(f"the result has no column {ordinal}", item, hint)
        tree = selected[ordinal - 1].tree.copy()
    else:
        aliases = {name: tree for name, tree in _aliases(selected).items() if not scope.find(name)}
        tree = scope.resolve(_replace_aliases(item, aliases)).unnest()
    for node in tree.walk():
        if is_aggregate(node):
            message = f"{function_name(node)} is an aggregate, and groups are made before it is computed"
            raise scope.text.error(message, item, "group by expressions of single rows")
    return tree


def _resolve_having(
    condition: Expr, selected: Sequence[SelectedColumn], grouped: Collection[str], scope: Scope
) -> Expr:
    """The condition on groups. As in Spark: grouped input columns before aliases of the result before other columns."""
    aliases = {
        name: tree
        for name, tree in _aliases(selected).items()
        if not any(f"`{alias}`.`{column}`" in grouped for alias, column in scope.find(name))
    }
    return scope.resolve(_replace_aliases(condition, aliases))


def _aliases(selected: Sequence[SelectedColumn]) -> dict[str, Expr]:
    return {column.name.lower(): column.tree for column in selected if column.is_alias}


def _replace_aliases(tree: Expr, aliases: dict[str, Expr]) -> Expr:
    """The expression with aliases of the result replaced by their expressions, but not in arguments of aggregates."""

    def replace(node: Expr) -> Expr:
        is_alias = isinstance(node, e.Column) and not node.table and node.name.lower() in aliases
        if not is_alias or _is_in_aggregate(node):
            return node
        meaning = aliases[node.name.lower()].copy()
        return meaning if isinstance(meaning, e.Column | e.Anonymous | e.Literal) else e.Paren(this=meaning)

    return tree.transform(replace)


def _is_in_aggregate(node: Expr) -> bool:
    ancestor = node.parent
    while ancestor is not None and not is_aggregate(ancestor):
        ancestor = ancestor.parent
    return ancestor is not None


def _check_grouped(tree: Expr, grouped: Collection[str], scope: Scope) -> None:
    """Refuse columns outside of aggregates that rows of one group may differ in."""
    if is_aggregate(tree) or isinstance(tree, e.Filter | e.WithinGroup) or render(tree) in grouped:
        return
    if isinstance(tree, e.Column):
        name = readable(tree).replace("`", "")
        hint = f"add {name} to GROUP BY, or write an aggregate such as max({name})"
        raise scope.text.error(f"{name} is neither grouped by nor in an aggregate", tree, hint)
    for child in tree.iter_expressions():
        _check_grouped(child, grouped, scope)
