from collections.abc import Mapping

from thalweg.lab.a_greedy.convergence import EVALUATIONS, TIME
from thalweg.lab.a_greedy.fig9 import judge
from thalweg.lab.experiment import Row

# For 2, 8 and 16 filters, the time of a tuple in each policy's hands.
TIMES = {
    "a-greedy": (101, 105, 110),
    "independent": (101, 110, 125),
    "as-written": (100, 115, 130),
    "optimal": (100, 102, None),
}


def rows(times: Mapping[str, tuple[float | None, ...]]) -> list[Row]:
    return [
        {"filters": n, "seed": 0, "policy": policy, TIME: time, EVALUATIONS: time / 50}
        for policy, column in times.items()
        for n, time in zip((2, 8, 16), column, strict=True)
        if time is not None
    ]


def test_the_papers_figure_holds() -> None:
    assert all(result.holds for result in judge(rows(TIMES)))


def test_a_level_gap_does_not_widen() -> None:
    results = judge(rows(TIMES | {"independent": (101, 106, 111)}))
    assert [result.measure for result in results if not result.holds] == ["rate, A-Greedy over Independent, widening"]


def test_a_faster_independent_is_reported() -> None:
    held = [result.holds for result in judge(rows(TIMES | {"independent": (101, 100, 100)}))]
    assert held == [False, False, False, True, True, True, True]


def test_a_far_optimum_is_reported() -> None:
    held = [result.holds for result in judge(rows(TIMES | {"optimal": (90, 90, None)}))]
    assert held == [True, True, True, True, True, False, True]
