from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.session.harness import SECOND, Batch, Driver, QueryText, expected, rows_in_memory, with_end

from thalweg.charts import PlanChoice
from thalweg.spark.plan_text import plan_text
from thalweg.spark.session import results
from thalweg.spark.session.branches import Ending, branches_of, written_files
from thalweg.spark.session.common_joins import common_query, core
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.program import ProgramQuery, SharedCondition
from thalweg.spark.session.views import RowViews
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = [Source("A", ("ts", "k", "x", "s")), Source("B", ("ts", "k", "y"))]
JOIN = "FROM A AS a, B AS b WHERE a.k = b.k AND a.x > 1"


def program_query(text: str, token: str = "q") -> ProgramQuery:  # noqa: S107 - no password
    query = parse_query(f"{text} WINDOW [5]", SOURCES)
    keeps: dict[str, tuple[SharedCondition, ...]] = {each.alias: () for each in query.inputs}
    for each in query.selections:
        source = next(read.source for read in query.inputs if read.alias == each.alias)
        keeps[each.alias] += (SharedCondition(source, each.shared_sql, each.shared_sql),)
    return ProgramQuery(token, query, keeps, {each.alias: () for each in query.inputs})


def ending(text: str, plan: int = 0, rounds: Sequence[int] = (1,)) -> Ending:
    query = program_query(text, text)
    return Ending(query, tuple(rounds), query.space.candidates[plan])


ALIKE = [
    f"SELECT a.x, b.y {JOIN}",
    f"SELECT a.s AS t {JOIN}",
    "SELECT p.x + q.y AS total FROM A AS p JOIN B AS q ON q.k = p.k WHERE p.x > 1",
    "SELECT a.y FROM B AS a, A AS b WHERE a.k = b.k AND b.x > 1",
]
OTHERS = [
    f"SELECT DISTINCT a.x, b.y {JOIN}",
    f"SELECT a.x, b.y {JOIN} AND b.y > 1",
    f"SELECT a.x, b.y {JOIN} AND a.x < b.y",
    f"SELECT a.x, b.y {JOIN} AND a.x = b.y",
    f"SELECT count(*) AS n {JOIN}",
    f"SELECT a.x, count(*) AS n {JOIN} GROUP BY a.x",
    f"SELECT count(DISTINCT a.x) AS n {JOIN}",
    f"SELECT count(DISTINCT b.y) AS n {JOIN}",
    "SELECT p.x FROM A AS p, A AS q WHERE p.k = q.k AND p.x > 1",
    "SELECT p.x FROM A AS p, A AS q WHERE p.k = q.k AND q.x > 1",
]


def test_queries_with_one_core_are_one_branch() -> None:
    endings = [ending(text) for text in (*ALIKE, *OTHERS)]
    tokens = [[each.query.token for each in branch] for branch in branches_of(endings)]
    assert tokens == [ALIKE, *([text] for text in OTHERS)]


def test_other_plans_and_rounds_are_branches_of_their_own() -> None:
    """A plan that Spark would run identically is no other plan."""
    first, second, *_ = ALIKE
    assert "MultiJoin" in str(ending(first, plan=-1).plan)
    assert len(branches_of([ending(first), ending(second, plan=-1)])) == 2
    assert len(branches_of([ending(first), ending(second, rounds=[1, 2])])) == 2
    query = program_query(second)
    projected_first = query.space.plan(PlanChoice(0, (1, 0)))
    assert projected_first not in query.space.candidates
    assert core(query, projected_first) == core(program_query(first), ending(first).plan)


def test_groups_are_common_if_their_keys_are() -> None:
    texts = [
        f"SELECT a.s, count(*) AS n {JOIN} GROUP BY a.s",
        f"SELECT sum(b.y) AS total {JOIN} GROUP BY a.s HAVING count(*) > 2",
        f"SELECT b.y, count(*) AS n {JOIN} GROUP BY b.y",
    ]
    endings = [ending(text) for text in texts]
    first, second = branches_of(endings)
    assert [len(first), len(second)] == [2, 1]
    common = common_query([each.query for each in first])
    outputs = [output.expression.sql for output in common.query.query.outputs]
    assert outputs == ["`a`.`s`", "count(*)", "sum(`b`.`y`)", "count(*) > 2"]
    assert [taken.keeps for taken in common.taken] == [(), (3,)]
    assert [taken.columns for taken in common.taken] == [((0, "s"), (1, "n")), ((2, "total"),)]


BATCHES: list[Batch] = with_end(
    [
        {
            "A": [(place % 3, place, "ab"[place % 2], (4 * number + place) * SECOND) for place in range(5)],
            "B": [(place % 2, place, (4 * number + place) * SECOND) for place in range(4)],
        }
        for number in range(2)
    ]
)


@pytest.mark.parametrize(
    ("texts", "joins"),
    [
        (["SELECT a.x, b.y", "SELECT b.y AS z, a.x * 2 AS twice, a.s"], 1),
        (
            [
                "SELECT a.k, count(*) AS n, sum(b.y) AS total {} GROUP BY a.k",
                "SELECT max(a.x) AS most {} GROUP BY a.k HAVING count(*) > 1",
                "SELECT a.k {} GROUP BY a.k HAVING sum(b.y) > 2",
                "SELECT count(*) AS n, sum(b.y) AS total",
                "SELECT min(b.y) AS least {} HAVING count(*) > 100",
            ],
            2,
        ),
    ],
)
def test_a_common_join_is_computed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], joins: int
) -> None:
    """In Spark's plan; and the results of all queries are those of DuckDB."""
    plans: list[str] = []

    def explained(
        branches: Sequence[Sequence[Ending]], views: RowViews, catalog: Catalog, folder: str, *, in_one_task: bool
    ) -> DataFrame:
        frame = written_files(branches, views, catalog, folder, in_one_task=in_one_task)
        plans.append(plan_text(frame, "simple"))
        return frame

    monkeypatch.setattr(results, "written_files", explained)
    queries = [QueryText((text if "{}" in text else text + " {}").format(JOIN), 5, 2.5) for text in texts]
    renamed = QueryText(queries[0].body.replace("a.", "p.").replace("AS a", "AS p"), 5, 2.5)
    driver = Driver(spark, tmp_path)
    standing = [driver.session.query(str(query)) for query in (*queries, renamed)]
    driver.run(*BATCHES)
    for query, text in zip(standing, (*queries, renamed), strict=True):
        assert rows_in_memory(query) == expected(text, BATCHES), str(text)
    assert {plan.count("HashJoin") for plan in plans} == {joins}
    about = driver.session.explain().to_dict()["sessions"][0]["queries"]
    assert standing[-1].name in about[0]["computed_with"]
    assert f"computed once for this query and {', '.join(about[0]['computed_with'])}" in str(driver.session.explain())


def test_a_query_that_fails_leaves_those_with_its_join_alone(spark: SparkSession, tmp_path: Path) -> None:
    good = [QueryText(f"SELECT {output} {JOIN}", 5) for output in ("a.x, b.y", "a.s")]
    driver = Driver(spark, tmp_path)
    queries = [driver.session.query(str(text)) for text in good]
    failing = driver.session.query(f"SELECT 10 / b.y AS part {JOIN} WINDOW [5]")
    batches = with_end([{"A": [(1, 5, "a", SECOND), (2, 6, "b", SECOND)], "B": [(1, 0, SECOND), (2, 1, SECOND)]}])
    driver.run(*batches)
    assert driver.engine is not None
    assert "DIVIDE_BY_ZERO" in str(driver.engine.position.queries[failing.compiled.token].failed)
    for query, text in zip(queries, good, strict=True):
        assert rows_in_memory(query) == expected(text, batches)
