"""Every scenario with hardly any rows: what is measured here is whether it runs, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from thalweg_lab.benches import adoption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("scenario", adoption.SCENARIOS)
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str) -> None:
    module = import_module(f"{adoption.__name__}.{scenario.replace('-', '_')}")
    results = module.measure(spark, lambda _done, _total: None, rows=2_000, rounds=1)
    assert [result.target for result in results] == [">= 4", ">= 0.95", "0.95 to 1.05"]
    assert {result.scenario for result in results} == {scenario}
