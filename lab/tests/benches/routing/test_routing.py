"""Every scenario with hardly any rows: what is measured here is whether it runs, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from thalweg_lab.benches import bench_of, routing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTROL = "0.95 to 1.05"
TARGETS = {  # of each scenario, as they are reported
    "skew": [">= 60", ">= 2", CONTROL],
    "no-skew": [">= 0.98", CONTROL],
    "decoys": [">= 98"],
    "native": [">= 8", ">= 1.3", ">= 1.5", CONTROL, CONTROL],
    "star": [">= 0.9", CONTROL],
}


def test_every_scenario_has_its_targets_here() -> None:
    assert tuple(TARGETS) == bench_of("routing").SCENARIOS


@pytest.mark.parametrize("scenario", TARGETS)
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str) -> None:
    module = import_module(f"{routing.__name__}.{scenario.replace('-', '_')}")
    ticks: list[tuple[int, int]] = []
    results = module.measure(spark, lambda done, total: ticks.append((done, total)), rows=2_000, rounds=1)
    assert [result.target for result in results] == TARGETS[scenario]
    assert {result.scenario for result in results} == {scenario}
    assert len({result.measure for result in results}) == len(results)
    assert all(result.note for result in results)
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]
