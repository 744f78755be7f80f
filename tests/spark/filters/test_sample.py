"""A sample costs little or is not taken."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import thalweg as tw
from thalweg.spark import first_rows
from thalweg.spark.analysis.catalyst import Facts
from thalweg.spark.filters import forms, sample_worth
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.forms import UNTRIED_SECONDS
from thalweg.spark.filters.sample import take_sample
from thalweg.spark.first_rows import costly_step, costly_step_in, estimated_size
from thalweg.spark.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FOREVER = 600.0  # seconds: however busy the machine is
SLOW = ("s rlike '[0-9]'", "s rlike '^777'")


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(4000, numPartitions=2).selectExpr("id", "id % 100 AS a", "cast(id AS string) AS s")


@pytest.fixture
def large_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All inputs count as large enough for a sample."""
    monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", 0)


def notes(kept: DataFrame) -> str:
    return str(tw.explain(kept).to_dict()["wheres"][0]["notes"])


def identity(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


@pytest.mark.usefixtures("large_inputs")
@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame.groupBy("s", "a").count(),
        lambda frame: frame.sort("s"),
        lambda frame: frame.join(frame.selectExpr("id AS other"), frame.id == 3),
        lambda frame: frame.mapInArrow(identity, frame.schema),
        lambda frame: frame.distinct(),
        lambda frame: frame.repartition(3),
        lambda frame: frame.unionAll(frame.sort("a")),
    ],
    ids=["aggregated", "sorted", "joined", "python", "distinct", "shuffled", "union"],
)
def test_the_call_does_not_run_its_input(numbers: DataFrame, make: Any) -> None:  # noqa: ANN401 - makes a frame
    frame = make(numbers)
    assert costly_step(frame) is not None
    kept = tw.where(frame, *SLOW)
    assert "no sample was taken: it would have to run the input, which has" in notes(kept)


@pytest.mark.usefixtures("large_inputs")
def test_a_sample_of_a_plain_input_is_taken(numbers: DataFrame) -> None:
    for frame in (numbers, numbers.where("a > 3").select("s"), numbers.unionAll(numbers)):
        assert costly_step(frame) is None
        assert "sampled" in tw.explain(tw.where(frame, *SLOW)).to_dict()["wheres"][0]["why"]


@pytest.mark.usefixtures("large_inputs")
def test_a_cache_is_sampled_once_it_is_filled(numbers: DataFrame) -> None:
    cached = numbers.groupBy("s").count().cache()
    try:
        assert "a cache that is not filled yet" in notes(tw.where(cached, *SLOW))
        cached.count()
        assert costly_step(cached) is None
    finally:
        cached.unpersist()


def test_steps_are_read_from_the_text_of_a_plan() -> None:
    cached = [
        "Union",
        ":- *(1) Project [id#1]",
        ":  +- InMemoryTableScan [id#1]",
        ":        +- InMemoryRelation [id#1]",
        ":              +- *(1) HashAggregate(keys=[])",
        "+- *(2) Range (0, 9)",
    ]
    assert costly_step_in("\n".join(cached)) is None
    assert costly_step_in("*(2) Project [id#1]\n+- *(2) Sort [id#1]\n   +- FileScan parquet [id#1]") == "Sort"


@pytest.mark.usefixtures("large_inputs")
def test_a_sample_that_takes_too_long_is_cancelled(numbers: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = f"thalweg.test.{uuid.uuid4().hex}"
    system: Any = java_class(numbers.sparkSession._jvm, "java.lang.System")  # noqa: SLF001 - there it says so

    class LimitOnceBegun(threading.Event):
        """The limit ends when a row is at the condition: Spark interrupts no task that is about to start."""

        def wait(self, timeout: float | None = None) -> bool:
            if timeout == first_rows.SAMPLE_SECONDS:
                while system.getProperty(begun) is None:
                    super().wait(0.02)
                return self.is_set()
            return super().wait(timeout)

    monkeypatch.setattr(first_rows, "threading", SimpleNamespace(Event=LimitOnceBegun, Thread=threading.Thread))
    condition = (
        f"java_method('java.lang.System', 'setProperty', '{begun}', 'yes') = ''"
        " OR (id = 0 AND java_method('java.lang.Thread', 'sleep', 60000L) <> '')"
    )
    kept = tw.where(numbers.coalesce(1), *SLOW, condition)
    assert "no sample was used: a sample took longer than" in notes(kept)
    tracker: Any = numbers.sparkSession.sparkContext._jsc.sc().statusTracker()  # noqa: SLF001 - no public way
    while any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):  # the suite's timeout ends this
        time.sleep(0.01)


def test_a_mixed_disjunction_is_tried(numbers: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows, "SAMPLE_SECONDS", FOREVER)
    monkeypatch.setattr(forms, "TRIAL_SECONDS", FOREVER)
    rare = tw.predicate(lambda a: np.isin(a, [1, 2]), on="a", takes="numpy", name="rare")
    kept = tw.where(numbers, *SLOW, tw.any_of(rare, "s rlike '^9'"), sample=True)
    lines = {line["name"]: line for line in tw.explain(kept).to_dict()["wheres"][0]["predicates"]}
    assert lines["rare or s rlike '^9'"]["cost"] not in (None, UNTRIED_SECONDS)
    assert kept.count() == numbers.where("s rlike '^777' AND (a IN (1, 2) OR s rlike '^9')").count()


def test_the_only_condition_that_may_raise_runs_as_written(numbers: DataFrame) -> None:
    for conditions in (("cast(s AS int) > 50", "a > 3"), ("cast(s AS int) > 50",), ("a > 3", "cast(s AS int) > 50")):
        kept = tw.where(numbers, *conditions)
        plan = kept._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - what Spark makes of it
        assert "tryeval" not in plan.lower()
        assert kept.count() == numbers.where(" AND ".join(conditions)).count()
    both = tw.where(numbers, "cast(s AS int) > 50", "cast(s AS int) < 90")
    assert "tryeval" in both._jdf.queryExecution().executedPlan().toString().lower()  # noqa: SLF001


def strictly(text: str) -> SparkCondition:
    from pyspark.sql import functions as f

    return SparkCondition(f.expr(text), Facts(safe=False, cheap=False, deterministic=True))


def columns(*names: str) -> dict[str, Column]:
    from pyspark.sql import functions as f

    return {name: f.col(name) for name in names}


@pytest.fixture
def plain(spark: SparkSession) -> DataFrame:
    return spark.range(3000).selectExpr("id", "cast(id AS string) AS s", "named_struct('x', id) AS nested")


def test_a_sample_says_what_each_condition_does(plain: DataFrame) -> None:
    conditions = [strictly(text) for text in ("id % 2 = 0", "if(id = 7, null, id > 5)", "cast(s || if(id = 9, 'x', '') as int) >= 0")]  # noqa: E501 # fmt: skip
    sampled = take_sample(plain, conditions, columns("id", "nested.x"), estimated_size(plain))
    ids = sampled.columns["id"].to_pylist()
    assert len(ids) == 3000  # as small as that, all of them
    assert sampled.columns["nested.x"].to_pylist() == ids
    assert sampled.codes[:, 0].tolist() == [1 if number % 2 == 0 else 0 for number in ids]
    assert sampled.codes[:, 1].tolist() == [2 if number == 7 else int(number > 5) for number in ids]
    assert sampled.codes[:, 2].tolist() == [-1 if number == 9 else 1 for number in ids]
    assert (sampled.seconds > 0).all()
    assert sampled.where_from == "from the first rows of every partition"


def test_a_large_input_is_sampled_at_its_front(plain: DataFrame) -> None:
    sampled = take_sample(plain, [strictly("id >= 0")], columns("id"), None)
    assert 0 < len(sampled.codes) < 600
    assert "not representative if the input is sorted" in sampled.where_from


def test_an_empty_input_is_no_trouble(plain: DataFrame) -> None:
    sampled = take_sample(plain.where("id < 0"), [strictly("id >= 0")], columns("id"), None)
    assert len(sampled.codes) == 0
    assert (sampled.seconds > 0).all()


def test_a_sample_that_fails_is_not_used(spark: SparkSession) -> None:
    from pyspark.errors import PythonException
    from pyspark.sql import functions as f

    share = f.udf(lambda k: 10 // k, "int")
    frame = spark.range(8).selectExpr("id", "id % 4 AS k")
    condition = (share("k") >= 2) & (share("k") >= 2) & f.col("id").cast("string").rlike("[0-9]")
    kept = tw.where(frame, condition, sample=True)  # a part that may raise occurs twice, and stays in Spark
    assert "no sample was used: it failed with PythonException" in str(tw.explain(kept))
    with pytest.raises(PythonException):
        kept.collect()


def test_a_dataframe_whose_plan_fails_is_filtered_without_a_sample(spark: SparkSession) -> None:
    from pyspark.errors import ArithmeticException

    frame = spark.sql("SELECT k, cast(k AS string) AS s FROM VALUES (0), (1) AS t(k)").where("10 / k > 4")
    kept = tw.where(frame, "s RLIKE '1'", "length(s) < 3")
    with pytest.raises(ArithmeticException):
        kept.collect()
