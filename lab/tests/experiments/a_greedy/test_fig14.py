import numpy as np
import pytest

from thalweg.ordering import optimal_order, order_cost
from thalweg_lab.experiments.a_greedy import fig14, fig15
from thalweg_lab.experiments.a_greedy.convergence import TIME
from thalweg_lab.experiments.a_greedy.fig14 import ALIKE, MIXED, worst_stable
from thalweg_lab.experiments.experiment import Row

# At costs 50 and 100: the time to process a tuple and the overhead besides.
TIMES = {
    "optimal": ((200, 0), (300, 1)),
    "a-greedy": ((200, 40), (300, 100)),
    "sweep": ((201, 10), (305, 20)),
    "local-swaps": ((220, 5), (340, 10)),
    "independent": ((210, 40), (320, 100)),
}


def rows(**order_costs: float) -> list[Row]:
    """Rows of both streams, in which the order of LocalSwaps costs what is said."""
    return [
        {
            "stream": stream,
            "cost": cost,
            "seed": 0,
            "policy": policy,
            TIME: processing + overhead,
            fig15.PROCESSING: processing,
            fig15.OVERHEAD: overhead,
            "order_cost": order_costs[stream] if policy == "local-swaps" else 1.0,
            "worst_stable": 1.5,
        }
        for stream in (ALIKE, MIXED)
        for policy, columns in TIMES.items()
        for cost, (processing, overhead) in zip((50, 100), columns, strict=True)
    ]


def test_the_papers_figures_hold() -> None:
    assert all(result.holds for result in fig14.judge(rows(alike=1.1, mixed=1.1)))
    assert all(result.holds for result in fig15.judge(rows(alike=1.1, mixed=1.1)))


def test_an_optimum_that_is_found_is_reported() -> None:
    results = fig14.judge(rows(alike=1.0, mixed=1.1))
    assert [result.scenario for result in results if not result.holds] == ["alike, c = 50", "alike, c = 100"]


def test_an_overhead_unlike_the_papers_is_reported() -> None:
    dear = [row | {fig15.OVERHEAD: 3 * row[fig15.OVERHEAD]} for row in rows(alike=1.0, mixed=1.0)]
    assert not fig15.judge(dear)[0].holds


@pytest.mark.parametrize("seed", range(3))
def test_no_stable_order_beats_the_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    masks, costs = random.integers(16, size=200), random.integers(1, 5, size=4).astype(float)
    assert worst_stable(masks, costs) >= 1
    best = optimal_order(masks, costs)
    others = [order_cost(masks, order, costs) for order in ((0, 1, 2, 3), (3, 2, 1, 0))]
    assert order_cost(masks, best, costs) <= min(others)


def test_local_swaps_can_be_stuck() -> None:
    # Filter 1 drops what filter 0 does, at a hundredth of the cost, but next to nothing of what filter 0 lets pass.
    masks = np.array([0b011] * 60 + [0b100] * 20 + [0b010] + [0b000] * 19)
    assert worst_stable(masks, np.array([100.0, 1.0, 100.0])) == pytest.approx(1.0)
    masks = np.array([0b011] * 60 + [0b100] * 20 + [0b000] * 20)
    assert worst_stable(masks, np.array([100.0, 1.0, 100.0])) > 1.5


@pytest.mark.parametrize("stream", [ALIKE, MIXED])
def test_a_tiny_measurement(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fig14, "SETTLE", 2)
    monkeypatch.setattr(fig14, "SAMPLE", 5000)
    measured = fig14.measure({"stream": stream, "cost": 2, "seed": 0, "turns": 4})
    assert [row["policy"] for row in measured] == list(fig14.POLICIES)
    for row in measured:
        assert row["order_cost"] >= 1 - 1e-9
        assert row["tuples_per_second"] * row[TIME] == pytest.approx(1e9)
        assert row[fig15.PROCESSING] + row[fig15.OVERHEAD] == pytest.approx(row[TIME])
