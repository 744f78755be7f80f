from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.spark.session.harness import SECOND, Driver, QueryText, expected, rows_in_memory, with_end

from thalweg.spark.plan_text import plan_text
from thalweg.spark.session.guards import MOST_STEPS, guards_of
from thalweg.spark.session.program import Program, ProgramQuery, Shared, SharedCall, SharedCondition
from thalweg.spark.session.shared_rows import BITS, column_slots, shared_rows, with_early_calls
from thalweg.spark.session.worker.early_calls import DECIDED, PASSES
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = ("is_odd", "is_large")
SOURCES = [Source("A", ("ts", "x", "s")), Source("B", ("ts", "y"))]


def program(*texts: str) -> Program:
    """Queries with these conditions; LIKE and RLIKE are costly."""
    queries = []
    for number, text in enumerate(texts):
        written = f"SELECT ts FROM {'B' if 'y' in text else 'A'} WHERE {text} WINDOW [1]"  # noqa: S608 - ours
        query = parse_query(written, SOURCES, PREDICATES)
        (read,) = query.inputs
        kept = tuple(
            SharedCondition(read.source, each.shared_sql, each.shared_sql, "LIKE" not in each.shared_sql.upper())
            if each.call is None
            else SharedCall(read.source, each.call, each.call.predicate)
            for each in query.selections
        )
        queries.append(ProgramQuery(str(number), query, {read.alias: kept}, {read.alias: ()}))
    return Program(tuple(queries))


def shown(*texts: str, order: Sequence[str] = ()) -> dict[str, tuple[int, list[set[str]]]]:
    """The step and the alternatives of each condition with a guard."""
    return {
        condition.sql: (guard.step, [{other.sql for other in each} for each in guard.alternatives])
        for condition, guard in guards_of(ordered(program(*texts), order), "A").items()
    }


def ordered(found: Program, order: Sequence[str]) -> Program:
    """The program with a measured order of the conditions and calls with these texts."""
    columns = {each.sql.replace("`", ""): each.column for each in found.shared}
    return replace(found, orders={"A": tuple(columns[text] for text in order if text in columns)})


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


def test_predicates_that_the_order_puts_before_a_condition_are_asked_before_it() -> None:
    text = "x = 1 AND s RLIKE 'a' AND s RLIKE 'b' AND is_odd(x) AND is_large(x)"
    order = ["s RLIKE 'a'", "is_odd(x)", "s RLIKE 'b'", "is_large(x)"]
    assert shown(text, order=order) == {
        "`s` RLIKE 'a'": (1, [{"`x` = 1"}]),
        "is_odd(`x`)": (2, [{"`x` = 1", "`s` RLIKE 'a'"}]),
        "`s` RLIKE 'b'": (3, [{"`x` = 1", "`s` RLIKE 'a'", "is_odd(`x`)"}]),
    }
    assert list(shown(text)) == ["`s` RLIKE 'a'", "`s` RLIKE 'b'"]
    # No query has a predicate and a later condition any more.
    assert shown("is_odd(x) AND s RLIKE 'a'", "is_large(x)", "s RLIKE 'b'", order=order) == {}
    texts = ["is_odd(x) AND s RLIKE 'b'", "is_large(x) AND s RLIKE 'b'"]
    assert shown(*texts, order=order) == {}  # is_large comes last, so that every row is matched with the pattern anyway
    both = shown(*texts, order=["is_large(x)", "is_odd(x)", "s RLIKE 'b'"])
    assert both == {"is_large(`x`)": (1, [set()]), "is_odd(`x`)": (1, [set()]), "`s` RLIKE 'b'": (2, BOTH)}


BOTH = [{"is_odd(`x`)"}, {"is_large(`x`)"}]
CHEAP, COSTLY = [f"x <> {number}" for number in range(4)], [f"s RLIKE '{number}'" for number in range(5)]
CALLS = ["is_odd(x)", "NOT is_odd(x)", "is_large(x)"]


@given(
    st.lists(st.sets(st.sampled_from(CHEAP + COSTLY + CALLS), min_size=1), min_size=1, max_size=6),
    st.sets(st.sampled_from(CHEAP + COSTLY + CALLS)),
    st.permutations(COSTLY + CALLS),
)
def test_conjunctions_are_true_where_they_would_be_without_guards(
    conjunctions: list[set[str]], true_conditions: set[str], order: list[str]
) -> None:
    """A predicate that was not asked early is asked when rows are taken in, for the rows whose conditions are true."""
    found = ordered(program(*(" AND ".join(sorted(conjunction)) for conjunction in conjunctions)), order)
    guards = guards_of(found, "A")
    assert len({guard.step for each, guard in guards.items() if isinstance(each, SharedCall)}) <= 1
    assert all(guard.step <= MOST_STEPS for guard in guards.values())
    is_true = {each: each.sql.replace("`", "") in true_conditions for each in found.shared}
    answers: set[Shared] = {each for each in found.conditions if each not in guards and is_true[each]}
    undecided = set(found.calls)
    for step in range(1, MOST_STEPS + 1):
        before = frozenset(answers)
        for condition, guard in guards.items():
            known = answers if isinstance(condition, SharedCall) else before  # calls follow each other in one step
            if guard.step == step and any(each <= known for each in guard.alternatives):
                undecided.discard(condition)
                if is_true[condition]:
                    answers.add(condition)
    answers |= {each for each in undecided if is_true[each]}
    columns = {each.column for each in answers}
    for conjunction in found.conjunctions:
        wanted = {each.column for each in found.shared if is_true[each]}
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


def test_a_pattern_is_matched_only_where_an_early_predicate_may_be_true(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    text = "SELECT k FROM A WHERE x > 0 AND s LIKE '%b' AND is_odd(x) WINDOW [5]"
    query, catalog = driver.session.query(text).compiled, driver.session._catalog()  # noqa: SLF001
    found = ordered(Program((query,)), ["is_odd(x)", "s LIKE '%b'"])
    rows = [(1, 1, "ab", SECOND), (1, 2, "ab", SECOND), (1, 3, "ba", SECOND), (1, -3, "ab", SECOND)]
    driver._frame({"A": rows, "B": [(1, 1, SECOND)]}).createOrReplaceTempView("rows_of_calls")  # noqa: SLF001

    def ask(rows: str, step: int) -> str:
        with_early_calls(spark.sql(f"SELECT * FROM {rows}"), found, catalog, step).createOrReplaceTempView("asked")  # noqa: S608 - ours
        return "asked"

    answers = [tuple(row)[-2:] for row in spark.sql(shared_rows("rows_of_calls", found, [], ask)).collect()]
    x, s = 0b01, 0b10
    odd, even = 1 << PASSES | 1 << DECIDED, 1 << DECIDED
    # The second row ends in b, but the predicate is false; the last row is not asked at all.
    assert answers == [(x | s, odd), (x, even), (x, odd), (0, 0), (None, 0)]
    plan = plan_text(spark.sql(shared_rows("rows_of_calls", found, [], ask)), "simple")
    assert plan.count("ArrowEvalPython") == 1
    assert plan.count("EndsWith") == 1
