"""A query text as a value: `parse_query` reads it clause by clause, with names checked against a session's sources."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import expressions as e

from thalweg.sealed import short_digest
from thalweg.sql.clauses import check_statement
from thalweg.sql.conditions import Conditions, read_conditions
from thalweg.sql.functions import check_functions
from thalweg.sql.inputs import read_inputs
from thalweg.sql.outputs import Results, read_results
from thalweg.sql.query import ContinuousQuery, Expression, QueryInput, RoundWindow, Source
from thalweg.sql.query_text import QueryText
from thalweg.sql.window import split_window


def parse_query(text: str, sources: Sequence[Source], predicates: Collection[str] = ()) -> ContinuousQuery:
    """Parse the text of a continuous query, or raise a `QueryError` that says what to write instead.

    Parameters
    ----------
    text
        `SELECT ... FROM ... [WHERE ...] [GROUP BY ... [HAVING ...]] WINDOW [length SLIDE slide]` in Spark SQL.
    sources
        The streams and tables that the query may read.
    predicates
        The names of Python predicates that WHERE may call.

    Examples
    --------
    >>> tcp = Source("TCP", ("src_host", "dest_host", "bytes"))
    >>> hosts = Source("hosts", ("host", "owner"), is_stream=False)
    >>> query = parse_query(
    ...     "SELECT owner, sum(bytes) AS total FROM TCP JOIN hosts ON dest_host = host "
    ...     "WHERE bytes > 100 GROUP BY owner WINDOW [1 hour SLIDE 10 minutes]",
    ...     [tcp, hosts],
    ... )
    >>> [(output.name, output.expression.sql) for output in query.outputs]
    [('owner', '`hosts`.`owner`'), ('total', 'sum(`TCP`.`bytes`)')]
    >>> [(selection.alias, selection.shared_sql, selection.kind) for selection in query.selections]
    [('TCP', '`bytes` > 100', 'range')]
    >>> [(join.left.sql, join.right.sql) for join in query.equi_joins]
    [('`TCP`.`dest_host`', '`hosts`.`host`')]
    >>> query.window
    RoundWindow(length=3600000000, slide=600000000)
    """
    statement, window, select = _read_clauses(text)
    scope = read_inputs(select, sources, statement)
    conditions = read_conditions(select, scope, predicates)
    results = read_results(select, scope)
    expressions = [
        *(output.expression for output in results.outputs),
        *(selection.expression for selection in conditions.selections),
        *(side for join in conditions.equi_joins for side in (join.left, join.right)),
        *conditions.residuals,
        *results.group_by,
        *([] if results.having is None else [results.having]),
    ]
    inputs = tuple(
        QueryInput(
            alias=aliased.alias,
            source=aliased.source.name,
            is_stream=aliased.source.is_stream,
            columns=_columns_read(aliased.alias, aliased.source, expressions),
        )
        for aliased in scope.sources
    )
    is_distinct = bool(select.args.get("distinct"))
    return ContinuousQuery(
        text=text,
        digest=_digest(inputs, conditions, results, window, is_distinct=is_distinct),
        inputs=inputs,
        outputs=results.outputs,
        selections=conditions.selections,
        equi_joins=conditions.equi_joins,
        residuals=conditions.residuals,
        group_by=results.group_by,
        having=results.having,
        is_distinct=is_distinct,
        window=window,
    )


def check_clauses(text: str) -> None:
    """Check what needs no sources: the window, the clauses and the functions of a query text.

    >>> check_clauses("SELECT anything FROM anywhere WINDOW [10 seconds]")
    >>> check_clauses("SELECT anything FROM anywhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    thalweg.sql.errors.QueryError: the query has no window (line 1, column 22); end the query with ...
    """
    _read_clauses(text)


def _read_clauses(text: str) -> tuple[QueryText, RoundWindow, e.Select]:
    """The text before the window, the window, and the statement, with clauses and functions that a query may have."""
    statement, window = split_window(QueryText.of(text))
    select = check_statement(statement.parse(), statement)
    check_functions(select, statement)
    return statement, window, select


def _columns_read(alias: str, source: Source, expressions: Sequence[Expression]) -> tuple[str, ...]:
    """The columns of an input that any expression reads, in the order of its source."""
    read = frozenset[tuple[str, str]]().union(*(expression.columns for expression in expressions))
    return tuple(column for column in source.columns if (alias, column) in read)


def _digest(
    inputs: Sequence[QueryInput], conditions: Conditions, results: Results, window: RoundWindow, *, is_distinct: bool
) -> str:
    """A short name for the meaning of a query. Lengths before the lists tell apart where a list ends."""
    lists = [
        [text for source in inputs for text in (source.alias, source.source)],
        [text for output in results.outputs for text in (output.name, output.expression.sql)],
        [selection.expression.sql for selection in conditions.selections],
        [side.sql for join in conditions.equi_joins for side in (join.left, join.right)],
        [residual.sql for residual in conditions.residuals],
        [group.sql for group in results.group_by],
        [] if results.having is None else [results.having.sql],
        ["distinct"] if is_distinct else [],
        [str(window.length), str(window.slide)],
    ]
    return short_digest([text for texts in lists for text in (str(len(texts)), *texts)])
