"""DataFrames as they are, and whole programs, with adaptive filters: the rows are those of plain Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.filters.test_call_cost import counted

import thalweg as tw
from thalweg.spark import first_rows
from thalweg.spark.filters import sample_worth

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Queries, and how many of their filters become adaptive.
QUERIES = {
    "SELECT a, count(*) AS c FROM numbers WHERE half(id) > 10.5 AND even(a) AND s RLIKE '1' GROUP BY a HAVING c > 1": 1,
    "SELECT x.id, y.s FROM numbers x, numbers y WHERE x.id = y.id + 1 AND even(x.id) AND half(y.id) > 3"
    " AND even(y.a) AND half(x.a) < 2": 2,
    "SELECT x.id, y.id AS other FROM numbers x LEFT JOIN numbers y ON x.id = y.id + 1"
    " WHERE even(x.id) AND half(x.a) < 2 AND y.s IS NOT NULL": 1,
    "SELECT id FROM numbers WHERE even(id) AND half(a) > 1 UNION ALL"
    " SELECT id FROM (SELECT id, a + 1 AS b FROM numbers) WHERE even(b) AND half(id) < 50": 2,
    "SELECT id FROM numbers n WHERE even(id) AND half(a) > 1 AND EXISTS (SELECT 1 FROM numbers m WHERE m.a = n.id)": 1,
    "SELECT id, rank() OVER (ORDER BY s) AS r FROM numbers WHERE even(id) AND NOT even(a) ORDER BY r LIMIT 5": 1,
    "SELECT id FROM numbers WHERE even(id) AND half(a) > 1 OR half(id) > 90 AND NOT even(a)": 1,
    "SELECT id FROM numbers WHERE id > 5 AND s RLIKE '1'": 0,
    "SELECT id FROM numbers WHERE even(id)": 0,
    "SELECT id FROM numbers WHERE NOT even(id)": 0,
    "SELECT id FROM numbers WHERE id > 5 OR s RLIKE '1'": 0,
}


@pytest.fixture(scope="module")
def numbers(spark: SparkSession) -> DataFrame:
    frame = spark.range(200).selectExpr("id", "id % 5 AS a", "cast(id AS string) AS s")
    frame.createOrReplaceTempView("numbers")
    spark.udf.register("half", lambda number: number / 2, "double")
    spark.udf.register("even", lambda number: number % 2 == 0, "boolean")
    return frame


@pytest.fixture
def enabled(spark: SparkSession, numbers: DataFrame) -> Iterator[DataFrame]:
    tw.enable(spark)
    yield numbers
    tw.disable(spark)


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def wheres(frame: DataFrame) -> list[dict[str, Any]]:
    try:
        return list(tw.explain(frame).to_dict()["wheres"])
    except ValueError:  # no filter became adaptive
        return []


@pytest.mark.parametrize(("query", "count"), QUERIES.items(), ids=[query[7:60] for query in QUERIES])
@pytest.mark.usefixtures("numbers")
def test_filters_anywhere_in_a_plan(spark: SparkSession, query: str, count: int) -> None:
    written = spark.sql(query)
    adapted = tw.adapt(written)
    assert len(wheres(adapted)) == count
    assert (adapted is written) == (count == 0)
    assert adapted.schema == written.schema
    if count:
        assert rows(adapted) == rows(written)


def test_conditions_in_spark_are_ordered_by_a_sample(
    spark: SparkSession, numbers: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", 0.0)
    monkeypatch.setattr(first_rows, "SAMPLE_SECONDS", 60.0)
    written = spark.sql(
        "SELECT x.id FROM numbers x JOIN numbers y ON x.id = y.a"
        " WHERE length(regexp_replace(x.s, '[0-9]+', 'a')) = 1 AND x.s LIKE '%3' AND y.s RLIKE '1'"
    )
    adapted = tw.adapt(written)
    (explained,) = wheres(adapted)
    assert [line["runs_in"] for line in explained["predicates"]] == ["Spark", "Spark"]
    assert "sampled 200 rows" in explained["why"]
    assert rows(adapted) == rows(written)
    assert rows(tw.adapt(numbers.where("s LIKE '%3' AND s RLIKE '1'"))) == rows(numbers.where("s RLIKE '1.*3$|^13$'"))


def test_cheap_conditions_come_first_where_a_job_is_long_enough(spark: SparkSession) -> None:
    condition = "s RLIKE '(u|[0-9])+' AND s LIKE '%7' AND a > 3"
    columns = ("id % 10 AS a", "cast(id AS string) AS s")
    small, large = spark.range(10).selectExpr(*columns), spark.range(20_000_000).selectExpr(*columns)
    (explained,) = wheres(tw.adapt(large.where(condition)))
    assert explained["order"][0] == "a > 3"
    for written in (small.where(condition), large.where(f"{condition} AND 10 / a > 1")):
        assert tw.adapt(written) is written  # the job is short; to catch errors would take time


def test_filters_on_top_of_one_another_are_one(numbers: DataFrame) -> None:
    written = numbers.where("even(id)").where("half(a) > 1").where("s RLIKE '1'")
    adapted = tw.adapt(written)
    (explained,) = wheres(adapted)
    assert explained["as_written"] == ["even(id)", "half(a) > 1", "RLIKE(s, '1')"]
    assert rows(adapted) == rows(written)
    assert tw.adapt(adapted) is adapted


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.a, count(*) FROM numbers x JOIN numbers y ON x.id = y.a WHERE x.a > 3 AND y.s LIKE '1%' GROUP BY 1",
        "SELECT * FROM numbers WHERE s LIKE '1%' AND id NOT IN (SELECT a FROM numbers WHERE s LIKE '%7%')",
        "SELECT id FROM numbers WHERE a > 3 AND (id < 5 OR id > 9) AND s IN ('1', '2') AND id IS NOT NULL",
    ],
)
@pytest.mark.usefixtures("numbers")
def test_a_plan_without_a_choice_is_left_alone_after_few_questions(
    spark: SparkSession, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tw.adapt(spark.sql(query))  # classes of the JVM are looked up once
    written = spark.sql(query)
    with counted(spark, monkeypatch) as commands:
        assert tw.adapt(written) is written
    assert len(commands) <= 8, "\n".join(commands)


def test_a_cache_is_used_as_it_is(numbers: DataFrame) -> None:
    cached = numbers.where("even(id) AND half(id) > 1").cache()
    try:
        assert tw.adapt(cached) is cached
        written = cached.where("even(a) AND half(a) > 1")
        adapted = tw.adapt(written)
        assert "InMemoryRelation" in adapted._jdf.queryExecution().optimizedPlan().toString()  # noqa: SLF001
        assert rows(adapted) == rows(written)
    finally:
        cached.unpersist()


def test_a_stream(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    numbers.coalesce(1).write.parquet(f"{tmp_path}/in")
    stream = spark.readStream.schema(numbers.schema).parquet(f"{tmp_path}/in").where("even(id) AND half(a) > 1")
    adapted = tw.adapt(stream.select("id"))
    writer = adapted.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/checkpoint")
    writer.trigger(availableNow=True).start(f"{tmp_path}/out").awaitTermination()
    assert rows(spark.read.parquet(f"{tmp_path}/out")) == rows(numbers.where("even(id) AND half(a) > 1").select("id"))
    assert len(wheres(adapted)) == 1


LEFT = {
    "SELECT id FROM numbers WHERE id > 5 AND a < 3": (
        "(numbers.id > 5) AND (numbers.a < 3)",
        "all its conditions are cheap",
    ),
    "SELECT id FROM numbers WHERE id > 5 AND s RLIKE '1'": ("RLIKE(", "only one of its conditions takes time"),
    "SELECT id FROM numbers WHERE s RLIKE '1'": ("RLIKE(", "it has a single condition"),
    "SELECT id FROM numbers WHERE even(id)": ("even(id)", "it has a single condition"),
    "SELECT id FROM numbers WHERE s RLIKE '1' AND s LIKE '%3'": ("RLIKE(", "the input is too small for a sample"),
    "SELECT id FROM numbers WHERE length(even(id)) > 2": ("even(id)", "its value is used for more than a comparison"),
    "SELECT a FROM numbers GROUP BY a HAVING max(s) LIKE '1%3' AND min(s) LIKE '%3'": ("LIKE", "behind a join, an agg"),
    "SELECT id FROM numbers WHERE id IN (SELECT a FROM numbers)": ("id", "it has a subquery"),
}


@pytest.mark.parametrize(("query", "told"), LEFT.items(), ids=[query[15:60] for query in LEFT])
@pytest.mark.usefixtures("numbers")
def test_explain_tells_why_a_filter_is_as_it_was(spark: SparkSession, query: str, told: tuple[str, str]) -> None:
    written = spark.sql(query)
    assert tw.adapt(written) is written
    explained = tw.explain(written)
    (left,) = explained.to_dict()["left"]
    assert told[0] in left["filter"]
    assert told[1] in left["reason"]
    assert str(explained).startswith("tw.adapt changed nothing. Filters that are as they were:\n    ")


def test_explain_tells_of_filters_that_became_adaptive_and_of_others(spark: SparkSession, numbers: DataFrame) -> None:
    adapted = tw.adapt(numbers.where("even(id) AND half(a) > 1").groupBy("a").count().where("a > 1"))
    explained = tw.explain(adapted)
    assert len(explained.wheres) == 1
    assert explained.to_dict()["left"] == [{"filter": "a > 1", "reason": "it has a single condition"}]
    assert "tw.adapt left some filters as they were:\n    a > 1: it has" in str(explained)
    unfiltered = spark.range(3)
    assert str(tw.explain(tw.adapt(unfiltered))) == "tw.adapt changed nothing: it found no filter in the plan"
    with pytest.raises(ValueError, match=r"If tw\.adapt left the plan as it was, pass the very DataFrame"):
        tw.explain(numbers)


def test_samples_can_be_had_of_short_jobs(spark: SparkSession, numbers: DataFrame) -> None:
    written = numbers.where("s LIKE '%3' AND s RLIKE '1' AND a > 2")
    assert tw.adapt(written) is written
    adapted = tw.adapt(written, sample=True)
    assert "sampled 200 rows" in wheres(adapted)[0]["why"]
    assert rows(adapted) == rows(written)
    single = spark.range(5).where("id > 3")
    assert tw.adapt(single, sample=True) is single
    with pytest.raises(TypeError, match="sample is True, False or None, not 100"):
        tw.adapt(written, sample=100)  # type: ignore[arg-type]


def test_errors_stay_errors(numbers: DataFrame) -> None:
    written = numbers.where("half(s) > 1 AND even(id)")
    with pytest.raises(Exception, match="TypeError: unsupported operand"):
        written.count()
    with pytest.raises(Exception, match="TypeError: unsupported operand"):
        tw.adapt(written).count()


def test_what_spark_keeps_elsewhere_leaves_the_frame_as_it_is(
    numbers: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thalweg.spark.filters import adapt

    def fail(*_: object) -> None:
        raise AttributeError("no such method")

    monkeypatch.setattr(adapt, "lower", fail)
    written = numbers.where("even(id) AND half(a) > 1")
    with pytest.warns(UserWarning, match="leaves the DataFrame as it is: AttributeError: no such method"):
        assert tw.adapt(written) is written
    assert "all filters: it failed with AttributeError: no such method" in str(tw.explain(written))


def test_a_whole_program(spark: SparkSession, enabled: DataFrame) -> None:
    from pyspark.sql import functions as f

    kept = enabled.where("even(id)").filter(enabled.s.rlike("1") & (enabled.a > 0)).where("half(a) < 2")
    assert len(wheres(kept)) == 1
    queried = spark.sql("SELECT id FROM numbers WHERE even(id) AND half(a) > 1").groupBy().count()
    assert len(wheres(queried)) == 1
    picked = enabled[enabled.s.rlike("1") & (enabled.a > 0) & f.expr("half(a) < 2")]
    assert len(wheres(picked)) == 1
    assert str(enabled["s"]) == "Column<'s'>"
    through = tw.where(enabled, "even(id) AND half(a) > 1")
    assert len(wheres(through)) == 1
    found = rows(kept), rows(queried), rows(through), rows(picked)
    tw.disable(spark)
    plain = enabled.where("even(id)").filter(enabled.s.rlike("1") & (enabled.a > 0)).where("half(a) < 2")
    assert wheres(plain) == []
    plain_pick = enabled[enabled.s.rlike("1") & (enabled.a > 0) & f.expr("half(a) < 2")]
    both = enabled.where("even(id) AND half(a) > 1")
    assert found == (rows(plain), rows(both.groupBy().count()), rows(both), rows(plain_pick))


@pytest.mark.usefixtures("enabled")
def test_statements_that_are_no_queries(spark: SparkSession) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW evens AS SELECT id FROM numbers WHERE even(id) AND half(id) > 1")
    assert spark.sql("SHOW TABLES").count() >= 1
    assert spark.sql("SET thalweg.test = 1").count() == 1
    assert spark.sql("SELECT count(*) AS c FROM evens").first() == (98,)
    assert spark.sql("VALUES (1), (2)").where("col1 > 1").count() == 1


def test_methods_are_put_back(spark: SparkSession) -> None:
    from pyspark.sql.classic.dataframe import DataFrame
    from pyspark.sql.session import SparkSession

    methods = DataFrame.where, DataFrame.filter, SparkSession.sql
    tw.enable(spark)
    tw.enable(spark)
    assert DataFrame.where is not methods[0]
    tw.disable(spark)
    tw.disable(spark)
    assert (DataFrame.where, DataFrame.filter, SparkSession.sql) == methods
