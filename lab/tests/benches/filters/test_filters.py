"""Every scenario with hardly any rows: what is measured here is whether it runs, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg_lab.benches import bench_of, filters
from thalweg_lab.benches.filters import no_harm_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTROL = "0.95 to 1.05"
TARGETS = {  # of each scenario, as they are reported
    "python-costly": [">= 5", ">= 1", ">= 1.1", ">= 0.95", CONTROL],
    "python-costly-page": ["<= 1.01", "0.99 to 1.01"],
    "python-correlated": [">= 2.5", ">= 1", ">= 1", "<= 1.1", CONTROL],
    "python-proxy": ["= P2 P1", ">= 0.95", ">= 1.1", CONTROL],
    "python-drift": [">= 1.5", ">= 0.95", ">= 0.98", CONTROL, ">= 0.99", CONTROL],
    "native-worst": [">= 5", ">= 10", ">= 0.9", CONTROL, CONTROL],
    "native-stream-drift": [">= 3", ">= 0.85", CONTROL],
    "lookups": [">= 1.5", ">= 0.95", CONTROL],
    "repeated": [">= 3", CONTROL, ">= 0.98", CONTROL, ">= 3", CONTROL],
    "no-harm": [*[">= 0.97", CONTROL] * 3, *["<= 30", "<= 10"] * 4, *[">= 0.97", CONTROL] * 8],
}
MORE: dict[str, dict[str, Any]] = {"native-stream-drift": {"batches": 1}}


def test_every_scenario_has_its_targets_here() -> None:
    assert tuple(TARGETS) == bench_of("filters").SCENARIOS


@pytest.mark.parametrize("scenario", TARGETS)
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str) -> None:
    module = import_module(f"{filters.__name__}.{scenario.replace('-', '_')}")
    ticks: list[tuple[int, int]] = []
    results = module.measure(
        spark, lambda done, total: ticks.append((done, total)), rows=2_000, rounds=1, **MORE.get(scenario, {})
    )
    assert [result.target for result in results] == TARGETS[scenario]
    assert {result.scenario for result in results} == {scenario}
    assert len({result.measure for result in results}) == len(results)
    assert all(result.note for result in results)
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]


def test_a_case_of_no_harm_takes_a_sample(spark: SparkSession) -> None:
    [case] = [case for case in no_harm_inputs.cases() if "with a sample" in case.label]
    frame = case.frame(spark, 2_000)
    assert "plan: sampled" in str(tw.explain(case.with_thalweg(frame)))
    assert "plan: nothing sampled" in str(tw.explain(case.without(frame)))


def test_run_tells_how_far_it_is(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(f"{filters.__name__}.lookups")
    monkeypatch.setattr(module, "measure", lambda _session, tick: tick(1, 2) or [])
    steps: list[tuple[int, int, str]] = []
    assert filters.run("lookups", lambda done, total, what="": steps.append((done, total, what))) == []
    assert [(done, what) for done, _, what in steps[1:]] == [(0, "lookups"), (50, "lookups"), (100, "")]
    assert spark.range(1).count() == 1  # the session is the caller's, and stays
