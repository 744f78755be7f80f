from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import thalweg as tw
from thalweg.spark.job_descriptions import PROPERTY, described_jobs
from thalweg.spark.plan_text import plan_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_jobs_are_described_within_the_context_alone(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert context.getLocalProperty(PROPERTY) is None
    with described_jobs(spark, "thalweg where: 2 predicates"):
        with described_jobs(spark, "a sample"):
            assert context.getLocalProperty(PROPERTY) == "a sample\nthalweg where: 2 predicates"
        assert context.getLocalProperty(PROPERTY) == "thalweg where: 2 predicates"
    with pytest.raises(ZeroDivisionError), described_jobs(spark, "thalweg where: 1 predicate"):
        raise ZeroDivisionError
    assert context.getLocalProperty(PROPERTY) is None


def test_a_plan_says_how_many_predicates_a_python_stage_has(spark: SparkSession) -> None:
    even = tw.predicate(lambda id: id % 2 == 0, takes="numpy", name="<even>")  # noqa: A006
    large = tw.predicate(lambda id: id > 5, takes="numpy", name="large")  # noqa: A006
    kept = tw.where(spark.range(10), "id < 100", even, large)
    assert "thalweg where: 2 of 3 predicates" in plan_text(kept)
    picture = tw.explain(kept)._repr_html_()  # as a notebook calls it
    assert "&lt;even&gt;" in picture
    assert "<even>" not in picture
