"""Every scenario with hardly any rows: what is measured here is whether it runs, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from thalweg_lab.benches import adoption
from thalweg_lab.benches.adoption import enabled_example, small_calls, tpch_queries
from thalweg_lab.tpch import PACKAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("scenario", "contenders"), [("udfs-costly", 2), ("text-native", 1)])
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str, contenders: int) -> None:
    module = import_module(f"{adoption.__name__}.{scenario.replace('-', '_')}")
    results = module.measure(spark, lambda _done, _total: None, rows=2_000, rounds=1)
    assert [result.target for result in results] == [">= 4", *[">= 0.95"] * contenders, "0.95 to 1.05"]
    assert {result.scenario for result in results} == {scenario}


def test_the_example_in_plain_spark_is_measured_enabled_and_as_it_is(spark: SparkSession) -> None:
    results = enabled_example.measure(spark, lambda _done, _total: None, rows=2_000, rounds=1)
    assert [result.target for result in results] == ["<= 1.1", "0.95 to 1.05"]


def test_queries_of_tpc_h_are_measured_one_by_one_and_together(spark: SparkSession) -> None:
    if not PACKAGES.exists():
        pytest.skip("run make tpch for the tables of TPC-H")
    results = tpch_queries.measure(
        spark, lambda _done, _total: None, numbers=(6, 14), scale=0.001, rounds=1, most_rounds=1
    )
    assert [result.target for result in results] == [*["<= 1.1"] * 5, "0.95 to 1.05", *["<= 1.1"] * 3]
    assert [result.measure.partition(",")[0] for result in results[6:]] == [
        f"{label}: tw.adapt(sample=True)" for label in ("query 6", "query 14", "together")
    ]
    assert all("which changes nothing" in result.measure for result in results[2:4])
    assert "against itself" in results[0].note


def test_calls_and_small_jobs_are_measured_for_every_kind_of_condition(spark: SparkSession) -> None:
    results = small_calls.measure(spark, lambda _done, _total: None, calls=1, rounds=1)
    assert [result.target for result in results] == ["<= 10", "<= 10", "<= 30", "<= 30"] * 5
