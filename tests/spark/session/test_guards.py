from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.spark.session.harness import SECOND, Driver, QueryText, expected, rows_in_memory, with_end

from thalweg.spark.plan_text import plan_text
from thalweg.spark.session.guards import MOST_STEPS, guards_of
from thalweg.spark.session.intake import BITS, column_slots, shared_rows
from thalweg.spark.session.program import Program, ProgramQuery, SharedCondition
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = [Source("A", ("ts", "x", "s")), Source("B", ("ts", "y"))]


def program(*texts: str) -> Program:
    """Queries with these conditions; LIKE and RLIKE are costly."""
    queries = []
    for number, text in enumerate(texts):
        query = parse_query(f"SELECT ts FROM {'B' if 'y' in text else 'A'} WHERE {text} WINDOW [1]", SOURCES)  # noqa: S608 - a query of ours
        (read,) = query.inputs
        kept = tuple(
            SharedCondition(read.source, each.shared_sql, each.shared_sql, "LIKE" not in each.shared_sql.upper())
            for each in query.selections
        )
        queries.append(ProgramQuery(str(number), query, {read.alias: kept}, {read.alias: ()}))
    return Program(tuple(queries))


def shown(*texts: str) -> dict[str, tuple[int, list[set[str]]]]:
    """The step and the alternatives of each condition with a guard."""
    return {
        condition.sql: (guard.step, [{other.sql for other in each} for each in guard.alternatives])
        for condition, guard in guards_of(program(*texts), "A").items()
    }


def test_a_costly_condition_waits_for_the_cheap_ones_of_its_conjunctions() -> None:
    assert shown("s RLIKE 'a+b' AND x = 1") == {"`s` RLIKE 'a+b'": (1, [{"`x` = 1"}])}
    several = ["x = 1 AND s RLIKE 'a'", "s RLIKE 'a' AND x > 5 AND x <> 7", "x = 1 AND x <> 8 AND s RLIKE 'a'"]
    assert shown(*several) == {"`s` RLIKE 'a'": (1, [{"`x` = 1"}, {"`x` > 5", "`x` <> 7"}])}


def test_a_costly_condition_that_a_query_tests_alone_sees_every_row() -> None:
    """And comes before the others, which wait for it as well."""
    texts = ["x = 1 AND s LIKE '%b' AND s RLIKE 'a'", "s RLIKE 'a'"]
    assert shown(*texts) == {"`s` LIKE '%b'": (1, [{"`x` = 1", "`s` RLIKE 'a'"}])}
    assert shown("s RLIKE 'a' AND s LIKE '%b'") == {"`s` LIKE '%b'": (1, [{"`s` RLIKE 'a'"}])}


def test_costly_conditions_follow_each_other_in_few_steps() -> None:
    found = shown("x = 1 AND " + " AND ".join(f"s RLIKE '{number}'" for number in range(MOST_STEPS + 2)))
    steps = [step for step, _ in found.values()]
    assert steps == [*range(1, MOST_STEPS + 1), MOST_STEPS, MOST_STEPS]
    assert len(found[f"`s` RLIKE '{MOST_STEPS + 1}'"][1][0]) == MOST_STEPS


def test_a_condition_is_evaluated_after_a_weaker_one_that_sees_every_row() -> None:
    found = shown("s LIKE 'ab%' AND x = 1", "s LIKE 'a%'", "s LIKE 'abc%' AND x = 2")
    assert found == {
        "`s` LIKE 'ab%'": (1, [{"`x` = 1", "`s` LIKE 'a%'"}]),
        "`s` LIKE 'abc%'": (1, [{"`x` = 2", "`s` LIKE 'a%'"}]),
    }
    assert shown("s LIKE 'ab%'", "s LIKE 'a%' AND x = 1") == {"`s` LIKE 'a%'": (1, [{"`x` = 1"}])}


CHEAP, COSTLY = [f"x <> {number}" for number in range(4)], [f"s RLIKE '{number}'" for number in range(5)]


@given(
    st.lists(st.sets(st.sampled_from(CHEAP + COSTLY), min_size=1), min_size=1, max_size=6),
    st.sets(st.sampled_from(CHEAP + COSTLY)),
)
def test_conjunctions_are_true_where_they_would_be_without_guards(
    conjunctions: list[set[str]], true_conditions: set[str]
) -> None:
    found = program(*(" AND ".join(sorted(conjunction)) for conjunction in conjunctions))
    guards = guards_of(found, "A")
    is_true = {each: each.sql.replace("`", "") in true_conditions for each in found.conditions}
    answers = {each for each in found.conditions if each not in guards and is_true[each]}
    for step in range(1, MOST_STEPS + 1):
        before = frozenset(answers)
        for condition, guard in guards.items():
            if guard.step == step and is_true[condition] and any(each <= before for each in guard.alternatives):
                answers.add(condition)
    columns = {each.column for each in answers}
    for conjunction in found.conjunctions:
        wanted = {each.column for each in found.conditions if is_true[each]}
        assert columns.issuperset(conjunction.columns) == wanted.issuperset(conjunction.columns)


def test_a_guard_tests_the_bits_of_an_earlier_projection() -> None:
    found = program("x = 1 AND s RLIKE 'a'", "x = 2 AND x <> 7 AND s RLIKE 'a'", "y = 3")
    assert shared_rows("rows", found, [{"A": "A:s"}]) == (
        "SELECT stream, time, coalesce(`A:s`) AS `0`, "
        "answers_1_0 + CASE stream WHEN 'A' THEN if((answers_1_0 & 1L) <> 0L OR (answers_1_0 & 12L) = 12L, "
        "if(`s` RLIKE 'a', 2L, 0L), 0L) ELSE 0L END AS `1` "
        "FROM (SELECT *, CASE stream WHEN 'A' THEN if(`x` = 1, 1L, 0L) + if(`x` = 2, 4L, 0L) + if(`x` <> 7, 8L, 0L) "
        "WHEN 'B' THEN if(`y` = 3, 1L, 0L) END AS answers_1_0 FROM rows)"
    )


def test_a_guard_may_test_several_whole_numbers() -> None:
    cheap = [f"x <> {number}" for number in range(BITS)]
    text = shared_rows("rows", program(" AND ".join([*cheap, "s RLIKE 'a'", "x <> 99"])), [])
    assert f"if((answers_1_0 & {(1 << BITS) - 1}L) = {(1 << BITS) - 1}L AND (answers_1_1 & 2L) = 2L, " in text
    assert "if(`s` RLIKE 'a', 1L, 0L), 0L) ELSE 0L END AS `1`" in text


TEXTS = [
    QueryText("SELECT k, x FROM A WHERE x = 1 AND s RLIKE '^a+b$'", 5),
    QueryText("SELECT x FROM A WHERE s RLIKE '^a+b$' AND s LIKE '%b' AND x > 3", 5),
    QueryText("SELECT A.s, B.y FROM A JOIN B ON A.k = B.k WHERE s LIKE '%b' AND s LIKE 'a%' AND is_odd(A.k)", 5),
    QueryText("SELECT count(*) AS n FROM A WHERE s LIKE 'aa%' AND x IS NOT NULL", 5),
    QueryText("SELECT y FROM B WHERE upper(CAST(y AS STRING)) LIKE '%2' AND y > 3", 5),
]


def test_results_are_those_of_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    words = ["ab", "aab", "b", None, "a"]
    batches = with_end(
        [
            {
                "A": [(place % 2, place % 6 or None, words[place % 5], place * SECOND // 4) for place in range(60)],
                "B": [(place % 3, place, place * SECOND // 2) for place in range(30)],
            }
        ]
    )
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in TEXTS]
    driver.run(*batches)
    for query, text in zip(queries, TEXTS, strict=True):
        assert rows_in_memory(query) == expected(text, batches), str(text)
        assert rows_in_memory(query).total()


def test_spark_evaluates_each_condition_once(spark: SparkSession, tmp_path: Path) -> None:
    """It keeps the projections apart: together, they would evaluate a cheap condition in each guard that tests it."""
    driver = Driver(spark, tmp_path)
    queries = tuple(driver.session.query(str(text)).compiled for text in TEXTS[:2])
    program, streams = Program(queries), list(driver.session._catalog().streams.values())  # noqa: SLF001
    assert [condition.is_cheap for condition in program.conditions] == [True, False, False, True]
    slots = column_slots(streams, {stream.name: program.columns(stream) for stream in streams})
    driver._frame({"A": [(1, 1, "ab", SECOND)]}).createOrReplaceTempView("rows_of_guards")  # noqa: SLF001
    text = shared_rows("rows_of_guards", program, slots)
    plan = plan_text(spark.sql(text), "simple")
    assert plan.count("RLIKE") == 1
    assert len(re.findall(r"A:x#\d+L? = 1\b", plan)) == 1
    # The row ends in b, but no query asks: x > 3 is false.
    assert [tuple(row)[-1] for row in spark.sql(text).collect()] == [0b0011]
