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
from thalweg.spark.session.common_joins import MOST_GROUPINGS, common_query, core
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
    grouped = OTHERS[4:6]  # by other keys
    assert tokens == [ALIKE, *([text] for text in OTHERS[:4]), grouped, *([text] for text in OTHERS[6:])]


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
    ]
    (first,) = branches_of([ending(text) for text in texts])
    common = common_query([each.query for each in first])
    assert common.groupings is None
    outputs = [output.expression.sql for output in common.query.query.outputs]
    assert outputs == ["`a`.`s`", "count(*)", "sum(`b`.`y`)", "count(*) > 2"]
    assert [taken.keeps for taken in common.taken] == [(), (3,)]
    assert [taken.columns for taken in common.taken] == [((0, "s"), (1, "n")), ((2, "total"),)]


def test_groups_by_other_keys_share_a_join_if_their_aggregates_are_small() -> None:
    held, single = "percentile(b.y, 0.5)", "SELECT {0}, count(*) AS n FROM A WHERE x > 1 GROUP BY {0}"
    texts = [
        f"SELECT a.s, count(*) AS n {JOIN} GROUP BY a.s",
        f"SELECT b.y, max(a.x) AS n {JOIN} GROUP BY b.y",
        f"SELECT a.k, {held} AS n {JOIN} GROUP BY a.k",
        f"SELECT a.k, count(*) AS n {JOIN} GROUP BY a.k HAVING {held} > 1",
        f"SELECT a.k, a.s, a.x, b.y, count(*) AS n {JOIN} GROUP BY 1, 2, 3, 4",
        single.format("x"),
        single.format("s"),
    ]
    endings = [ending(text) for text in texts]
    assert [[texts.index(each.query.token) for each in branch] for branch in branches_of(endings)] == [
        [0, 1],
        [2, 3],
        *([number] for number in range(4, 7)),
    ]


def test_a_pass_has_a_limited_number_of_groupings() -> None:
    texts = [f"SELECT count(*) AS n {JOIN} GROUP BY a.x % {number}" for number in range(2, 12)]
    assert [len(branch) for branch in branches_of([ending(text) for text in texts])] == [MOST_GROUPINGS, 2]


def test_outputs_of_several_groupings_are_told_apart_by_their_number() -> None:
    """A key stands for itself outside of aggregates, and columns within them keep their values."""
    texts = [
        f"SELECT a.x, a.x + 1 AS more, sum(a.x) AS total {JOIN} GROUP BY a.x",
        f"SELECT a.x + 1 AS more, max(a.x + 1) AS most {JOIN} GROUP BY a.x + 1 HAVING count(*) > 1",
        f"SELECT count(*) AS n {JOIN}",
    ]
    common = common_query([program_query(text) for text in texts])
    assert common.groupings is not None
    assert common.groupings.clause("r") == "GROUP BY r, key0, key1 GROUPING SETS ((r, key0), (r, key1), (r))"
    outputs = [output.expression.sql for output in common.query.query.outputs]
    assert outputs == [
        "CASE WHEN grouping_id() = 1L THEN `key0` END",
        "CASE WHEN grouping_id() = 1L THEN `key0` + 1 END",
        "CASE WHEN grouping_id() = 1L THEN sum(`column1`) END",
        "grouping_id() = 1L",
        "CASE WHEN grouping_id() = 2L THEN `key1` END",
        "CASE WHEN grouping_id() = 2L THEN max(`column1` + 1) END",
        "grouping_id() = 2L",
        "CASE WHEN grouping_id() = 2L THEN count(*) > 1 END",
        "CASE WHEN grouping_id() = 3L THEN count(*) END",
        "grouping_id() = 3L",
    ]
    assert [taken.keeps for taken in common.taken] == [(3,), (6, 7), (9,)]


BATCHES: list[Batch] = with_end(
    [
        {
            "A": [(place % 3, place, ["a", "b", None][place % 3], (4 * number + place) * SECOND) for place in range(5)],
            "B": [(place % 2, place, (4 * number + place) * SECOND) for place in range(4)],
        }
        for number in range(2)
    ]
)


@pytest.mark.parametrize(
    ("texts", "joins"),
    [
        pytest.param(
            ["SELECT count(*) AS n {} GROUP BY a.x", "SELECT b.y {}", "SELECT a.s, b.y {}"],
            2,
            marks=pytest.mark.thorough,
        ),
        (["SELECT a.x, b.y", "SELECT b.y AS z, a.x * 2 AS twice, a.s"], 1),
        pytest.param(
            [
                "SELECT a.k, count(*) AS n, sum(b.y) AS total {} GROUP BY a.k",
                "SELECT max(a.x) AS most {} GROUP BY a.k HAVING count(*) > 1",
                "SELECT a.k {} GROUP BY a.k HAVING sum(b.y) > 2",
                "SELECT count(*) AS n, sum(b.y) AS total",
                "SELECT min(b.y) AS least {} HAVING count(*) > 100",
            ],
            1,
            marks=pytest.mark.thorough,
        ),
        (
            [
                "SELECT a.s, count(*) AS n, sum(a.x) AS total, max(a.s) AS most {} GROUP BY a.s",
                "SELECT a.x, a.x + 1 AS more, sum(a.x + b.y) AS total {} GROUP BY a.x",
                "SELECT a.x + 1 AS more, min(a.x + 1) AS least, (a.x + 1) * 2 AS twice {} GROUP BY a.x + 1",
                "SELECT b.y, a.s, avg(a.x) AS mean, count(a.s) AS n {} GROUP BY a.s, b.y HAVING a.s IS NULL OR b.y > 1",
                "SELECT A.S AS t, 1 AS one, sum(B.Y) FILTER (WHERE a.x > 2) AS total {} GROUP BY 1, 2",
                "SELECT upper(a.s) AS t, max(a.s) AS most {} GROUP BY upper(a.s) HAVING count(*) > 1",
                "SELECT a.x % b.y AS rest, count(*) AS n {} AND b.y > 0 GROUP BY a.x % b.y",
                "SELECT count(*) AS n, count(a.s) AS some",
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
