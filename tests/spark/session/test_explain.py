from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    QueryText,
    expected,
    rounds_of,
    rows_in_memory,
    with_end,
    write_files,
)

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = QueryText("SELECT k, x FROM A WHERE x > 3", 5)
JOINED = QueryText("SELECT A.x, B.y FROM A JOIN B ON A.k = B.k WHERE x > 3 AND is_odd(x)", 10)
BATCHES: list[Batch] = with_end(
    [
        {"A": [(1, 5, "a", SECOND)], "B": [(1, 6, SECOND)]},
        {"A": [(1, 7, "b", 12 * SECOND)]},
        {"A": [(1, 1, "c", SECOND)]},  # late, after the round of its first row has ended
    ]
)


def test_a_session_tells_what_it_does(spark: SparkSession, tmp_path: Path) -> None:
    """By explain, and by metrics after every micro-batch."""
    driver = Driver(spark, tmp_path)
    write_files(tmp_path, BATCHES)
    session = driver.session
    for text, name in [(ALL, "all"), (JOINED, "joined")]:
        session.query(str(text), name=name)
    before: dict[str, Any] = session.explain().to_dict()["sessions"][0]
    assert [query["status"] for query in before["queries"]] == ["not started"] * 2
    told: list[dict[str, Any]] = []
    metrics = tw.Metrics(spark, told.append)
    session.start(availableNow=True)
    assert session.await_termination(240)
    metrics.close()
    assert [each["batch"] for each in told] == [0, 1, 2, 3]
    about: dict[str, Any] = session.explain().to_dict()["sessions"][0]
    assert told[-1]["sessions"][0]["queries"] == about["queries"]
    assert about["batches"] == 4
    assert about["rows"] == sum(len(rows) for batch in BATCHES for stream, rows in batch.items() if stream in "AB")
    assert (about["written_conditions"], about["shared_conditions"]) == (3, 2)
    single, joined = about["queries"]
    assert single | {"rounds": 2, "rows": expected(ALL, BATCHES).total(), "late_rows": 1, "plans": 2} == single
    assert joined | {"rounds": 2, "rows": expected(JOINED, BATCHES).total(), "conditions_of_its_own": 0} == joined
    assert joined["decisions"] == joined["rounds"]
    assert about["memory"]["cap"] is None
    assert about["memory"]["held"] > 0
    assert about["lag_seconds"] > 0
    assert 0 <= joined["fidelity"] <= 1
    shown = str(session.explain())
    for words in ["session: 2 queries, 4 micro-batches", "all: served", "1 late rows", "Join on `A`.`k` = `B`.`k`"]:
        assert words in shown


@pytest.mark.parametrize("memory", [pytest.param(None, marks=pytest.mark.thorough), 10_000])
def test_every_query_is_served_in_every_round_beside_a_heavy_one(
    spark: SparkSession, tmp_path: Path, memory: int | None
) -> None:
    """By the service log: a query with 60 times the rows of the others holds none of them back, with a cap or not."""
    driver = Driver(spark, tmp_path, memory=memory)
    rows = [(key % 2, 9, "a", SECOND) for key in range(120)]
    ends = [SECOND, 9 * SECOND, 13 * SECOND]
    batches = with_end([{"A": [(*row[:-1], end) for row in rows]} for end in ends])
    texts = [
        "SELECT p.k FROM A AS p, A AS q WHERE p.k = q.k WINDOW [5]",
        str(ALL),
        "SELECT k, count(*) AS n FROM A GROUP BY k WINDOW [5]",
        "SELECT DISTINCT s FROM A WINDOW [5]",
    ]
    heavy, light, groups, distinct = (driver.session.query(text).compiled.token for text in texts)
    driver.run(*batches)
    assert driver.engine is not None
    log = [{token: got[:2] for token, got in record.served.items()} for record in driver.engine.log]
    assert log == [{}, *([{heavy: (1, 7200), light: (1, 120), groups: (1, 2), distinct: (1, 1)}] * 3)]
    assert [record.rows for record in driver.engine.log] == [120, 120, 120, 1]
    most_jobs = max(len(record.jobs) for record in driver.engine.log)
    assert most_jobs == 1 if memory is None else most_jobs > 1


def test_the_service_log_tells_what_each_query_got(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in (ALL, JOINED)]
    assert driver.session.service_log().count() == 0
    driver.run(*BATCHES)
    assert driver.engine is not None
    rows = driver.session.service_log().collect()
    explained = driver.session.explain().to_dict()["sessions"][0]["queries"]
    for query, about in zip(queries, explained, strict=True):
        own = [row for row in rows if row.query == query.name]
        assert sum(row.rows for row in own) == len(rows_in_memory(query)) == about["rows"]
        assert sum(row.rounds for row in own) == about["rounds"]
        assert sum(row.seconds for row in own) == pytest.approx(about["seconds"])
        assert about["seconds"] > 0
    taken_in = {record.number: record.rows for record in driver.engine.log}
    assert all(row.shared_rows == taken_in[row.batch] and row.shared_seconds > 0 for row in rows)


def test_the_log_of_rounds_is_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    """With the plan of every round, whatever chooses it; the results of all schedulers are the same."""
    driver = Driver(spark, tmp_path)
    schedulers = ("by-chart", "at-random", "by-first-estimate", "clairvoyant")
    queries = [driver.session.query(str(JOINED), name=name, scheduler=name) for name in schedulers]
    assert driver.session.log().count() == 0
    driver.run(*BATCHES)
    log = driver.session.log()
    chosen = ["query", "round", "plan", "is_move", "is_switch", "is_hit"]
    assert log.columns == [*chosen, "batch", "round_end", "rows_read", "rows", "seconds", "shared_seconds"]
    rows = log.collect()
    assert [row.query for row in rows] == [name for name in schedulers for _ in range(2)]
    assert not any(row.is_switch for row in rows if row.query == "by-first-estimate")
    assert [rows_in_memory(query) for query in queries] == [expected(JOINED, BATCHES)] * len(queries)


def test_the_log_tells_what_each_round_read_and_gave_and_took(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        ALL,
        QueryText("SELECT k, count(*) AS n FROM A GROUP BY k", 5),
        QueryText("SELECT count(*) AS n FROM A", 5),
    ]
    rows = [(number % 3, number, "a", number * SECOND // 2) for number in range(40)]
    batches = with_end([{"A": rows[:15]}, {"A": rows[15:]}])  # the first one ends one round, the second one two or more
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in texts]
    driver.run(*batches)
    log = driver.session.log().withColumn("end", f.unix_micros("round_end")).collect()
    for text, query in zip(texts, queries, strict=True):
        own = [row for row in log if row.query == query.name]
        results = Counter(result[1] for result in expected(text, batches).elements())
        ends = Counter(each * 5 * SECOND for row in rows for each in rounds_of(row[-1], text))
        assert {row.end: row.rows_read for row in own} == ends
        assert {row.end: row.rows for row in own} == {end: results[end] for end in ends}
        assert [row.round for row in own] == list(range(1, len(own) + 1))
    service = driver.session.service_log().collect()
    assert driver.engine is not None
    for name in ("seconds", "rows"):
        assert sum(row[name] for row in log) == pytest.approx(sum(row[name] for row in service))
    ended = max(row.batch for row in log)
    shared = sum(record.shared_seconds for record in driver.engine.log if record.number <= ended)
    assert sum(row.shared_seconds for row in log) == pytest.approx(shared)
    described = driver.session.explain().to_dict()["sessions"][0]["queries"][0]["last_rounds"]
    assert [(each["end"], each["rows_read"], each["rows"]) for each in described] == [
        (row.end, row.rows_read, row.rows) for row in log if row.query == queries[0].name
    ]
    assert "last round: " in str(driver.session.explain())


def test_charts_of_a_query_that_runs_are_drawn(spark: SparkSession, tmp_path: Path) -> None:
    """With the point of the last round and its trail."""
    driver = Driver(spark, tmp_path)
    query = driver.session.query(str(ALL))
    assert driver.session.charts(query) == []
    driver.run(*BATCHES)
    (chart,) = driver.session.charts(query)
    assert "@" in str(chart)
    assert "selectivity of A" in str(chart)
    assert len(chart.trail) == 2
    chart.save(tmp_path / "chart.svg")
    (described,) = driver.session.explain().to_dict()["sessions"][0]["queries"][0]["charts"]
    assert described["here"] == list(chart.here)
    assert "the only plan: Spark runs all 2 candidates identically:" in str(driver.session.explain())
