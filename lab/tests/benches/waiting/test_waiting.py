"""Every scenario with hardly any rows: what is measured here is whether it runs and keeps the right rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from thalweg_lab.benches import bench_of
from thalweg_lab.benches.waiting import cascade, faults, rate, tokens, two_services, workload
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, service in workload.SERVICES.items():
        monkeypatch.setitem(workload.SERVICES, name, replace(service, seconds=service.seconds / 50))
    monkeypatch.setattr(workload, "LOCAL_SECONDS", (2e-6, 1e-6, 1e-7))
    monkeypatch.setattr(faults, "OUTAGE", (0.1, 0.4))
    monkeypatch.setattr(faults, "TIMEOUT", 0.3)


def no_tick(_done: int, _total: int) -> None:
    """Progress is of no interest here."""


def held(results: list[Result]) -> dict[str, bool]:
    return {result.measure: result.holds for result in results}


def test_scenarios() -> None:
    assert bench_of("waiting").SCENARIOS == ("two-services", "rate", "faults", "tokens", "cascade")


def test_two_services(spark: SparkSession) -> None:
    assert held(two_services.measure(spark, no_tick, rows=2000, few=100))["rows"]


def test_nothing_is_lost_by_faults(spark: SparkSession) -> None:
    assert all(result.holds for result in faults.measure(spark, no_tick, rows=2000))


def test_tokens_and_rate(spark: SparkSession) -> None:
    assert [result.target for result in tokens.measure(spark, no_tick, rows=1000)] == ["<= 1.03"]
    assert [result.target for result in rate.measure(spark, no_tick, rows=200)] == ["<= 1", ">= 0.8"]


def test_cascades_hold() -> None:
    assert all(result.holds for result in cascade.measure(None, no_tick, runs=20))
