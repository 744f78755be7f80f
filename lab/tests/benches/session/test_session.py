"""Every scenario with hardly any rows: what is measured here is whether it runs and agrees, not how fast."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from thalweg_lab.benches import bench_of, session
from thalweg_lab.benches.session import bursty, hundred, ten, work
from thalweg_lab.benches.session.bursty import BATCHES, HOSTS, bursts
from thalweg_lab.benches.session.work import LARGE, SECOND, SECONDS, STREAMS, Packets, files, packets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTROL = "0.95 to 1.05"
SPARK = "beside Spark's"
TINY: dict[str, tuple[dict[str, Any], list[str]]] = {  # options, and targets as they are reported
    "ten": ({"rows": 200, "batches": 1, "rounds": 1}, [">= 3", ">= 1.5", CONTROL]),
    "hundred": ({"rows": 200, "batches": 1, "rounds": 1}, [">= 20", "<= 3", CONTROL]),
    "bursty": ({"rows": 1_000, "phases": 1, "rounds": 1}, [">= 1.2", ">= 0.95", CONTROL]),
    "latency": ({"seconds": 5.0, "warm_up": 2.0, "turns": 1}, [SPARK] * 4),
    "overhead": ({"rounds": 20, "builds": 1}, ["<= 0.2", "<= 0.5"]),
    "memory": ({"rows": 2_000, "batches": 1}, ["<= 1.1", "<= 0"]),
}


def test_every_scenario_has_its_targets_here() -> None:
    assert tuple(TINY) == bench_of("session").SCENARIOS


@pytest.mark.parametrize("scenario", TINY)
def test_scenario_measures_all_its_targets(spark: SparkSession, scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A few queries of each kind: a streaming query of Spark takes seconds to start.
    monkeypatch.setattr(ten, "TEN", {name: work.TEN[name] for name in ("tcp to 2", "udp by host", "replies")})
    monkeypatch.setattr(hundred, "hundred", lambda: dict(list(work.hundred().items())[:4]))
    monkeypatch.setattr(hundred, "FEW", 2)
    monkeypatch.setattr(bursty, "QUERIES", {"forwarded": bursty.QUERIES["forwarded"]})
    monkeypatch.setattr(bursty, "BATCHES", 1)
    options, targets = TINY[scenario]
    ticks: list[tuple[int, int]] = []
    measure = import_module(f"{session.__name__}.{scenario}").measure
    results = measure(spark, lambda *tick: ticks.append(tick), **options)
    assert [result.target for result in results] == targets
    assert {result.scenario for result in results} == {scenario}
    assert len({result.measure for result in results}) == len(results)
    assert all(result.note for result in results)
    assert ticks == sorted(ticks)
    assert ticks[-1][0] == ticks[-1][1]


def test_another_stream_is_scarce_in_each_phase() -> None:
    drawn = bursts(10_000, 3)
    assert drawn.large is not None
    for phase, scarce in enumerate(STREAMS):
        batch = BATCHES * phase
        selected = {name: drawn.rows[name][batch] * drawn.large[name][batch] for name in STREAMS}
        assert min(selected, key=selected.__getitem__) == scarce
        assert sorted(selected.values())[1] > 1_000 * selected[scarce]
    assert drawn.batches == 3 * BATCHES


def test_shares_of_large_packets_are_those_that_were_asked_for() -> None:
    table = packets("TCP", 0, 10_000, HOSTS, 0.9)
    assert pc.mean(pc.greater(table.column("size"), LARGE)).as_py() == pytest.approx(0.9, abs=0.02)
    assert pc.max(table.column("src")).as_py() < HOSTS


def test_a_micro_batch_may_end_its_rounds() -> None:
    with files(Packets({name: [10, 10] for name in STREAMS}, ends_rounds=True)) as folder:
        times = [parquet.read_table(f"{folder}/UDP/{batch:06d}.parquet").column("ts") for batch in range(3)]
    assert [len(each) for each in times] == [11, 11, 1]
    for batch, each in enumerate(times[:2]):
        latest = pc.max(each).value
        assert latest == (batch + 1) * SECONDS * SECOND + 1
        assert pc.min(times[batch + 1]).value >= latest
