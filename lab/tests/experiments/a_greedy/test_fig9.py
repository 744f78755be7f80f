from collections.abc import Mapping

from thalweg_lab.experiments.a_greedy.convergence import EVALUATIONS, TIME
from thalweg_lab.experiments.a_greedy.fig9 import judge
from thalweg_lab.experiments.experiment import Row

# For 2, 8 and 16 filters, the time of a tuple in each policy's hands.
TIMES = {
    "a-greedy": (101, 105, 110),
    "independent": (101, 110, 125),
    "optimal": (100, 102, None),
}


def rows(times: Mapping[str, tuple[float | None, ...]], measured: float = 112) -> list[Row]:
    equal = [
        {"costs": "equal", "filters": n, "seed": 0, "policy": policy, TIME: time, EVALUATIONS: time / 50}
        for policy, column in times.items()
        for n, time in zip((2, 8, 16), column, strict=True)
        if time is not None
    ]
    about = {"costs": "measured", "filters": 16, "seed": 0, EVALUATIONS: 2.0}
    return [*equal, about | {"policy": "a-greedy", TIME: 110}, about | {"policy": "independent", TIME: measured}]


def failed(rows: list[Row]) -> list[int]:
    return [place for place, result in enumerate(judge(rows)) if not result.holds]


def test_the_papers_figure_holds() -> None:
    assert failed(rows(TIMES)) == []


def test_a_gap_that_does_not_widen_in_time_is_reported() -> None:
    assert failed(rows(TIMES | {"independent": (103, 108, 113)})) == [1, 2]


def test_a_faster_independent_is_reported() -> None:
    assert failed(rows(TIMES | {"independent": (101, 100, 100)})) == [0, 1, 2]


def test_a_far_optimum_is_reported() -> None:
    assert failed(rows(TIMES | {"optimal": (90, 90, None)})) == [3]


def test_measured_times_are_judged_apart() -> None:
    assert failed(rows(TIMES, measured=108)) == [5]
