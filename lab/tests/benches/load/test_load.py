"""Every scenario with hardly any rows: what is tested here is whether it runs, not how fast."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from thalweg.sizing import Costs
from thalweg_lab.benches import bench_of, load
from thalweg_lab.benches.load import filters, join, session
from thalweg_lab.benches.load.sweep import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = Effort(rows=(20, 200), warm_up=1, batches=1, intervals=3, tries=1, load_intervals=3, interval=0.5)
SHOWN, KEPT_UP, CLOSE = "is shown", "is sustained", "<= 0.3"
A_SETTING = [SHOWN, KEPT_UP, KEPT_UP, KEPT_UP]
COSTS = [SHOWN] * len(fields(Costs))
TARGETS: dict[str, list[str]] = {
    "filters": 2 * A_SETTING + COSTS + 2 * [CLOSE],
    "join": 2 * A_SETTING + COSTS + 2 * [CLOSE],
    "session": 2 * A_SETTING + COSTS + 2 * [CLOSE],
    "cores": 2 * A_SETTING + [CLOSE],
    "filters-rate": 10 * [KEPT_UP],
    "join-rate": 10 * [KEPT_UP],
    "session-rate": 10 * [KEPT_UP],
}


def test_every_scenario_has_its_targets_here() -> None:
    assert tuple(TARGETS) == bench_of("load").SCENARIOS


@pytest.mark.parametrize("scenario", TARGETS)
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "PREDICATES", (2,))
    monkeypatch.setattr(join, "FITTED", join.FITTED[:1])
    monkeypatch.setattr(
        join, "HELD_OUT", (replace(join.HELD_OUT[-1], window=2, cells=2),)
    )  # a chain, with a window to fill
    monkeypatch.setattr(session, "QUERIES", (1,))
    monkeypatch.setattr(session, "HELD_OUT", (2,))
    ticks: list[tuple[int, int]] = []
    measure = import_module(f"{load.__name__}.{scenario.replace('-', '_')}").measure
    less = {"kinds": ["filters"]} if scenario == "cores" else {}
    results = measure(spark, lambda *tick: ticks.append(tick), effort=TINY, **less)
    assert [result.target for result in results] == TARGETS[scenario]
    assert {result.scenario for result in results} == {scenario}
    assert len({result.measure for result in results}) == len(results)
    assert all(result.note for result in results)
    shares = [done / total for done, total in ticks]
    assert shares == sorted(shares)
    assert shares[-1] == 1
