"""A sample is taken only where it is a small share of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.filters import sample_worth
from thalweg.spark.filters.query import FilterOptions, ask
from thalweg.spark.filters.sample_worth import has_choice, reason_against_sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.filters.query import FilterQuery

SLOW = ("s rlike '[0-9]'", "s rlike '^777'")
SMALL, LARGE = 10_000, 10**9  # rows


def texts(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(rows).selectExpr("id", "id % 100 AS a", "cast(id AS string) AS s", "cast(id % 7 AS int) AS kind")


def asked(frame: DataFrame, *predicates: Any, **options: Any) -> FilterQuery:  # noqa: ANN401 - as tw.where takes them
    return ask(frame, predicates, FilterOptions(**options), may_join=True)


def thirds(rows: Integers) -> Booleans:
    return np.asarray(rows % 3 == 0)


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        (SLOW, True),
        (SLOW[:1], False),
        (("a > 3", "id > 7", SLOW[0]), False),
        ((tw.any_of(*SLOW),), True),
        ((SLOW[0], tw.lookup(pa.table({"a": [1]}), on="a")), True),
    ],
)
def test_two_slow_steps_are_a_choice(spark: SparkSession, predicates: tuple[Any, ...], expected: bool) -> None:  # noqa: FBT001
    frame = texts(spark, SMALL)
    assert has_choice(asked(frame, *predicates)) is expected
    assert not has_choice(asked(frame, *predicates, policy="as-written"))


def test_a_short_job_is_not_sampled(spark: SparkSession) -> None:
    for rows, reason in ((SMALL, "the input is too small for a sample"), (LARGE, None)):
        frame = texts(spark, rows)
        assert reason_against_sample(asked(frame, *SLOW), frame) == reason


def test_cheap_conditions_leave_less_to_do(spark: SparkSession) -> None:
    frame = texts(spark, LARGE)
    cheap = [f"a <> {number}" for number in range(10)]
    assert reason_against_sample(asked(frame, *SLOW, *cheap), frame) == "the input is too small for a sample"


@pytest.mark.parametrize(("seconds", "reason"), [(0, None), (1e12, "the Python predicates take too little time")])
def test_classes_are_looked_for_where_python_takes_time(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seconds: float, reason: str | None
) -> None:
    monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", seconds)
    frame = texts(spark, LARGE)
    query = asked(frame, *(tw.predicate(thirds, on=column, takes="numpy") for column in ("id", "a")), route_by="auto")
    assert has_choice(query)
    found = reason_against_sample(query, frame)
    assert found is None if reason is None else (found or "").startswith(reason)


def test_few_rows_have_no_classes(spark: SparkSession) -> None:
    frame = texts(spark, SMALL)
    query = asked(frame, *(tw.predicate(thirds, on=column, takes="numpy") for column in ("id", "a")), route_by="auto")
    assert reason_against_sample(query, frame) == "the input is too small for a sample"
