"""Refuses the parts of Spark SQL that a continuous query does not have, each with its place and a way without it."""

from __future__ import annotations

from sqlglot import Token, TokenType
from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.sql.dialect import readable
from thalweg.sql.query_text import EXAMPLE, QueryText

_SUPPORTED_CLAUSES = frozenset({"expressions", "from", "joins", "where", "group", "having", "distinct"})
_SORT_LATER = "sort the results where they are read"
# Clauses of a SELECT by sqlglot's names: the words of the message, the kinds of tokens, and the hint.
_REFUSED_CLAUSES = {
    "with": ("WITH", (TokenType.WITH,), "register the inner query's result as a stream or a table of the session"),
    "hint": ("a hint", (TokenType.HINT,), "leave it out: Thalweg chooses the plan"),
    "laterals": ("LATERAL VIEW", (TokenType.LATERAL,), "compute the rows before they enter the stream"),
    "order": ("ORDER BY", (TokenType.ORDER_BY,), _SORT_LATER),
    "sort": ("SORT BY", (TokenType.SORT_BY,), _SORT_LATER),
    "cluster": ("CLUSTER BY", (TokenType.CLUSTER_BY,), _SORT_LATER),
    "distribute": ("DISTRIBUTE BY", (TokenType.DISTRIBUTE_BY,), "repartition the results where they are read"),
    "limit": ("LIMIT", (TokenType.LIMIT, TokenType.FETCH), "a round has all its results; select with WHERE or HAVING"),
    "offset": ("OFFSET", (TokenType.OFFSET,), "a round has all its results; select with WHERE or HAVING"),
    "qualify": ("QUALIFY", (TokenType.QUALIFY,), "select with WHERE or HAVING"),
    "windows": ("a named window", (TokenType.WINDOW,), "leave it out; the last clause is WINDOW [10 seconds]"),
}
_SET_OPERATIONS = "UNION, INTERSECT or EXCEPT"
_NO_SET_OPERATION = "add a query for each SELECT"
_NO_GROUPING_SETS = "add a query for each grouping"
_NO_SUBQUERY = "register the inner query's result as a stream or a table of the session, and join it"
_REFUSED_NODES: dict[type[Expr], tuple[str, str]] = {
    e.Subquery: ("a subquery", _NO_SUBQUERY),
    e.Select: ("a subquery", _NO_SUBQUERY),
    e.Exists: ("EXISTS with a subquery", _NO_SUBQUERY),
    e.SetOperation: (_SET_OPERATIONS, _NO_SET_OPERATION),
    e.Lateral: ("LATERAL", "compute the rows before they enter the stream"),
    e.Unnest: ("UNNEST", "compute the rows before they enter the stream"),
    e.Values: ("VALUES", "register the rows as a table of the session"),
    e.TableSample: (
        "TABLESAMPLE",
        "sample the stream before it is registered: session.stream(name, frame.sample(...))",
    ),
    e.Pivot: ("PIVOT", "write an aggregate with FILTER (WHERE ...) for each column"),
    e.Version: ("VERSION AS OF", "register that version as a table of the session"),
    e.Window: ("a window function (OVER)", "write an aggregate with GROUP BY: the rows of a round are its window"),
    e.Placeholder: ("a parameter", "write the value into the text"),
    e.Parameter: ("a parameter", "write the value into the text"),
    e.Cube: ("CUBE", _NO_GROUPING_SETS),
    e.Rollup: ("ROLLUP", _NO_GROUPING_SETS),
    e.GroupingSets: ("GROUPING SETS", _NO_GROUPING_SETS),
    e.Aliases: ("a list of names for one column", "write one name: AS name"),
}
_SUPPORTED_NODES = (
    # clauses
    *(e.Select, e.From, e.Join, e.Table, e.TableAlias, e.Where, e.Group, e.Having, e.Distinct, e.Alias, e.Star),
    # names and literals
    *(e.Column, e.Identifier, e.Dot, e.Bracket, e.Literal, e.Boolean, e.Null, e.RawString, e.HexString, e.Concat),
    *(e.Interval, e.IntervalSpan, e.Var),
    # operators
    *(e.And, e.Or, e.Not, e.Paren, e.EQ, e.NEQ, e.LT, e.LTE, e.GT, e.GTE, e.NullSafeEQ, e.NullSafeNEQ, e.Is, e.In),
    *(e.Between, e.Like, e.ILike, e.RegexpLike, e.Any, e.All, e.Escape, e.Tuple, e.Add, e.Sub, e.Mul, e.Div, e.Mod),
    *(e.IntDiv, e.Neg, e.DPipe, e.Collate, e.BitwiseAnd, e.BitwiseOr, e.BitwiseXor, e.BitwiseNot),
    *(e.BitwiseLeftShift, e.BitwiseRightShift, e.Case, e.If),
    # functions
    *(e.Anonymous, e.Lambda, e.Kwarg, e.Filter, e.WithinGroup, e.Order, e.Ordered, e.Cast, e.TryCast),
    *(e.DataType, e.DataTypeParam, e.ColumnDef, e.Extract, e.Overlay, e.StrPosition, e.Substring, e.Trim),
    # functions that are refused with a reason of their own
    *(e.CurrentDate, e.CurrentTime, e.CurrentTimestamp, e.Localtime, e.Localtimestamp, e.IgnoreNulls, e.RespectNulls),
)
_SUPPORTED_TABLE = frozenset({"this", "alias"})
_SUPPORTED_JOIN = frozenset({"this", "on", "using", "kind"})


def check_statement(statement: Expr, text: QueryText) -> e.Select:
    """The statement, if it is a SELECT whose clauses, joins and expressions a continuous query may have."""
    if isinstance(statement, e.SetOperation):
        place = text.last_token(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT)
        raise text.error(f"{_SET_OPERATIONS} is not supported", place, _NO_SET_OPERATION)
    if not isinstance(statement, e.Select):
        raise text.error("a query is a SELECT", text.tokens[0], f"write it like {EXAMPLE}")
    for key, _ in _given(statement):
        if key in _REFUSED_CLAUSES:
            words, kinds, hint = _REFUSED_CLAUSES[key]
            raise text.error(f"{words} is not supported", text.last_token(*kinds), hint)
        if key not in _SUPPORTED_CLAUSES:
            raise text.error("this kind of SELECT is not supported", text.tokens[0], f"write it like {EXAMPLE}")
    if statement.find(e.From) is None:
        raise text.error("the query reads no stream: it has no FROM", text.tokens[0], f"write it like {EXAMPLE}")
    for node in statement.walk():
        if node is not statement:
            _check_node(node, text)
    for join in statement.args.get("joins") or []:
        _check_join(join, text)
    for table in statement.find_all(e.Table):
        _check_table(table, text)
    distinct = statement.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise text.error("DISTINCT ON is not supported", distinct, "write DISTINCT, or an aggregate with GROUP BY")
    return statement


def _given(node: Expr) -> list[tuple[str, object]]:
    """The arguments of a node that are there. sqlglot appends _ to some keys in newer versions."""
    return [(key.rstrip("_"), value) for key, value in node.args.items() if value]


def _check_join(join: Expr, text: QueryText) -> None:
    words = [str(join.args[key]).upper() for key in ("method", "side", "kind") if join.args.get(key)]
    cross = _cross_join(text)
    if words == ["CROSS"] and cross is not None:  # a comma in FROM is of that kind, too
        hint = "write JOIN ... ON, with an equality of a column of each side"
        raise text.error("CROSS JOIN is not supported", cross, hint)
    if words not in ([], ["INNER"], ["CROSS"]) or {key for key, _ in _given(join)} - _SUPPORTED_JOIN:
        hint = "write an inner join: JOIN ... ON, with an equality of a column of each side"
        raise text.error(f"{' '.join([*words, 'JOIN'])} is not supported", join.this, hint)


def _cross_join(text: QueryText) -> Token | None:
    pairs = zip(text.tokens, text.tokens[1:], strict=False)
    cross_join = (TokenType.CROSS, TokenType.JOIN)
    return next((first for first, second in pairs if (first.token_type, second.token_type) == cross_join), None)


def _check_table(table: e.Table, text: QueryText) -> None:
    if not isinstance(table.this, e.Identifier):
        raise text.error("FROM has a function instead of a stream", table, "register its result as a table")
    extras = [key for key, _ in _given(table) if key not in _SUPPORTED_TABLE]
    if "db" in extras:
        hint = "write the name under which the session knows the stream or table"
        raise text.error(f"{readable(table)} is no name of a stream", table, hint)
    if extras:
        raise text.error(f"a clause after {table.name} is not supported", table, f"write FROM {table.name} without it")
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        hint = "give the stream an alias, and its columns new names in SELECT"
        raise text.error("a list of names for columns is not supported", alias, hint)


def _check_node(node: Expr, text: QueryText) -> None:
    for kind, (words, hint) in _REFUSED_NODES.items():
        if isinstance(node, kind):
            raise text.error(f"{words} is not supported", node, hint)
    is_misplaced_order = isinstance(node, e.Order) and not isinstance(node.parent, e.WithinGroup)
    is_qualified_function = isinstance(node, e.Dot) and not isinstance(node.expression, e.Identifier)
    if type(node) not in _SUPPORTED_NODES or is_misplaced_order or is_qualified_function:
        hint = "write it with operators and functions of Spark SQL"
        raise text.error(f"{readable(node)} is not supported", node, hint)
