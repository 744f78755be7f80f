from collections.abc import Mapping

import numpy as np
import pytest

from thalweg.ordering import AsWritten
from thalweg_lab.engine import Engine
from thalweg_lab.experiments.a_greedy import change, fig16, fig17, fig18, fig19, fig20, fig21
from thalweg_lab.experiments.a_greedy.change import (
    BLOCK,
    DROPS,
    SECONDS,
    WORTH_SEEING,
    permuted,
    recovery,
    spans,
    summary,
    track,
)
from thalweg_lab.experiments.experiment import Experiment, Row


def timelines(**medians: tuple[int, float, float]) -> list[Row]:
    """Rows of policies, from the tuples to recover, the settled cost and the mean step."""
    return [
        {
            "policy": policy.replace("_", "-"),
            "seed": seed,
            "recovery": tuples,
            "wasted": tuples / 2,
            "cost_before": cost,
            "cost_after": cost,
            "steps": 10,
            "mean_step": step,
        }
        for policy, (tuples, cost, step) in medians.items()
        for seed in range(2)
    ]


def totals(over: str, seconds: Mapping[str, tuple[float, ...]], values: tuple[int, ...]) -> list[Row]:
    return [
        {"policy": policy, "seed": 0, over: value, SECONDS: second}
        for policy, each in seconds.items()
        for value, second in zip(values, each, strict=True)
    ]


def test_a_change_is_worth_seeing() -> None:
    random = np.random.default_rng(0)
    before = permuted(random)
    after = before.changed(random)
    assert sorted(after.workload.drops) == list(DROPS)
    assert after.cost(before.greedy) >= WORTH_SEEING * after.cost(after.greedy)


def test_tracks_follow_orders_and_evaluations() -> None:
    random = np.random.default_rng(1)
    stretch = permuted(random)
    held = {"greedy": AsWritten(len(DROPS), order=stretch.greedy), "as written": AsWritten(len(DROPS))}
    _, tracks = track(Engine([1] * len(DROPS)), held, [(stretch, 4 * BLOCK), (stretch, 2 * BLOCK)], random)
    assert [stretch.evaluated.size for stretch in tracks["greedy"]] == [4, 2]
    assert all((stretch.costs == 1).all() for stretch in tracks["greedy"])
    for name, (first, _) in tracks.items():
        expected = stretch.cost(held[name].order) * BLOCK
        assert first.evaluated.mean() == pytest.approx(expected, rel=0.05)


def test_what_never_recovers_counts_in_full() -> None:
    assert recovery(np.full(10, 1.2), 1.0) == 10 * BLOCK
    assert recovery(np.full(10, 1.1), 1.0) == 0


def test_a_summary_of_a_recovery() -> None:
    after = np.array([2.0] * 10 + [1.5] * 10 + [1.0] * 80)
    row = summary(np.full(100, 1.05), after)
    assert row["cost_before"] == pytest.approx(1.05)
    assert row["cost_after"] == 1.0
    assert row["recovery"] == 20 * BLOCK
    assert row["wasted"] == pytest.approx(15 * BLOCK)
    assert (row["steps"], row["mean_step"]) == (2, 0.5)


def test_a_stream_changes_after_each_period() -> None:
    masks = list(spans(60_000, 180_000, np.random.default_rng(0)))
    assert [part.size for part in masks] == [50_000, 10_000] * 3
    rates = [[(part >> number & 1).mean() for number in range(len(DROPS))] for part in masks]
    assert np.allclose(rates[0], rates[1], atol=0.03)
    assert not np.allclose(rates[1], rates[2], atol=0.03)
    assert np.allclose(sorted(rates[2]), DROPS, atol=0.03)


@pytest.mark.parametrize(
    "experiment", [fig16.EXPERIMENT, fig17.EXPERIMENT, fig18.EXPERIMENT], ids=lambda experiment: experiment.id
)
def test_a_tiny_timeline(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "CHANGE_AT", 20_000)
    setting = experiment.settings(True)[0]  # noqa: FBT003
    rows = experiment.measure(setting | {"tuples": 20_000})
    blocks = [row for row in rows if "tuple" in row]
    assert {row["policy"] for row in blocks} == set(setting["policies"])
    assert len(blocks) == 20 * len(setting["policies"])
    assert all(BLOCK <= row["evaluated"] <= len(DROPS) * BLOCK for row in blocks)
    assert experiment.judge(rows)


@pytest.mark.parametrize(
    "experiment", [fig19.EXPERIMENT, fig20.EXPERIMENT, fig21.EXPERIMENT], ids=lambda experiment: experiment.id
)
def test_a_tiny_total(experiment: Experiment) -> None:
    settings = experiment.settings(True)  # noqa: FBT003
    rows = experiment.measure(settings[0] | {"period": 10_000, "tuples": 20_000})
    assert [row["policy"] for row in rows] == settings[0]["policies"]
    assert all(row[SECONDS] > 0 for row in rows)
    assert all(setting["tuples"] >= 4 * setting["period"] for setting in settings)


def test_timelines_like_the_papers_hold() -> None:
    rows = timelines(
        a_greedy=(70_000, 1.0, 0.05),
        sweep=(600_000, 1.08, 0.08),
        local_swaps=(170_000, 1.01, 0.04),
        independent=(140_000, 1.02, 0.1),
    )
    for module in (fig16, fig17, fig18):
        assert all(result.holds for result in module.judge(rows))


def test_timelines_unlike_the_papers_do_not() -> None:
    rows = timelines(
        a_greedy=(70_000, 1.0, 0.05),
        sweep=(80_000, 1.08, 0.04),
        local_swaps=(60_000, 1.01, 0.04),
        independent=(140_000, 1.0, 0.1),
    )
    for module in (fig16, fig17, fig18):
        assert not any(result.holds for result in module.judge(rows) if "work" not in result.measure)


def test_the_rate_of_change_decides() -> None:
    periods = (50_000, 2_000_000)
    seconds = {"a-greedy": (1.0, 0.9), "independent": (1.0, 0.9), "sweep": (1.1, 0.88)}
    assert [result.holds for result in fig19.judge(totals("period", seconds, periods))] == [True, True, True]
    seconds |= {"sweep": (1.0, 0.95)}
    assert [result.holds for result in fig19.judge(totals("period", seconds, periods))] == [False, False, False]


def test_the_cost_of_filters_widens_the_gap() -> None:
    ahead = totals("cost", {"a-greedy": (1.0, 5.0), "sweep": (1.05, 5.5)}, (1, 100))
    behind = totals("cost", {"a-greedy": (1.0, 5.5), "sweep": (1.02, 5.0)}, (1, 100))
    assert [result.holds for result in fig20.judge(ahead)] == [True, True]
    assert [result.holds for result in fig20.judge(behind)] == [False, False]
    assert [result.holds for result in fig21.judge(behind)] == [True, True]
    assert [result.holds for result in fig21.judge(ahead)] == [False, False]
