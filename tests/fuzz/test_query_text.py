"""Texts that people write: continuous queries, conditions and columns of joins, durations, sizes, statistics."""

from __future__ import annotations

from random import Random

from tests.fuzz.inputs import changed_texts, changed_values, refuses_clearly, try_inputs

from thalweg.joinorder.statistics import graph_of
from thalweg.joinorder.text import join_condition, parse_condition
from thalweg.spark.joins.condition import parse_on
from thalweg.spark.joins.text import microseconds, parse_select, parse_window
from thalweg.spark.session.memory import memory_cap
from thalweg.sql.errors import QueryError
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

SOURCES = [
    Source("TCP", ("src", "dest", "bytes", "flag", "ts")),
    Source("UDP", ("src", "dest", "bytes", "ts")),
    Source("hosts", ("host", "owner"), is_stream=False),
]
QUERIES = [
    "SELECT src, dest FROM TCP WHERE dest = 2 AND is_scan(src, dest) WINDOW [1]",
    (
        "SELECT h.owner, sum(t.bytes) AS bytes FROM TCP AS t JOIN hosts AS h ON t.dest = h.host WHERE t.bytes IN (80) "
        "GROUP BY h.owner HAVING count(*) > 3 WINDOW [1 minute SLIDE 10 seconds]"
    ),
    (
        "SELECT DISTINCT upper(flag) AS f, CASE WHEN bytes > 9 THEN 'big' ELSE 'small' END AS size FROM TCP "
        "WHERE flag LIKE 'S%' OR NOT (bytes BETWEEN 3 AND 4.5) WINDOW [2 hours]"
    ),
    "SELECT count(*) AS n FROM TCP, UDP WHERE TCP.src = UDP.src AND TCP.bytes < UDP.bytes + 1 WINDOW [10 seconds]",
]
CONDITIONS = [
    "A.k = B.k AND B.l = C.l AND A.x < C.x + 1 AND lower(A.name) = lower(B.name)",
    "a.k = b.k AND b.k = c.k",
    "A.k = B.k AND A.ts BETWEEN B.ts - INTERVAL 5 MINUTES AND B.ts AND C.l = B.l AND C.x > 5",
    "SELECT A.x FROM A JOIN B ON A.k = B.k JOIN C ON B.l = C.l WHERE A.x > 3",
]
COLUMNS = {name: ["k", "l", "x", "name", "ts"] for name in "ABC"}
STATISTICS = {
    "streams": {"R1": {"rate": 10, "window": 100}, "R2": {"rate": 1}, "R3": {"rate": 5, "window": 7}},
    "on": "R1.a = R2.a AND R2.b = R3.b",
    "selectivities": {"R1.a = R2.a": 0.1},
}


def test_the_text_of_a_query() -> None:
    def check(text: str) -> None:
        refuses_clearly(lambda: parse_query(text, SOURCES, ["is_scan"]), QueryError)

    try_inputs(changed_texts(QUERIES), check)


def test_the_condition_of_a_join() -> None:
    def check(text: str) -> None:
        refuses_clearly(lambda: parse_on(text, COLUMNS), ValueError)
        refuses_clearly(lambda: parse_condition(text), ValueError)
        refuses_clearly(lambda: join_condition(text), ValueError)

    try_inputs(changed_texts(CONDITIONS), check)


def test_the_columns_of_a_join() -> None:
    column = changed_texts(["A.k", "B.x AS y", "`C`.*", "*"])

    def make(random: Random) -> list[str]:
        return [column(random) for _ in range(random.randint(0, 3))]

    try_inputs(make, lambda select: refuses_clearly(lambda: parse_select(select, COLUMNS), ValueError))


def test_durations_and_sizes() -> None:
    def check(text: str) -> None:
        refuses_clearly(lambda: microseconds(text, "the delay"), ValueError)
        refuses_clearly(lambda: parse_window(text, "A"), ValueError)
        refuses_clearly(lambda: memory_cap(text), ValueError)

    try_inputs(changed_texts(["10 minutes", "1.5 h", "100 rows", "0 s", "512MB", "1.5g"]), check)


def test_the_statistics_of_a_join() -> None:
    try_inputs(changed_values(STATISTICS), lambda data: refuses_clearly(lambda: graph_of(data), ValueError))
