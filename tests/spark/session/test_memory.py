from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    Episode,
    QueryText,
    expected,
    rows_in_memory,
    with_end,
)

from thalweg.spark.session.branches import Ending
from thalweg.spark.session.memory import (
    expected_size,
    first_too_large,
    jobs_under,
    memory_cap,
    round_sizes,
    row_sizes,
)
from thalweg.spark.session.panes import Pane
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.standing import StandingQuery
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def program_query(text: str, token: str = "q") -> ProgramQuery:  # noqa: S107 - no password
    query = parse_query(text, [Source("A", ("ts", "k", "x"))])
    return ProgramQuery(
        token, query, {each.alias: () for each in query.inputs}, {each.alias: () for each in query.inputs}
    )


AGGREGATE = program_query("SELECT count(*) AS n FROM A WINDOW [1]")
PANES = {
    "A": {number * SECOND: Pane(SECOND, number, {AGGREGATE.conjunctions["A"].name: number}) for number in range(1, 8)}
}


AGGREGATES = {
    "counted": QueryText("SELECT a.k, count(*) AS n FROM A AS a GROUP BY a.k", 5),
    "added": QueryText("SELECT a.k, sum(a.x) AS total FROM A AS a GROUP BY a.k", 5),
    "largest": QueryText("SELECT a.k, max(a.x) AS most FROM A AS a GROUP BY a.k", 5),
}


@pytest.mark.parametrize("memory", ["", "0", "-1", "5 apples", "1e3", 0, -3, True, None])
def test_a_cap_is_a_number_of_bytes(memory: object) -> None:
    with pytest.raises(ValueError, match="memory is a number of bytes"):
        memory_cap(memory)  # type: ignore[arg-type]


def test_only_rows_that_are_held_count() -> None:
    assert round_sizes(AGGREGATE, PANES, {"A": 10.0}) == {number: 10 * number for number in range(1, 8)}
    assert round_sizes(program_query("SELECT k FROM A WINDOW [1]"), PANES, {"A": 10.0}) == {}
    sizes = [WaitingFile("A", "a", rows=2, latest=0, size=10), WaitingFile("A", "b", rows=3, latest=0, size=40)]
    assert row_sizes(sizes) == {"A": 10.0}


def test_what_a_new_query_will_hold_is_known_if_its_rows_are_counted_already() -> None:
    panes = {"A": {end: pane for end, pane in PANES["A"].items() if end <= 2 * SECOND}}  # three rows in two seconds
    longer = program_query("SELECT count(*) AS n FROM A WINDOW [10]")
    assert expected_size(longer, panes, {"A": 10.0}) == pytest.approx(150)
    assert expected_size(program_query("SELECT k FROM A WINDOW [10]"), panes, {"A": 10.0}) == 0.0
    assert expected_size(longer, {}, {"A": 10.0}) is None


@given(st.lists(st.lists(st.integers(1, 7), min_size=1, unique=True).map(sorted), max_size=5), st.integers(1, 200))
def test_jobs_keep_to_the_cap_and_lose_no_round(rounds: list[list[int]], cap: int) -> None:
    queries = [program_query("SELECT count(*) AS n FROM A WINDOW [1]", str(number)) for number in range(len(rounds))]
    plan = AGGREGATE.space.candidates[0]
    endings = [Ending(query, tuple(numbers), plan) for query, numbers in zip(queries, rounds, strict=True)]
    jobs = jobs_under(cap, endings, PANES, {"A": 10.0})
    for job, held in zip(jobs.endings, jobs.sizes, strict=True):
        sizes = [10 * number for ending in job for number in ending.rounds]
        assert held == sum(sizes)
        assert held <= cap or len(sizes) == 1
    served = [(ending.query.token, number) for job in jobs.endings for ending in job for number in ending.rounds]
    assert served == [
        (query.token, number) for query, numbers in zip(queries, rounds, strict=True) for number in numbers
    ]
    assert len(jobs_under(None, endings, PANES, {"A": 10.0}).endings) == (1 if endings else 0)


def test_the_first_round_that_does_not_fit_is_found() -> None:
    def too_large(cap: int | None, numbers: Sequence[int]) -> int | None:
        found = first_too_large(cap, AGGREGATE, numbers, PANES, {"A": 10.0})
        return None if found is None else found.number

    assert [too_large(cap, range(1, 8)) for cap in (5, 10, 39, 69, 70, None)] == [1, 2, 4, 7, None, None]
    assert too_large(39, [1, 2, 6]) == 6
    assert too_large(39, []) is None
    assert first_too_large(5, program_query("SELECT k FROM A WINDOW [1]"), [1, 7], PANES, {"A": 10.0}) is None


def test_a_query_of_which_a_round_does_not_fit_waits_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others go on. Started again with more memory, it gives the results of a session without a cap."""
    rows = [(number % 4, number, "a", SECOND + number) for number in range(60)]
    batches: list[Batch] = [
        {"A": [(0, 1, "a", SECOND), (1, 2, "b", 2 * SECOND)]},
        {"A": [(*row[:-1], row[-1] + 5 * SECOND) for row in rows]},  # of the second round
        {"A": [(3, 3, "c", 12 * SECOND)]},
        {"A": [(3, 4, "c", 18 * SECOND)]},
    ]
    driver = Driver(spark, tmp_path, memory=500)
    counted = QueryText("SELECT a.k, count(*) AS n FROM A AS a WHERE a.x >= 0 GROUP BY a.k", 5)
    few = QueryText("SELECT a.k, count(*) AS n FROM A AS a WHERE a.x < 5 GROUP BY a.k", 5)

    def add() -> list[StandingQuery]:
        return [driver.session.query(str(text), name=name) for name, text in [("counted", counted), ("few", few)]]

    before = add()
    driver.run(*batches)
    assert rows_in_memory(before[0]) == expected(counted, batches[:3]) != Counter()  # the round before
    assert rows_in_memory(before[1]) == expected(few, batches)
    about: dict[str, Any] = driver.session.explain().to_dict()["sessions"][0]
    assert about["memory"]["waiting"] == ["counted"]
    assert 0 < about["memory"]["held"] <= 500
    assert "its round from 1970-01-01 00:00:05 UTC to 1970-01-01 00:00:10 UTC holds " in about["queries"][0]["status"]
    assert about["queries"][1]["status"] == "served"
    assert "waiting, since a round does not fit: counted" in str(driver.session.explain())
    messages = [record.getMessage() for record in caplog.records]
    assert sum(message.startswith("A query of a session waits for memory: S") for message in messages) == 1

    driver.memory = 100_000
    driver.open()
    after = add()
    driver.run(*with_end(batches)[-1:])
    assert rows_in_memory(before[0]) + rows_in_memory(after[0]) == expected(counted, with_end(batches))
    assert rows_in_memory(before[1]) + rows_in_memory(after[1]) == expected(few, with_end(batches))
    assert driver.session.explain().to_dict()["sessions"][0]["memory"]["waiting"] == []


def test_a_query_that_waits_for_memory_may_leave_rounds_out(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(number % 4, number, "a", SECOND + number) for number in range(60)]
    batches = with_end([{"A": rows}, {"A": [(1, 1, "b", 8 * SECOND)]}, {"A": [(2, 1, "b", 14 * SECOND)]}])
    driver = Driver(spark, tmp_path, memory=500)
    text = QueryText("SELECT a.k, count(*) AS n FROM A AS a GROUP BY a.k", 5)
    query = driver.session.query(str(text))
    driver.run(*batches[:2])
    query.resume()
    driver.run(*batches[2:])
    assert rows_in_memory(query) == expected(text, batches, [Episode(2, 4)]) != Counter()
    assert driver.session.explain().to_dict()["sessions"][0]["queries"][0]["status"] == "served"


@pytest.mark.thorough
def test_queries_under_a_cap_are_computed_in_turns(spark: SparkSession, tmp_path: Path) -> None:
    """Each is served in every micro-batch, in jobs that keep to the cap, with the results of a session without one."""
    rows = [(number % 4, number, "a", number * SECOND // 4) for number in range(40)]
    batches: list[Batch] = with_end([{"A": rows[:20]}, {"A": rows[20:]}])
    driver = Driver(spark, tmp_path, memory=500)
    queries = {name: driver.session.query(str(text), name=name) for name, text in AGGREGATES.items()}
    driver.run(*batches)
    for name, query in queries.items():
        assert rows_in_memory(query) == expected(AGGREGATES[name], batches)
    assert driver.engine is not None
    records = [record for record in driver.engine.log if record.jobs]
    assert any(len(record.jobs) > 1 for record in records)
    assert max(record.held_memory for record in records) <= 500 < max(record.wanted_memory for record in records)
    assert all({token for job in record.jobs for token in job} == set(driver.engine.served) for record in records)
    assert all(served.scheduler.costs.weights.memory > 0.6 for served in driver.engine.served.values())
    about = driver.session.explain()
    assert about.to_dict()["sessions"][0]["memory"]["in_turns"]
    assert "slowed down, in later jobs: " in str(about)
    with pytest.raises(ValueError, match=r"the query is refused: .* write a shorter WINDOW"):
        driver.session.query("SELECT k, count(*) AS n FROM A GROUP BY k WINDOW [1000 seconds]")
    driver.session.query("SELECT k, count(*) AS n FROM A WHERE x > 3 GROUP BY k WINDOW [1000 seconds]")  # who knows
    driver.open()
    driver.run()
    with pytest.raises(ValueError, match="the query is refused"):  # the rows that wait are known after a restart, too
        driver.session.query("SELECT k, count(*) AS n FROM A GROUP BY k WINDOW [1000 seconds]")
