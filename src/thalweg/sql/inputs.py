"""The inputs of a query, from its FROM clause, and the columns that names in the query mean."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.registry import hint as nearest
from thalweg.sql.dialect import readable, render
from thalweg.sql.query import EquiJoin, Expression, Source
from thalweg.sql.query_text import QueryText

MOST_INPUTS = 6
InputColumn = tuple[str, str]  # an alias and a column


@dataclass(frozen=True)
class AliasedSource:
    """A source in the FROM clause under its alias, and its place in the text."""

    alias: str
    source: Source
    table: e.Table


@dataclass(frozen=True)
class Scope:
    """The columns that expressions of a query may name.

    star_columns are the columns of SELECT *. merged_columns are the columns on the right side of USING: a name without
    an alias means the column on the left side.
    """

    text: QueryText
    sources: tuple[AliasedSource, ...]
    star_columns: tuple[InputColumn, ...]
    merged_columns: frozenset[InputColumn]
    using_joins: tuple[EquiJoin, ...]

    def find(self, name: str) -> list[InputColumn]:
        """The columns that a name without an alias may mean."""
        found = [
            (source.alias, column)
            for source in self.sources
            for column in source.source.columns
            if column.lower() == name.lower()
        ]
        return [column for column in found if column not in self.merged_columns]

    def resolve(self, tree: Expr) -> Expr:
        """The expression with every column as alias and column, spelt as the source spells it."""
        return tree.transform(lambda node: self._resolve_column(node) if isinstance(node, e.Column) else node)

    def expression(self, tree: Expr) -> Expression:
        """A resolved expression as a value."""
        columns = frozenset((column.table, column.name) for column in tree.find_all(e.Column))
        inputs = frozenset(alias for alias, _ in columns)
        return Expression(render(tree), inputs, columns, self.text.position(tree))

    def _resolve_column(self, column: e.Column) -> Expr:
        if isinstance(column.this, e.Star):
            hint = "name the columns, or write count(*) to count rows"
            raise self.text.error(f"{readable(column)} is not supported here", column, hint)
        parts = column.parts
        source = self.find_source(parts[0].name)
        if source is not None and len(parts) > 1:
            names = [name for name in source.source.columns if name.lower() == parts[1].name.lower()]
            if names:
                return _column(source.alias, names[0], parts[0], parts[2:])
        found = self.find(parts[0].name)
        if len(found) == 1:
            return _column(*found[0], parts[0], parts[1:])
        if found:
            spellings = " or ".join(f"{alias}.{name}" for alias, name in found)
            raise self.text.error(f"{parts[0].name} is a column of several inputs", column, f"write {spellings}")
        if len(parts) == 1:
            raise self._unknown(parts[0].name, [name for _, name in self.star_columns], "the query's inputs", column)
        raise self._unknown(parts[1].name, [name for _, name in self.columns_of(column)], parts[0].name, column)

    def columns_of(self, column: e.Column) -> list[InputColumn]:
        """All columns of the input whose alias is the first part of a name."""
        alias = column.parts[0].name
        source = self.find_source(alias)
        if source is None:
            aliases = ", ".join(source.alias for source in self.sources)
            raise self.text.error(f"{alias} is no input of the query", column, f"write one of its inputs: {aliases}")
        return [(source.alias, name) for name in source.source.columns]

    def find_source(self, alias: str) -> AliasedSource | None:
        """The source with this alias."""
        return next((source for source in self.sources if source.alias.lower() == alias.lower()), None)

    def _unknown(self, name: str, known: Sequence[str], owner: str, place: Expr) -> Exception:
        hint = f"write one of the columns: {', '.join(dict.fromkeys(known))}"
        return self.text.error(f"there is no column {name!r} in {owner}{nearest(name, known).rstrip('.')}", place, hint)


def read_inputs(select: e.Select, known_sources: Collection[Source], text: QueryText) -> Scope:
    """The scope that the FROM clause of a query opens.

    >>> from thalweg.sql.query_text import QueryText
    >>> text = QueryText.of("SELECT * FROM TCP AS a JOIN tcp AS b USING (host)")
    >>> scope = read_inputs(text.parse(), [Source("TCP", ("host", "bytes"))], text)
    >>> scope.star_columns
    (('a', 'host'), ('a', 'bytes'), ('b', 'bytes'))
    >>> [join.left.sql + " = " + join.right.sql for join in scope.using_joins]
    ['`a`.`host` = `b`.`host`']
    """
    scope = Scope(text, (), (), frozenset(), ())
    for table, using in _tables(select):
        source = _aliased_source(table, known_sources, text)
        if scope.find_source(source.alias) is not None:
            hint = f"give each an alias of its own: {source.source.name} AS a, {source.source.name} AS b"
            raise text.error(f"two inputs are called {source.alias}", table, hint)
        if len(scope.sources) == MOST_INPUTS:
            hint = "register the result of a join as a stream of the session, and join that"
            raise text.error(f"a query has at most {MOST_INPUTS} inputs", table, hint)
        scope = _add_source(scope, source, using)
    if not any(source.source.is_stream for source in scope.sources):
        hint = "add a stream: a query runs once for each round of a stream's time"
        raise text.error("the query reads tables and no stream", scope.sources[0].table, hint)
    return scope


def _tables(select: e.Select) -> Iterator[tuple[e.Table, list[e.Identifier]]]:
    """The tables in the FROM clause, as written, each with the names in USING."""
    first = select.find(e.From)
    assert first is not None, "check_statement has seen it"  # noqa: S101
    yield first.this, []
    for join in select.args.get("joins") or []:
        yield join.this, join.args.get("using") or []


def _aliased_source(table: e.Table, known_sources: Collection[Source], text: QueryText) -> AliasedSource:
    for source in known_sources:
        if source.name.lower() == table.name.lower():
            return AliasedSource(table.alias or source.name, source, table)
    names = [source.name for source in known_sources]
    message = f"there is no stream or table {table.name!r}{nearest(table.name, names).rstrip('.')}"
    raise text.error(
        message, table, f"write the name of a source of the session: {', '.join(names) or 'it has none yet'}"
    )


def _add_source(scope: Scope, source: AliasedSource, using: Sequence[e.Identifier]) -> Scope:
    """The scope with a further input. As in Spark, SELECT * gives the columns of USING first, and only once."""
    own = tuple((source.alias, column) for column in source.source.columns)
    with_source = Scope(scope.text, (source,), own, frozenset(), ())
    lefts, rights, joins = list[InputColumn](), list[InputColumn](), list[EquiJoin]()
    for name in using:
        column = e.Column(this=name.copy())
        join = EquiJoin(scope.expression(scope.resolve(column)), scope.expression(with_source.resolve(column)))
        lefts += join.left.columns
        rights += join.right.columns
        joins.append(join)
    others = [column for column in (*scope.star_columns, *own) if column not in lefts and column not in rights]
    return Scope(
        scope.text,
        (*scope.sources, source),
        (*lefts, *others),
        scope.merged_columns.union(rights),
        (*scope.using_joins, *joins),
    )


def _column(alias: str, name: str, first: Expr, fields: Sequence[Expr]) -> Expr:
    """A column, or a field of a struct in it, at the place of the first part of its name."""
    table = e.to_identifier(alias, quoted=True)
    table.meta.update(first.meta)
    tree: Expr = e.Column(this=e.to_identifier(name, quoted=True), table=table)
    for field in fields:
        tree = e.Dot(this=tree, expression=e.to_identifier(field.name, quoted=True))
    return tree
