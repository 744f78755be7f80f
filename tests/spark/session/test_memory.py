from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.session.harness import SECOND, Batch, Driver, QueryText, expected, rows_in_memory, with_end

from thalweg.spark.session.branches import Ending
from thalweg.spark.session.memory import expected_size, jobs_under, memory_cap, round_sizes, row_sizes
from thalweg.spark.session.panes import Pane
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import ProgramQuery
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
