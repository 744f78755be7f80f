"""Scenarios with hardly any rows: what is measured here is whether they run and agree, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from thalweg_lab.benches import joins, load
from thalweg_lab.benches.joins import amplifying, chain, common_key, streams
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALONE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "drift": ({"rows": 60, "phase": 3, "rounds": 1}, [">= 1.5", ">= 0.95", "0.95 to 1.05"]),
    "drift-hub-first": ({"rows": 60, "phase": 3, "rounds": 1}, [">= 1.4", ">= 0.92", "0.95 to 1.05"]),
    "growth": ({"rows": 60, "batches": 2, "rounds": 1}, ["<= 1.5"]),
    "ablation": ({"rows": 60, "batches": 2}, ["<= 1"] * 8),
    "skew": ({"rows": 1500, "batches": 3, "rounds": 1}, ["<= 1.25", "<= 0.5", "<= 1", "<= 1", "<= 1"]),
}


def check(results: list[Result], scenario: str, targets: list[str], ticks: list[tuple[int, int]]) -> None:
    assert [result.target for result in results] == targets
    assert {result.scenario for result in results} == {scenario}
    assert len({result.measure for result in results}) == len(results)
    assert all(result.note for result in results)
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]


@pytest.mark.parametrize("scenario", ALONE)
def test_scenarios_of_one_cell(scenario: str) -> None:
    options, targets = ALONE[scenario]
    ticks: list[tuple[int, int]] = []
    measure = import_module(f"{joins.__name__}.{scenario.replace('-', '_')}").measure
    check(measure(None, lambda *tick: ticks.append(tick), **options), scenario, targets, ticks)


def test_fixed_orders_and_adaptive_ones_agree() -> None:
    assert amplifying.alone(100, 2, 1, lambda _done, _total: None).target == ">= 0.95"


ON_SPARK: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cycle": ({"rows": 200, "batches": 1}, [">= 10", "0.95 to 1.05"]),
    "two-way-outer": ({"rows": 100, "batches": 2}, [">= 2.5", "0.95 to 1.05"]),
    "small": ({"rows": [10], "numbers_of_streams": [2], "batches": 1, "rounds": 1}, ["<= 0.8", "0.95 to 1.05"]),
    "skewed": ({"rows": 200, "batches": 1, "balance_batches": 1}, [">= 8", "0.95 to 1.05", "<= 1.5"]),
}


@pytest.mark.parametrize("scenario", ON_SPARK)
def test_spark_itself_gives_the_same_results(
    scenario: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "CONTROL_ROUNDS", 1)
    options, targets = ON_SPARK[scenario]
    ticks: list[tuple[int, int]] = []
    module = import_module(f"{joins.__name__}.{scenario.replace('-', '_')}")
    check(module.measure(spark, lambda *tick: ticks.append(tick), **options), scenario, targets, ticks)


def test_an_overrun_join_catches_up(spark: SparkSession) -> None:
    """How much faster rows come than they are joined is no matter of a test; that none is lost is."""
    module = import_module(f"{joins.__name__}.overload")
    ticks: list[tuple[int, int]] = []
    _, memory, totals = module.measure(spark, lambda *tick: ticks.append(tick), rows=300, seconds=0.5, calm=2)
    assert memory.holds, memory
    assert totals.holds, totals


def test_every_scenario_is_there() -> None:
    assert load("joins").SCENARIOS[:4] == ("common-key", "chain", "cycle", "amplifying")
    assert load("joins").SCENARIOS[4:8] == ("two-way", "two-way-outer", "small", "skewed")
    assert load("joins").SCENARIOS[8:] == ("drift", "drift-hub-first", "growth", "ablation", "skew", "overload")
    assert {module.NAME for module in (common_key, chain, amplifying)} < set(joins.SCENARIOS)
