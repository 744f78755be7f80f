"""The experiments with change: what they judge, on rows made by hand, and a tiny measurement of each kind."""

from types import ModuleType

import numpy as np
import pytest

from thalweg.lab.a_greedy import adaptive_p, change, fig16, fig17, fig18, fig19, fig20, fig21
from thalweg.lab.a_greedy.change import BLOCK, SECONDS, permuted, probes, recovery, timeline, total
from thalweg.lab.experiment import Row
from thalweg.ordering import order_cost


def summary(policy: str, recovery: int, step: float = 0.1, before: float = 1.0, after: float = 1.0) -> Row:
    return {
        "seed": 0,
        "policy": policy,
        "recovery": recovery,
        "wasted": recovery / 2,
        "steps": 10,
        "mean_step": step,
        "cost_before": before,
        "cost_after": after,
    }


TIMELINE = [
    summary("a-greedy", 20_000),
    summary("sweep", 90_000, step=0.2),
    summary("local-swaps", 80_000, step=0.05),
    summary("independent", 15_000, before=1.05, after=1.04),
]


@pytest.mark.parametrize("figure", [fig16, fig17, fig18])
def test_the_papers_timelines_hold(figure: ModuleType) -> None:
    assert all(result.holds for result in figure.judge(TIMELINE))


def test_a_slow_a_greedy_is_reported() -> None:
    slow = [summary("a-greedy", 100_000), *TIMELINE[1:]]
    assert not any(result.holds for result in fig16.judge(slow))


def test_an_independent_that_is_as_good_is_reported() -> None:
    alike = [*TIMELINE[:3], summary("independent", 15_000)]
    assert [result.holds for result in fig18.judge(alike)] == [True, False, False]


def totals(column: str, times: dict[int, dict[str, float]]) -> list[Row]:
    return [
        {"seed": 0, column: value, "policy": policy, SECONDS: seconds}
        for value, each in times.items()
        for policy, seconds in each.items()
    ]


def test_the_papers_totals_hold() -> None:
    often, rare = ({"a-greedy": 1.0, "independent": 1.05, "sweep": each} for each in (1.3, 0.95))
    assert all(result.holds for result in fig19.judge(totals("period", {50_000: often, 1_000_000: rare})))
    growing = {1: {"a-greedy": 1.0, "sweep": 1.1}, 100: {"a-greedy": 1.0, "sweep": 1.4}}
    assert all(result.holds for result in fig20.judge(totals("cost", growing)))
    shrinking = {1: {"a-greedy": 1.0, "sweep": 1.1}, 100: {"a-greedy": 1.0, "sweep": 0.95}}
    assert all(result.holds for result in fig21.judge(totals("cost", shrinking)))
    assert not all(result.holds for result in fig20.judge(totals("cost", shrinking)))


def test_recovery_is_the_first_good_block_or_all() -> None:
    assert recovery(np.array([2.0, 1.0, 2.0]), 1.0) == BLOCK
    assert recovery(np.array([2.0, 2.0]), 1.0) == 2 * BLOCK


def test_a_change_is_worth_seeing() -> None:
    random = np.random.default_rng(0)
    before = permuted(random)
    after = before.changed(random)
    assert after.cost(before.greedy) >= change.WORTH_SEEING * after.cost(after.greedy)
    assert sorted(after.workload.drops) == sorted(before.workload.drops)


def test_a_tiny_timeline_and_a_tiny_total() -> None:
    rows = timeline({"policies": ["a-greedy", "sweep"], "tuples": 200_000, "seed": 0, "drawn": True})
    assert {row["policy"] for row in rows} == {"a-greedy", "sweep"}
    assert sum("tuple" in row for row in rows) == 2 * (change.CHANGE_AT + 200_000) // BLOCK
    rows = total({"period": 20_000, "tuples": 40_000, "cost": 10, "policies": ["a-greedy"], "seed": 0})
    assert rows[0][SECONDS] > 0


def test_half_of_the_filters_are_expensive() -> None:
    assert sorted(probes(50)) == [1] * 4 + [50] * 4


def test_the_hidden_change_shows_nothing_in_the_order_there_is() -> None:
    """Behind the first three filters the last drops as it did; in front of them it drops nine tenths."""
    before, after = (
        adaptive_p.hidden_masks(100_000, np.random.default_rng(0), better=better) for better in (False, True)
    )
    written, best = range(8), (7, 0, 1, 2, 3, 4, 5, 6)
    assert order_cost(after, written) == pytest.approx(order_cost(before, written), rel=0.01)
    assert order_cost(after, best) < 0.8 * order_cost(after, written)
