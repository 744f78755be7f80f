"""Query texts as values: every clause, every name, every refusal with its place, and the digest."""

import random

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.sql.errors import QueryError
from thalweg.sql.parse import parse_query
from thalweg.sql.query import ContinuousQuery, Position, PredicateCall, Source

SOURCES = (
    Source("TCP", ("src_host", "dest_host", "bytes", "body", "ts")),
    Source("UDP", ("src_host", "dest_host", "size", "ts")),
    Source("hosts", ("Host", "owner"), is_stream=False),
    Source("odd`name", ("a b", "c`d")),
)


def parse(text: str) -> ContinuousQuery:
    return parse_query(f"{text} WINDOW [1]", SOURCES, ["is_spam"])


def outputs(query: ContinuousQuery) -> list[str]:
    return [f"{output.expression.sql} AS {output.name}" for output in query.outputs]


def conditions(query: ContinuousQuery) -> list[str]:
    return [
        *(f"{selection.alias}: {selection.shared_sql}" for selection in query.selections),
        *(f"{join.left.sql} = {join.right.sql}" for join in query.equi_joins),
        *(f"residual {residual.sql}" for residual in query.residuals),
    ]


def test_the_single_stream_query_of_the_paper() -> None:
    text = "SELECT TCP.src_host, TCP.dest_host FROM TCP WHERE TCP.dest_host=2 WINDOW [1]"
    query = parse_query(text, SOURCES)
    assert query.text == text
    assert outputs(query) == ["`TCP`.`src_host` AS src_host", "`TCP`.`dest_host` AS dest_host"]
    (selection,) = query.selections
    assert (selection.alias, selection.expression.sql) == ("TCP", "`TCP`.`dest_host` = 2")
    assert (selection.shared_sql, selection.kind, selection.call) == ("`dest_host` = 2", "equality", None)
    assert selection.expression.inputs == {"TCP"}
    assert selection.expression.columns == {("TCP", "dest_host")}
    assert selection.expression.position == Position(1, 51)
    assert query.inputs[0].columns == ("src_host", "dest_host")
    assert not query.is_aggregated


def test_the_multi_stream_query_of_the_paper_with_its_columns_named() -> None:
    query = parse_query(
        "SELECT TCP.bytes FROM TCP, UDP, TCP AS SF "
        "WHERE TCP.src_host=UDP.dest_host and UDP.dest_host=SF.dest_host WINDOW [1]",
        SOURCES,
    )
    assert conditions(query) == ["`TCP`.`src_host` = `UDP`.`dest_host`", "`UDP`.`dest_host` = `SF`.`dest_host`"]
    assert [(source.alias, source.source, source.columns) for source in query.inputs] == [
        ("TCP", "TCP", ("src_host", "bytes")),
        ("UDP", "UDP", ("dest_host",)),
        ("SF", "TCP", ("dest_host",)),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM UDP", ["src_host", "dest_host", "size", "ts"]),
        ("SELECT u.*, bytes FROM UDP u JOIN TCP t USING (ts)", ["src_host", "dest_host", "size", "ts", "bytes"]),
        ("SELECT * FROM hosts a JOIN hosts b USING (HOST) JOIN TCP ON body = Host AND a.owner = 1", None),
        ("SELECT bytes b, BYTES AS `B b`, tcp.Bytes FROM tcp", ["b", "B b", "bytes"]),
        ("SELECT body.x.y, TCP.body.z, body[0], body['k'].f FROM TCP", ["y", "z", "body[0]", "f"]),
        ("SELECT SUM( bytes ) + 1, count(*) FROM TCP", ["sum(bytes) + 1", "count(*)"]),
        ("SELECT `c``d` FROM `odd``name`", ["c`d"]),
    ],
)
def test_names_of_outputs(text: str, expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(QueryError, match="two columns of the result are called owner"):
            parse(text)
    else:
        assert [output.name for output in parse(text).outputs] == expected


def test_columns_are_spelt_as_the_source_spells_them() -> None:
    query = parse("SELECT HOST, h.OWNER AS o, tcp.BODY.Field FROM tcp, HOSTS h WHERE HOST = SRC_host")
    assert outputs(query) == ["`h`.`Host` AS Host", "`h`.`owner` AS o", "`TCP`.`body`.`Field` AS Field"]
    assert [source.source for source in query.inputs] == ["TCP", "hosts"]
    assert [source.is_stream for source in query.inputs] == [True, False]


def test_names_in_backticks() -> None:
    query = parse("SELECT `c``d` FROM `odd``name` AS `x``y` WHERE `a b` > 5")
    assert outputs(query) == ["`x``y`.`c``d` AS c`d"]
    assert query.selections[0].shared_sql == "`a b` > 5"


def test_an_alias_comes_before_a_column_of_its_name() -> None:
    query = parse_query("SELECT b.b, b.c FROM s AS b WINDOW [1]", [Source("s", ("a", "b"))])
    assert outputs(query) == ["`b`.`b` AS b", "`b`.`b`.`c` AS c"]


def test_parameters_of_lambda_functions_are_no_columns() -> None:
    query = parse("SELECT transform(body, x -> x.f + bytes) AS sums FROM TCP")
    assert outputs(query) == ["transform(`TCP`.`body`, `x` -> `x`.`f` + `TCP`.`bytes`) AS sums"]
    assert query.inputs[0].columns == ("bytes", "body")


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("bytes = 5", "equality"),
        ("5 = bytes", "equality"),
        ("body.f == 'x'", "equality"),
        ("ts = TIMESTAMP '2020-01-01 00:00:00'", "equality"),
        ("bytes IN (1, -2, 3L)", "equality"),
        ("bytes < 5", "range"),
        ("-5 >= bytes", "range"),
        ("(bytes BETWEEN 1 AND 5)", "range"),
        ("bytes = NULL", "other"),
        ("bytes <> 5", "other"),
        ("bytes + 1 = 5", "other"),
        ("bytes = ts", "other"),
        ("bytes NOT IN (1, 2)", "other"),
        ("bytes BETWEEN 1 AND ts", "other"),
        ("body LIKE 'a%'", "other"),
        ("bytes = 1 OR bytes = 2", "other"),
        ("CASE WHEN bytes > 1 THEN true END", "other"),
    ],
)
def test_kinds_of_selections(condition: str, kind: str) -> None:
    (selection,) = parse("SELECT ts FROM TCP WHERE " + condition).selections  # noqa: S608
    assert selection.kind == kind


def test_the_conjunction_of_on_and_where_is_taken_apart() -> None:
    query = parse(
        "SELECT a.ts FROM TCP a JOIN UDP b ON (a.src_host = upper(b.src_host) AND b.size > 5), hosts "
        "WHERE (Host = a.dest_host AND a.bytes > b.size) AND a.bytes + size = 7 AND 1 = 1 AND a.ts <=> b.ts"
    )
    assert conditions(query) == [
        "b: `size` > 5",
        "`a`.`src_host` = upper(`b`.`src_host`)",
        "`hosts`.`Host` = `a`.`dest_host`",
        "residual `a`.`bytes` > `b`.`size`",
        "residual `a`.`bytes` + `b`.`size` = 7",
        "residual 1 = 1",
        "residual `a`.`ts` IS NOT DISTINCT FROM `b`.`ts`",
    ]


def test_columns_of_using_are_one_and_come_first() -> None:
    query = parse(
        "SELECT UDP.size, ts FROM TCP JOIN UDP USING (ts, src_host, dest_host) JOIN TCP c USING (ts) "
        "WHERE ts > 5 AND c.ts = 1"
    )
    assert outputs(query) == ["`UDP`.`size` AS size", "`TCP`.`ts` AS ts"]
    assert conditions(query) == [
        "TCP: `ts` > 5",
        "c: `ts` = 1",
        "`TCP`.`ts` = `UDP`.`ts`",
        "`TCP`.`src_host` = `UDP`.`src_host`",
        "`TCP`.`dest_host` = `UDP`.`dest_host`",
        "`TCP`.`ts` = `c`.`ts`",
    ]
    star = parse("SELECT * FROM TCP JOIN UDP USING (ts, src_host, dest_host)")
    assert [output.name for output in star.outputs] == ["ts", "src_host", "dest_host", "bytes", "body", "size"]


@pytest.mark.parametrize(
    ("condition", "call"),
    [
        ("is_spam(body)", PredicateCall("is_spam", ("body",), negated=False)),
        ("NOT IS_SPAM(TCP.body, bytes)", PredicateCall("is_spam", ("body", "bytes"), negated=True)),
        ("(NOT (is_spam(body)))", PredicateCall("is_spam", ("body",), negated=True)),
    ],
)
def test_python_predicates(condition: str, call: PredicateCall) -> None:
    first, selection = parse("SELECT ts FROM TCP WHERE bytes > 5 AND " + condition).selections  # noqa: S608
    assert (selection.kind, selection.call) == ("python", call)
    assert first.call is None


def test_groups_by_ordinal_alias_and_expression() -> None:
    query = parse(
        "SELECT src_host, upper(dest_host) AS bytes, size + 1 AS more, count(*) FROM UDP "
        "GROUP BY 1, upper(dest_host), more HAVING count(*) > 5"
    )
    assert [group.sql for group in query.group_by] == [
        "`UDP`.`src_host`",
        "upper(`UDP`.`dest_host`)",
        "`UDP`.`size` + 1",
    ]
    assert query.having is not None
    assert query.having.sql == "count(*) > 5"
    assert [output.is_aggregate for output in query.outputs] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "having"),
    [
        ("SELECT max(bytes) AS m FROM TCP HAVING m > 3", "max(`TCP`.`bytes`) > 3"),
        ("SELECT max(bytes) AS bytes FROM TCP HAVING bytes > 3", "max(`TCP`.`bytes`) > 3"),
        ("SELECT max(bytes) AS bytes FROM TCP HAVING sum(bytes) > 3", "sum(`TCP`.`bytes`) > 3"),
        ("SELECT sum(bytes) AS ts FROM TCP GROUP BY ts HAVING ts > 3", "`TCP`.`ts` > 3"),
        ("SELECT sum(bytes) - 1 AS s FROM TCP HAVING s * 2 > 3", "(sum(`TCP`.`bytes`) - 1) * 2 > 3"),
    ],
)
def test_having_prefers_grouped_columns_then_aliases(text: str, having: str) -> None:
    condition = parse(text).having
    assert condition is not None
    assert condition.sql == having


def test_distinct() -> None:
    assert parse("SELECT DISTINCT bytes FROM TCP").is_distinct
    assert not parse("SELECT count(DISTINCT bytes) FROM TCP").is_distinct


REFUSED = [
    # names
    ("SELECT byts FROM TCP", 8, "there is no column 'byts' in the query's inputs; did you mean 'bytes'?"),
    ("SELECT TCP.nope FROM TCP", 8, "there is no column 'nope' in TCP"),
    ("SELECT bytes FROM TPC", 19, "there is no stream or table 'TPC'; did you mean 'TCP'?"),
    ("SELECT x.bytes FROM TCP", 8, "x is no input of the query"),
    ("SELECT x.* FROM TCP", 8, "x is no input of the query"),
    ("SELECT bytes FROM TCP, UDP WHERE ts = 5", 34, "ts is a column of several inputs"),
    ("SELECT bytes FROM TCP JOIN UDP USING (bytes)", 39, "there is no column 'bytes'"),
    ("SELECT bytes FROM TCP, TCP", 24, "two inputs are called TCP"),
    ("SELECT bytes FROM TCP a, UDP A", 26, "two inputs are called A"),
    ("SELECT bytes, BYTES FROM TCP", 15, "two columns of the result are called bytes"),
    ("SELECT * FROM TCP, UDP WHERE TCP.ts = UDP.ts", 8, "two columns of the result are called src_host"),
    ("SELECT bytes AS Round_End FROM TCP", 8, "every result has a column round_end already"),
    ("SELECT bytes FROM db.TCP", 19, "db.TCP is no name of a stream"),
    ("SELECT a FROM TCP AS t(a, b)", 22, "a list of names for columns is not supported"),
    ("SELECT bytes AS (a, b) FROM TCP", 8, "a list of names for one column is not supported"),
    ("SELECT count(TCP.*) FROM TCP", 14, "TCP.* is not supported here"),
    ("SELECT * EXCEPT (ts) FROM TCP", 8, "* with exceptions is not supported"),
    # inputs
    ("SELECT owner FROM hosts", 19, "the query reads tables and no stream"),
    ("SELECT 1", 1, "the query reads no stream"),
    ("SELECT FROM TCP", 1, "SELECT names no column"),
    ("SELECT bytes FROM range(10)", 19, "FROM has a function instead of a stream"),
    ("SELECT a.ts FROM TCP a, TCP b, TCP c, TCP d, TCP e, TCP f, TCP g", 60, "a query has at most 6 inputs"),
    ("SELECT bytes FROM TCP, UDP WHERE bytes > size", 24, "no equality joins UDP with TCP"),
    ("SELECT bytes FROM TCP, UDP, hosts WHERE bytes = size", 29, "no equality joins hosts with TCP, UDP"),
    # joins
    ("SELECT bytes FROM TCP LEFT JOIN UDP ON bytes = size", 33, "LEFT JOIN is not supported"),
    ("SELECT bytes FROM TCP FULL OUTER JOIN UDP ON bytes = size", 39, "FULL OUTER JOIN is not supported"),
    ("SELECT bytes FROM TCP LEFT SEMI JOIN UDP ON bytes = size", 38, "LEFT SEMI JOIN is not supported"),
    ("SELECT bytes FROM TCP LEFT ANTI JOIN UDP ON bytes = size", 38, "LEFT ANTI JOIN is not supported"),
    ("SELECT bytes FROM TCP NATURAL JOIN UDP", 36, "NATURAL JOIN is not supported"),
    ("SELECT bytes FROM TCP CROSS JOIN UDP WHERE bytes = size", 23, "CROSS JOIN is not supported"),
    ("SELECT bytes FROM TCP, LATERAL (SELECT 1)", 40, "LATERAL is not supported"),
    ("SELECT bytes FROM TCP LATERAL VIEW explode(body) t AS x", 23, "LATERAL VIEW is not supported"),
    # clauses
    ("SELECT bytes FROM TCP ORDER BY bytes", 23, "ORDER BY is not supported"),
    ("SELECT bytes FROM TCP SORT BY bytes", 23, "SORT BY is not supported"),
    ("SELECT bytes FROM TCP LIMIT 5", 23, "LIMIT is not supported"),
    ("SELECT bytes FROM TCP QUALIFY bytes > 1", 23, "QUALIFY is not supported"),
    ("SELECT bytes FROM TCP TABLESAMPLE (10 PERCENT)", 36, "TABLESAMPLE is not supported"),
    ("SELECT * FROM TCP PIVOT (sum(bytes) FOR ts IN (1))", 26, "PIVOT is not supported"),
    ("SELECT /*+ BROADCAST(TCP) */ bytes FROM TCP", 8, "a hint is not supported"),
    ("SELECT DISTINCT ON (bytes) bytes FROM TCP", 21, "DISTINCT ON is not supported"),
    ("WITH x AS (SELECT 1) SELECT bytes FROM TCP", 1, "WITH is not supported"),
    ("SELECT bytes FROM TCP UNION SELECT size FROM UDP", 23, "UNION, INTERSECT or EXCEPT is not supported"),
    ("SELECT x FROM (SELECT bytes AS x FROM TCP)", 23, "a subquery is not supported"),
    ("SELECT bytes FROM TCP WHERE bytes IN (SELECT size FROM UDP)", 46, "a subquery is not supported"),
    ("SELECT bytes FROM TCP WHERE EXISTS (SELECT 1)", 44, "EXISTS with a subquery is not supported"),
    ("SELECT bytes FROM TCP WHERE bytes = (SELECT 1)", 45, "a subquery is not supported"),
    ("SELECT bytes FROM TCP WHERE bytes = :limit", 29, "a parameter is not supported"),
    ("SELECT bytes FROM TCP WHERE bytes = ?", 29, "a parameter is not supported"),
    ("SELECT bytes FROM TCP; SELECT size FROM UDP", 22, "a query is one statement"),
    ("INSERT INTO x SELECT bytes FROM TCP", 1, "a query is a SELECT"),
    ("DROP TABLE TCP", 1, "a query is a SELECT"),
    ("SELECT body -> 'x' FROM TCP", 8, "get_json_object(body, '$.x') is not supported"),
    ("SELECT TCP.f(bytes) FROM TCP", 8, "TCP.f(bytes) is not supported"),
    # functions
    ("SELECT sum(bytes) OVER () FROM TCP", 8, "a window function (OVER) is not supported"),
    ("SELECT explode(body) FROM TCP", 8, "explode makes several rows or columns"),
    ("SELECT bytes + RAND() AS x FROM TCP", 16, "rand() has another value each time"),
    ("SELECT bytes FROM TCP WHERE ts > now()", 34, "now() has another value each time"),
    ("SELECT bytes FROM TCP WHERE ts > current_timestamp", 29, "current_timestamp() has another value each time"),
    ("SELECT unix_timestamp() - ts AS age FROM TCP", 8, "unix_timestamp() has another value each time"),
    ("SELECT first(bytes) FROM TCP", 8, "first depends on the order of rows"),
    ("SELECT collect_list(bytes) FROM TCP", 8, "the order in which collect_list collects values differs"),
    ("SELECT listagg(body, ',') FROM TCP", 8, "the order in which listagg collects values differs"),
    # groups
    ("SELECT bytes, count(*) FROM TCP", 8, "TCP.bytes is neither grouped by nor in an aggregate"),
    ("SELECT ts FROM TCP GROUP BY ts + 1", 8, "TCP.ts is neither grouped by nor in an aggregate"),
    ("SELECT ts FROM TCP GROUP BY ts HAVING bytes > 1", 39, "TCP.bytes is neither grouped by nor in an aggregate"),
    ("SELECT bytes FROM TCP WHERE sum(bytes) > 1", 29, "sum is an aggregate, and WHERE and ON select single rows"),
    ("SELECT count(*) FROM TCP GROUP BY 1", 35, "count is an aggregate, and groups are made before"),
    ("SELECT bytes FROM TCP GROUP BY 2", 32, "the result has no column 2"),
    ("SELECT bytes FROM TCP GROUP BY ALL", 23, "GROUP BY with ALL is not supported"),
    ("SELECT bytes FROM TCP GROUP BY ROLLUP(bytes)", 39, "ROLLUP is not supported"),
    ("SELECT bytes FROM TCP GROUP BY CUBE(bytes)", 37, "CUBE is not supported"),
    # Python predicates
    ("SELECT bytes FROM TCP WHERE is_spam(body) OR bytes > 1", 29, "the Python predicate is_spam is no condition"),
    ("SELECT is_spam(body) FROM TCP", 8, "the Python predicate is_spam is no condition of its own"),
    ("SELECT bytes FROM TCP WHERE is_spam(upper(body))", 29, "the Python predicate is_spam takes columns, and no"),
    ("SELECT bytes FROM TCP WHERE is_spam(body.f)", 29, "the Python predicate is_spam takes columns, and no"),
    ("SELECT bytes FROM TCP, UDP WHERE is_spam(bytes, size)", 34, "the Python predicate is_spam takes columns of one"),
    ("SELECT bytes FROM TCP WHERE is_spam()", 29, "the Python predicate is_spam takes columns of one input"),
    # syntax
    ("SELECT bytes FROM TCP WHERE bytes = = 2", 37, "the query does not parse near '='"),
    ("SELECT bytes FROM TCP WHERE", 23, "the query does not parse"),
    ("SELECT 'it''s FROM TCP", 8, "this text, name or comment does not end"),
    ("SELECT 'ok', `bytes FROM TCP", 14, "this text, name or comment does not end"),
    ("SELECT 'ok' /* bytes FROM TCP", 13, "this text, name or comment does not end"),
    ("SELECT " + "(" * 500 + "1" + ")" * 500 + " FROM TCP", 1, "the query is nested too deeply"),
]


@pytest.mark.parametrize(("text", "column", "message"), REFUSED)
def test_texts_that_are_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert caught.value.hint


def test_positions_count_lines() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT bytes -- comment\nFROM TCP\n\tWHERE bytes > 5 AND\r\n  byts < 3")
    assert (caught.value.line, caught.value.column) == (4, 3)


def test_a_session_without_sources_says_so() -> None:
    with pytest.raises(QueryError) as caught:
        parse_query("SELECT x FROM s WINDOW [1]", [])
    assert caught.value.hint == "write the name of a source of the session: it has none yet"


def test_aggregates_whose_order_is_fixed_are_accepted() -> None:
    parse("SELECT sort_array(collect_list(bytes) FILTER (WHERE bytes > 1)) AS x FROM TCP")
    parse("SELECT listagg(body, ',') WITHIN GROUP (ORDER BY body) AS x FROM TCP")


# ----------------------------------------------------------------------------------------- digest

WORDS = (
    "SELECT TCP . bytes AS b , count ( * ) FROM TCP WHERE bytes > 5 AND body = 'From  x' GROUP BY bytes WINDOW [ 1 ]"
)
KEYWORDS = {"SELECT", "FROM", "WHERE", "AND", "GROUP", "BY", "WINDOW", "AS"}
SPACES = st.sampled_from([" ", "\n", "\t ", " /* WINDOW [2] */ ", " -- SELECT\n"])


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.data())
def test_layout_does_not_change_the_digest(chance: random.Random, data: st.DataObject) -> None:
    text = ""
    for word in WORDS.replace("'From  x'", "'From##x'").split(" "):
        spelt = chance.choice([word.lower(), word.title(), word]) if word in KEYWORDS else word.replace("##", "  ")
        if word == "AS" and chance.random() < 0.5:
            continue
        text += spelt + data.draw(SPACES)
    assert parse_query(text, SOURCES).digest == parse_query(WORDS, SOURCES).digest


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[ 1 ]", "[2]"),
        ("[ 1 ]", "[1 SLIDE 0.5]"),
        ("AS b", "AS c"),
        ("> 5", "> 6"),
        ("> 5", "> '5'"),
        ("'From  x'", "'From x'"),
        ("SELECT", "SELECT DISTINCT"),
        ("FROM TCP WHERE", "FROM TCP JOIN hosts ON owner = body WHERE"),
        ("GROUP BY bytes", "GROUP BY bytes, body"),
        ("WINDOW", "HAVING count(*) > 1 WINDOW"),
    ],
)
def test_meaning_changes_the_digest(before: str, after: str) -> None:
    assert parse_query(WORDS.replace(before, after, 1), SOURCES).digest != parse_query(WORDS, SOURCES).digest


# ---------------------------------------------------------------------- the conjunction as a whole

R, S = Source("R", ("k", "x")), Source("S", ("k", "y"))
OPERANDS = st.sampled_from(["R.k", "x", "S.k", "y", "1", "2", "x + y", "R.k - S.k", "NULL"])
COMPARISONS = st.builds("{} {} {}".format, OPERANDS, st.sampled_from(["=", "<", ">=", "<>", "<=>"]), OPERANDS)
ATOMS = st.one_of(
    COMPARISONS,
    st.builds("{} BETWEEN {} AND {}".format, OPERANDS, OPERANDS, OPERANDS),
    st.builds("{} IN ({}, {})".format, OPERANDS, OPERANDS, OPERANDS),
    st.builds("{} IS NOT NULL".format, OPERANDS),
)
WHERES = st.recursive(
    ATOMS,
    lambda parts: st.one_of(
        st.builds("({} AND {})".format, parts, parts),
        st.builds("({} OR {})".format, parts, parts),
        st.builds("NOT ({})".format, parts),
        st.builds("{} AND {}".format, parts, parts),
    ),
    max_leaves=5,
)
DATABASE = duckdb.connect()
DATABASE.execute("CREATE TABLE R AS SELECT * FROM (VALUES (1, 1), (1, 2), (2, 3), (2, NULL), (NULL, 0)) AS t(k, x)")
DATABASE.execute("CREATE TABLE S AS SELECT k, x AS y FROM R")


def rows(condition: str) -> list[tuple[object, ...]]:
    translated = sqlglot.transpile(condition, read="spark", write="duckdb")[0]
    return DATABASE.execute(f"SELECT R.k, x, S.k, y FROM R, S WHERE {translated} ORDER BY ALL").fetchall()  # noqa: S608


@settings(max_examples=40)
@given(WHERES)
def test_the_parts_of_a_conjunction_together_select_what_it_selects(where: str) -> None:
    query = parse_query(f"SELECT x, y FROM R, S WHERE R.k = S.k AND {where} WINDOW [1]", [R, S])  # noqa: S608
    parts = [
        *(selection.expression.sql for selection in query.selections),
        *(f"{join.left.sql} = {join.right.sql}" for join in query.equi_joins),
        *(residual.sql for residual in query.residuals),
    ]
    assert rows(" AND ".join(f"({part})" for part in parts)) == rows(f"R.k = S.k AND {where}")
    for selection in query.selections:
        assert selection.expression.inputs == {selection.alias}
        assert selection.expression.sql.replace(f"`{selection.alias}`.", "") == selection.shared_sql
