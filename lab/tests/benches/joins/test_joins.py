"""Scenarios with hardly any rows: what is measured here is whether they run and agree, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from thalweg_lab.benches import bench_of, joins
from thalweg_lab.benches.filters.race import Measurement, race
from thalweg_lab.benches.joins import (
    FLINK_PYTHON,
    amplifying,
    chain,
    cycle,
    micro_batch,
    peers,
    small,
    streams,
    two_way,
)
from thalweg_lab.benches.joins.cells import drive, prepared
from thalweg_lab.benches.joins.work import JoinWorkload
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


def test_spark_itself_gives_the_same_results(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in ("CONTROL_ROUNDS", "RUNS"):
        monkeypatch.setattr(streams, count, 1)
    ticks: list[tuple[int, int]] = []
    results = two_way.measure(spark, lambda *tick: ticks.append(tick), rows=200, batches=1)
    check(results, "two-way", [">= 2.5", "0.95 to 1.05"], ticks)


def test_of_several_runs_the_median_counts_and_all_must_agree() -> None:
    runs = iter([Measurement(1, 2, 3.0), Measurement(1, 2, 1.0), Measurement(1, 2, 2.0)])
    assert streams.median_run(lambda: next(runs), 3).seconds == 2.0
    runs = iter([Measurement(1, 2, 3.0), Measurement(1, 3, 1.0)])
    with pytest.raises(AssertionError, match="different results"):
        streams.median_run(lambda: next(runs), 2)


@pytest.mark.parametrize(
    "workload", [two_way.make_workload(100, 2, "left"), cycle.make_workload(100, 1), small.make_workload(10, 2, 1)]
)
def test_both_joins_of_a_workload_agree(workload: JoinWorkload, spark: SparkSession) -> None:
    with streams.files(workload) as folder:
        found = race("agree", streams.contenders_of(spark, folder, workload), 1, lambda _done, _total: None, "")
    assert found.slower(streams.SPARK, small.MOST).target == "<= 0.8"


def test_flink_is_asked_for_the_same_join(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def flink(workload: JoinWorkload) -> tuple[Measurement, bool]:
        return drive(workload.query, prepared(workload)).measurement(0), True

    monkeypatch.setattr(peers, "TARGETS", {"common-key": 10.0})
    results = peers.measure(spark, lambda _done, _total: None, rows=50, batches=1, flink=flink)
    assert [result.target for result in results] == [">= 10"]
    monkeypatch.delenv(FLINK_PYTHON, raising=False)
    with pytest.raises(ValueError, match=r"needs Apache Flink in an environment of its own: python -m venv"):
        peers.by_flink(chain.make_workload(1, 1))


def test_the_profile_of_a_micro_batch(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "SCENARIOS", (two_way,))
    results = micro_batch.measure(spark, lambda _done, _total: None, rows=50, batches=2)
    assert len({result.measure for result in results}) == len(results) == 11
    assert all(isinstance(result.value, int) for result in results)


def test_an_overrun_join_catches_up(spark: SparkSession) -> None:
    """How much faster rows come than they are joined is no matter of a test; that none is lost is."""
    module = import_module(f"{joins.__name__}.overload")
    ticks: list[tuple[int, int]] = []
    _, memory, totals = module.measure(spark, lambda *tick: ticks.append(tick), rows=300, seconds=0.5, calm=2)
    assert memory.holds, memory
    assert totals.holds, totals


@pytest.mark.parametrize("scenario", bench_of("joins").SCENARIOS)
def test_every_scenario_has_a_module(scenario: str) -> None:
    module = import_module(f"{joins.__name__}.{scenario.replace('-', '_')}")
    assert scenario == module.NAME
    assert callable(module.measure)
