from collections.abc import Mapping

from thalweg_lab.experiments.a_greedy import fig12, fig13
from thalweg_lab.experiments.a_greedy.convergence import EVALUATIONS, TIME
from thalweg_lab.experiments.experiment import Row

# For 2 and 12 filters, the time to process a tuple and the overhead besides.
TIMES = {
    "optimal": ((100, 0), (140, 1)),
    "a-greedy": ((100, 3), (141, 40)),
    "sweep": ((101, 3), (142, 12)),
    "local-swaps": ((100, 3), (141, 15)),
    "independent": ((100, 3), (150, 40)),
}


def rows(times: Mapping[str, tuple[tuple[float, float], tuple[float, float]]]) -> list[Row]:
    return [
        {
            "filters": n,
            "seed": 0,
            "policy": policy,
            TIME: processing + overhead,
            EVALUATIONS: processing / 70,
            fig13.PROCESSING: processing,
            fig13.OVERHEAD: overhead,
        }
        for policy, columns in times.items()
        for n, (processing, overhead) in zip((2, 12), columns, strict=True)
    ]


def test_the_papers_figures_hold() -> None:
    assert all(result.holds for result in fig12.judge(rows(TIMES)))
    assert all(result.holds for result in fig13.judge(rows(TIMES)))


def test_a_policy_that_does_not_overtake_is_reported() -> None:
    results = fig12.judge(rows(TIMES | {"sweep": ((100, 3), (141, 39))}))
    assert [result.holds for result in results] == [False, False, True, True]


def test_a_gap_of_worse_orders_is_no_overhead() -> None:
    failed = {
        result.measure for result in fig13.judge(rows(TIMES | {"a-greedy": ((100, 3), (165, 16))})) if not result.holds
    }
    assert "filters evaluated over Optimal's" in failed
    assert "part of the gap from a-greedy to sweep that is overhead" in failed


def test_the_control_must_be_level() -> None:
    [control, *_] = fig13.judge(rows(TIMES | {"optimal": ((100, 0), (140, -9))}))
    assert not control.holds
