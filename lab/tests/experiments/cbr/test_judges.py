"""Judges, given rows for which the paper's claims hold, and of rows for which they do not."""

import numpy as np
import pytest

from thalweg.routing import router
from thalweg_lab.experiments.cbr import calls, delay, overhead, quality, random_selectivities
from thalweg_lab.experiments.cbr.contest import CLASSES, KNOWS, LEARNS, ONE_ORDER, SELECTIVITY
from thalweg_lab.experiments.cbr.delay import CHARGED, CONTENT, WSCQ, simulate
from thalweg_lab.experiments.experiment import Experiment, Row
from thalweg_lab.results import Result

EXPERIMENTS = [module.EXPERIMENT for module in (calls, delay, overhead, quality, random_selectivities)]


def failed(results: list[Result]) -> list[str]:
    return [result.measure for result in results if not result.holds]


def row(name: str, each: float, base: float, **about: float) -> Row:
    fewer = 100 * (1 - each / base)
    return {**about, "router": name, "calls": each, "late_calls": each, "fewer": fewer, "late_fewer": fewer}


def test_calls() -> None:
    def rows(learns: float, classes: float) -> list[Row]:
        skewed = {SELECTIVITY: 4.7, KNOWS: 1.5, LEARNS: learns, ONE_ORDER: 4.7, CLASSES: classes}
        return [row(name, each, 4.7, operators=8, a=5, b=100) for name, each in skewed.items()] + [
            row(name, 3.0 if name == SELECTIVITY else 2.7, 3.0, operators=8, a=95, b=66) for name in skewed
        ]

    assert not failed(calls.judge(rows(1.6, 1.8)))
    assert failed(calls.judge(rows(4.8, 3.0))) == [
        "per cent fewer calls, most",
        "per cent fewer calls, mean",
        "per cent more calls than Selectivity, most",
        "per cent more calls than Content-Knows, mean",
        "per cent fewer evaluations, class orders against one A-Greedy order",
    ]


def test_quality() -> None:
    def rows(wrong: float, factor: float) -> list[Row]:
        found = []
        for n, fewer in quality.FEWER.items():
            for name in (SELECTIVITY, KNOWS, LEARNS, ONE_ORDER, CLASSES):
                each = 100 - fewer * factor
                used = {"right": 100 - wrong, "wrong": wrong}
                found.append(row(name, 70.0 if name == KNOWS else each, 100.0, operators=n, seed=0) | used)
        return found

    assert not failed(quality.judge(rows(wrong=0.5, factor=1.1)))
    assert len(failed(quality.judge(rows(wrong=5.0, factor=0.5)))) == 6


def test_delay() -> None:
    def rows(wscq: tuple[float, float], worse: float) -> list[Row]:
        found: list[Row] = []
        for a, b in ((5, 100), (35, 38)):
            for cost, slow in zip((4.0, 5.0), wscq, strict=True):
                level = a == 35
                delays = {WSCQ: 0.1 if level else slow, CONTENT: 0.1, CHARGED: 0.1 * (1 + worse) if level else 0.1}
                found += [
                    {"a": a, "b": b, "cost": cost, "policy": name, "delay": value, "visits": 1.0}
                    for name, value in delays.items()
                ]
        return found

    assert not failed(delay.judge(rows((0.3, 22.0), 0.12)))
    assert len(failed(delay.judge(rows((0.11, 0.2), 0.5)))) == 5


def test_random() -> None:
    def rows(few: float, many: float) -> list[Row]:
        return [
            {"operators": n, "aggregate": share, "seed": 0, "router": name, "faster": faster}
            for n, share, faster in ((2, None, few), (8, None, many), (6, 5, few), (6, 35, many))
            for name in (LEARNS, CLASSES)
        ]

    assert not failed(random_selectivities.judge(rows(1.0, 20.0)))
    assert len(failed(random_selectivities.judge(rows(1.0, -5.0)))) == 4


def test_overhead() -> None:
    def rows(microseconds: float, numbers: int, speed: float) -> list[Row]:
        named: list[Row] = [
            {"operators": 8, "router": name, "microseconds": microseconds, "bytes": 8 * (numbers + 16)}
            for name in (SELECTIVITY, KNOWS, LEARNS)
        ]
        return named + [
            {"router": overhead.CLASS_ORDERS, "kind": kind, "speed": speed, "bytes": 10**6} for kind in overhead.KINDS
        ]

    assert not failed(overhead.judge(rows(1.0, 1216, 3.0)))
    assert len(failed(overhead.judge(rows(9.0, 1300, 0.9)))) == 5


def test_the_scaled_selectivities_pass_what_they_should() -> None:
    random = np.random.default_rng(0)
    for aggregate in (0.05, 0.35):
        scaled = random_selectivities.scaled(random.uniform(0.05, 1, (6, 6)), aggregate)
        assert scaled.prod(axis=1).mean() == pytest.approx(aggregate, abs=1e-6)
        assert ((scaled >= 0) & (scaled <= 1)).all()


def test_queues_are_served_in_order_and_one_by_one() -> None:
    """Two operators that drop nothing: a tuple visits both; service takes as long as the interval."""
    average, visits = simulate(router("queue-length", 2), [0] * 50, [0] * 50, service=0.01)
    assert visits == 2
    assert 0.02 <= average <= 0.03
    charged, _ = simulate(router("queue-length", 2), [0] * 50, [0] * 50, service=0.001, surcharge=0.003)
    assert charged == pytest.approx(2 * 0.004)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.id)
def test_a_tiny_measurement_can_be_judged_and_drawn(experiment: Experiment) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    rows = [row for setting in experiment.settings(True) for row in experiment.measure(setting | {"tuples": 1500})]  # noqa: FBT003
    assert experiment.judge(rows)
    assert experiment.plot is not None
    experiment.plot(rows, figures.Figure())
