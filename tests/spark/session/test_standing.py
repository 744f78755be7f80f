"""Queries that come, go, rest, change and fail while the session runs: the results of the others are untouched."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    Episode,
    QueryText,
    expected,
    late_rows,
    rows_in_memory,
    with_end,
)

import thalweg as tw
from thalweg.charts import ByChart
from thalweg.spark.session.standing import StandingQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LARGE = QueryText("SELECT x, s FROM A WHERE x > 5", 5)
GROUPS = QueryText("SELECT k, count(*) AS n FROM A GROUP BY k", 10, 5)
JOINED = QueryText("SELECT A.x, B.y FROM A JOIN B ON A.k = B.k WHERE x > 5", 10)
ALL = QueryText("SELECT k, x FROM A", 5)


def batch(number: int) -> Batch:
    """Rows of four seconds each, some of them of three seconds before."""
    times = [(4 * number + offset) * SECOND for offset in (1, 2, 3, -3, 4)]
    return {
        "A": [
            ((number + place) % 3, (5 * place + number) % 11 + 1, "abc"[place % 3], time)
            for place, time in enumerate(times)
        ],
        "B": [((number + place) % 3, place, time) for place, time in enumerate(times)],
    }


BATCHES = with_end([batch(number) for number in range(4)])


def failure(driver: Driver, query: StandingQuery) -> str | None:
    """Why a query failed, as explain tells it."""
    about: dict[str, Any] = driver.session.explain().to_dict()["sessions"][0]
    (status,) = [each["status"] for each in about["queries"] if each["name"] == query.name]
    return status.removeprefix("failed: ") if status.startswith("failed: ") else None


def test_control_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    add = driver.session.query
    paused, removed, changed = add(str(LARGE)), add(str(GROUPS)), add(str(JOINED))
    driver.run(BATCHES[0], BATCHES[1])
    paused.pause()
    removed.remove()
    changed.change(rate_weight=0.9, partitions=3)
    added = add(str(ALL))
    driver.run(BATCHES[2])
    paused.resume()
    driver.run(*BATCHES[3:])
    assert rows_in_memory(paused) == expected(LARGE, BATCHES, [Episode(0, 2), Episode(3, 5)])
    assert rows_in_memory(removed) == expected(GROUPS, BATCHES, [Episode(0, 2)])
    assert rows_in_memory(changed) == expected(JOINED, BATCHES)
    assert rows_in_memory(added) == expected(ALL, BATCHES, [Episode(2, 5)])
    assert changed.weights.rate == 0.9
    assert changed.weights.memory == 0.6
    assert [query.name for query in driver.session.queries] == [paused.name, changed.name, added.name]
    assert driver.engine is not None
    scheduler = driver.engine.served[changed.compiled.token].scheduler
    assert isinstance(scheduler, ByChart)
    assert scheduler.parts == 3
    assert scheduler.costs.weights == changed.weights


def test_queries_with_one_text(spark: SparkSession, tmp_path: Path) -> None:
    """Each has results of its own; one that is removed and added again begins anew, with its own sink."""
    driver = Driver(spark, tmp_path)
    add = driver.session.query
    first, second = add(str(ALL)), add(str(ALL))
    driver.run(*BATCHES[:2])
    first.remove()
    again = add(str(ALL))
    driver.run(*BATCHES[2:])
    assert len(driver.session.queries) == 2
    assert rows_in_memory(first) == expected(ALL, BATCHES, [Episode(0, 2)])
    assert rows_in_memory(second) == expected(ALL, BATCHES)
    assert driver.engine is not None
    assert driver.engine.position.queries[second.compiled.token].late == late_rows(ALL, BATCHES) > 0
    assert rows_in_memory(again) == expected(ALL, BATCHES, [Episode(2, 5)])


def test_a_predicate_that_is_added_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Is known to the queries that are added then; the session failed."""
    driver = Driver(spark, tmp_path)
    driver.session.query(str(ALL))
    driver.run(*BATCHES[:2])
    driver.session.predicate("is_even", tw.predicate(lambda value: value % 2 == 0, takes="numpy", name="is_even"))
    added = driver.session.query("SELECT x FROM A WHERE is_even(x) WINDOW [5 seconds]")
    driver.run(*BATCHES[2:])
    alike = QueryText("SELECT x FROM A WHERE x % 2 = 0", 5)
    assert rows_in_memory(added) == expected(alike, BATCHES, [Episode(2, 5)])


def test_a_session_that_is_started_again_goes_on_with_what_it_knew(spark: SparkSession, tmp_path: Path) -> None:
    """A query that was paused rests; statistics of predicates and groups, trails of charts and logs are there."""
    odd = QueryText("SELECT x FROM A WHERE is_odd(x)", 5)
    driver = Driver(spark, tmp_path)
    paused, resumed, groups, asked = (driver.session.query(str(text)) for text in (ALL, LARGE, GROUPS, odd))
    driver.run(BATCHES[0])
    paused.pause()
    resumed.pause()
    driver.run(BATCHES[1])
    assert driver.engine is not None
    position, logged = driver.engine.position, driver.session.log().collect()
    explained = driver.session.explain().to_dict()["sessions"][0]
    assert position.groups.keys() == {groups.compiled.token}
    assert [counts.rows > 0 for counts in position.predicates.values()] == [True]

    driver.open()
    texts = (ALL, LARGE, GROUPS, odd)
    rests, goes_on, _, again = (driver.session.query(str(text)) for text in texts)
    goes_on.resume()
    driver.run()
    assert driver.engine.position == replace(position, queries=driver.engine.position.queries)
    assert (rests.is_paused, goes_on.is_paused) == (True, False)
    assert driver.session.log().collect() == logged
    told = driver.session.explain().to_dict()["sessions"][0]
    for name in ("rows", "seconds", "batches", "lag_seconds"):
        assert told[name] == explained[name]
    assert [query["charts"] for query in told["queries"]] == [query["charts"] for query in explained["queries"]]
    assert any(chart["trail"] for query in told["queries"] for chart in query["charts"])
    driver.run(*BATCHES[2:])
    assert rests.results() is None
    assert rows_in_memory(goes_on) == expected(LARGE, BATCHES, [Episode(2, 5)])
    assert rows_in_memory(asked) + rows_in_memory(again) == expected(odd, BATCHES)
    rests.resume()
    assert not rests.is_paused


def test_names_of_queries_differ(spark: SparkSession, tmp_path: Path) -> None:
    """Logs and explain tell queries by them."""
    add = Driver(spark, tmp_path).session.query
    first, _ = add(str(ALL)), add(str(ALL))
    first.remove()
    assert add(str(ALL)).name not in (first.name, "query 2")
    add(str(ALL), name="all")
    with pytest.raises(ValueError, match="there is a query 'all' already"):
        add(str(LARGE), name="all")


def test_a_change_with_a_wrong_number_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    query = Driver(spark, tmp_path).session.query(str(ALL))
    with pytest.raises(ValueError, match="partitions"):
        query.change(rate_weight=5.0, partitions=0)
    assert (query.weights.rate, query.partitions) == (0.4, 10)


def test_a_query_that_was_removed_takes_no_orders(spark: SparkSession, tmp_path: Path) -> None:
    query = Driver(spark, tmp_path).session.query(str(ALL))
    query.remove()
    for order in (query.pause, query.resume, query.change, query.remove):
        with pytest.raises(RuntimeError, match="was removed from its session: add it again"):
            order()


@tw.predicate(takes="numpy", name="is_bad")
def is_bad(value: Any) -> Any:  # noqa: ANN401 - an array of NumPy
    if (value == 7).any():
        raise ValueError("a seven")
    return value > 100


def test_a_query_that_fails_is_isolated(spark: SparkSession, tmp_path: Path) -> None:
    """With its reason, until it is resumed."""
    bad: Batch = {"A": [(0, 7, "a", 2 * SECOND), (7, 9, "b", 3 * SECOND)]}
    rows: list[Batch] = [{"A": [(1, 8, "c", 1 * SECOND)]}, bad, {"A": [(2, 8, "c", 21 * SECOND)]}]
    batches = with_end([*rows, {"A": [(3, 9, "d", 26 * SECOND)]}])

    def refuse(results: DataFrame, number: int) -> None:
        if number == 2:
            raise OSError("the disk is full")
        delivered.extend(results.collect())

    delivered: list[Any] = []
    driver = Driver(spark, tmp_path)
    driver.session.predicate("is_bad", is_bad)
    divided = QueryText("SELECT k FROM A WHERE 10 / k >= 2", 5)
    projected = QueryText("SELECT 10 / k AS part FROM A", 5)
    good = driver.session.query(str(ALL))
    failing = [
        driver.session.query(str(divided)),
        driver.session.query(str(projected)),
        driver.session.query("SELECT x FROM A WHERE NOT is_bad(x) WINDOW [5]"),
        driver.session.query(str(ALL), to=refuse, name="to a full disk"),
    ]
    driver.run(*batches[:3])
    reasons = [failure(driver, query) for query in failing]
    for reason, words in zip(reasons, ["DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO", "a seven", "the disk is full"], strict=True):
        assert words in str(reason)
    assert failure(driver, good) is None
    for query in failing:
        query.resume()
    driver.run(*batches[3:])
    assert rows_in_memory(good) == expected(ALL, batches)
    assert [failure(driver, query) for query in failing] == [None] * 4
    assert rows_in_memory(failing[0]) == expected(divided, batches, [Episode(3, 5)])
    assert rows_in_memory(failing[1]) == expected(projected, batches, [Episode(3, 5)])
    assert [tuple(row)[2:] for row in delivered] == [(3, 9)]


def test_rounds_that_end_while_a_query_fails_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    """Whether the query or its sink fails: a round that was not delivered is in no log and no sum."""
    driver = Driver(spark, tmp_path)

    def full(_frame: DataFrame, _number: int) -> None:
        raise OSError("the disk is full")

    good = driver.session.query(str(ALL))
    failing = [
        driver.session.query("SELECT 1 / (x - x) AS y FROM A WINDOW [5]"),
        driver.session.query(str(ALL), to=full),
    ]
    driver.run(*BATCHES)
    about: dict[str, Any] = driver.session.explain().to_dict()["sessions"][0]
    rounds = {query["name"]: query["rounds"] for query in about["queries"]}
    assert all(failure(driver, query) for query in failing)
    assert [rounds[query.name] for query in failing] == [0, 0]
    assert rounds[good.name] > 0
    assert {row.query for row in driver.session.log().select("query").distinct().collect()} == {good.name}
    assert {row.query for row in driver.session.service_log().select("query").distinct().collect()} == {good.name}


def test_an_expression_sees_the_rows_of_its_query_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Although the rows of both queries come in one pass, with all expressions."""
    batches = with_end([{"A": [(0, 7, "a", SECOND), (2, 9, "b", SECOND)]}])
    guarded = QueryText("SELECT 10 / k AS part FROM A WHERE k <> 0", 5)
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in (ALL, guarded)]
    driver.run(*batches)
    assert [rows_in_memory(query) for query in queries] == [expected(text, batches) for text in (ALL, guarded)]


@pytest.mark.parametrize("partitions", [0, 1001, 2.5, True, None])
def test_odd_numbers_of_partitions_are_refused(spark: SparkSession, tmp_path: Path, partitions: Any) -> None:  # noqa: ANN401
    driver = Driver(spark, tmp_path)
    with pytest.raises(ValueError, match="partitions is a whole number from 1 to 1000"):
        driver.session.query(str(ALL), partitions=partitions)


def test_a_predicate_of_several_queries_is_asked_once_for_a_row(spark: SparkSession, tmp_path: Path) -> None:
    asked = spark.sparkContext.accumulator(0)

    def ask(value: Any) -> Any:  # noqa: ANN401 - an array of NumPy
        asked.add(len(value))
        return value % 2 == 1

    rows = [(number, number, "a", number * SECOND) for number in range(1, 9)]
    batches = with_end([{"A": rows}])
    driver = Driver(spark, tmp_path)
    driver.session.predicate("is_odd_one", tw.predicate(ask, on="x", takes="numpy"))
    texts = ["SELECT {} FROM A WHERE is_odd_one(x)", "SELECT {} FROM A WHERE x > 3 AND is_odd_one(x)"]
    queries = [driver.session.query(text.format(column) + " WINDOW [5]") for text in texts for column in ("k", "x")]
    driver.run(*batches)
    assert asked.value == sum(len(batch["A"]) for batch in batches)
    for place, query in enumerate(queries):
        table = query.results()
        assert table is not None
        assert sorted(table.column(2).to_pylist()) == ([1, 3, 5, 7] if place < 2 else [5, 7])


def test_a_predicate_that_waits_is_asked_in_a_session(spark: SparkSession, tmp_path: Path) -> None:
    async def is_large(x: int | None) -> bool | None:
        await asyncio.sleep(0)
        return None if x is None else x > 3

    driver = Driver(spark, tmp_path)
    driver.session.predicate("is_large", tw.predicate(is_large, on="x"))
    large = driver.session.query("SELECT x FROM A WHERE is_large(x) WINDOW [5]")
    small = driver.session.query("SELECT x FROM A WHERE NOT is_large(x) WINDOW [5]")
    driver.run(*with_end([{"A": [(number, number, "a", number * SECOND) for number in range(1, 6)]}]))
    assert [failure(driver, query) for query in (large, small)] == [None, None]
    for query, expected_values in ((large, [4, 5]), (small, [1, 2, 3])):
        table = query.results()
        assert table is not None
        assert sorted(table.column("x").to_pylist()) == expected_values
