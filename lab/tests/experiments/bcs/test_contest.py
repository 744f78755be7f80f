"""Experiments 1 and 2, and the overhead."""

import pytest

from thalweg_lab.experiments.bcs import exp1, exp2, overhead
from thalweg_lab.experiments.bcs.contest import ADWIN, ALONE, BCS, MARTINGALE, PAPER, RIVALS, measure
from thalweg_lab.experiments.experiment import Experiment, Row


def streams(improvement: dict[str, tuple[float, ...]], period: int = 500_000) -> list[Row]:
    return [
        {"policy": name, "seed": seed, "period": period, "improvement": value}
        for name, values in improvement.items()
        for seed, value in enumerate(values)
    ]


def test_a_tiny_stream() -> None:
    rows = measure({"period": 100_000, "changes": 1, "seed": 0})
    assert [row["policy"] for row in rows] == [ALONE, *RIVALS]
    assert rows[0]["improvement"] == 0
    assert rows[1]["improvement"] > 0
    assert rows[1]["detected"] == 1
    assert all(row["loop_microseconds"] > 0 for row in rows)


def test_improvements_like_the_papers_hold() -> None:
    rows = streams({BCS: (-5, 10, 55), PAPER: (-5, 10, 50), MARTINGALE: (-66, 10, 50), ADWIN: (-4, 11, 54)})
    assert all(result.holds for result in exp1.judge(rows))


def test_improvements_unlike_the_papers_do_not() -> None:
    rows = streams({BCS: (-9, 5, 20), PAPER: (-5, 10, 20), MARTINGALE: (-6, 1, 20), ADWIN: (-8, 1, 24)})
    assert not any(result.holds for result in exp1.judge(rows))


@pytest.mark.parametrize(("medians", "holds"), [((5.0, 10.0, 15.0), True), ((10.0, 15.0, 12.0), False)])
def test_the_period_decides(medians: tuple[float, ...], holds: bool) -> None:  # noqa: FBT001
    rows = [
        row
        for period, value in zip(exp2.PERIODS, medians, strict=True)
        for row in streams(dict.fromkeys(exp2.DETECTORS, (value,)), period)
    ]
    assert [result.holds for result in exp2.judge(rows)] == [holds] * 3


@pytest.mark.parametrize(
    ("reoptimisations", "times", "holds"), [((100, 60), (1.0, 0.9, 10.0), True), ((100, 90), (1.0, 2.0, 30.0), False)]
)
def test_the_overhead(reoptimisations: tuple[int, int], times: tuple[float, float, float], holds: bool) -> None:  # noqa: FBT001
    alone, watched = reoptimisations
    of = {ALONE: (alone, times[0])} | dict.fromkeys((BCS, PAPER), (watched, times[1]))
    of |= dict.fromkeys((MARTINGALE, ADWIN), (watched, times[2]))
    rows: list[Row] = [
        {"policy": name, "seed": 0, "reoptimisations": count, "loop_microseconds": time}
        for name, (count, time) in of.items()
    ]
    assert [result.holds for result in overhead.judge(rows)] == [holds] * 4


@pytest.mark.parametrize(
    "experiment", [exp1.EXPERIMENT, exp2.EXPERIMENT, overhead.EXPERIMENT], ids=lambda experiment: experiment.id
)
def test_streams_are_the_papers(experiment: Experiment) -> None:
    assert all(setting["changes"] == 5 for setting in experiment.settings(False))  # noqa: FBT003
    assert len(experiment.settings(True)) < 10  # noqa: FBT003
