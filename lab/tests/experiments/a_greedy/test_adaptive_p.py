import numpy as np
import pytest

from thalweg_lab.experiments.a_greedy import adaptive_p
from thalweg_lab.experiments.a_greedy.adaptive_p import (
    ADAPTIVE,
    COSTS,
    EXPERIMENT,
    FIXED,
    HIDDEN,
    PERIODS,
    SELECTIVITIES,
    STABLE,
    hidden_masks,
    judge,
    recoveries,
)
from thalweg_lab.experiments.a_greedy.change import BLOCK
from thalweg_lab.experiments.experiment import Row, Setting

TINY: dict[str, Setting] = {
    STABLE: {"tuples": 20_000, "turns": 4},
    SELECTIVITIES: {"period": 10_000, "changes": 2},
    COSTS: {"period": 10_000, "changes": 2},
    HIDDEN: {"before": 10_000, "after": 10_000},
}


def rows(extra: float = 0.1, work: float = 1.0, recovery: float = 1.0, late: float = 9.0) -> list[Row]:
    """Rows of every scenario, in which an adaptive p does so many times what a fixed one does."""
    fixed = {"extra_evaluations": 100.0, "evaluations": 1000.0, "work": 1100.0, "recovery": 50_000.0, "overhead": 0.1}
    factors = {"extra_evaluations": extra, "overhead": extra, "work": work, "recovery": recovery}
    adaptive = {column: value * factors.get(column, 1.0) for column, value in fixed.items()}
    scenarios: list[Row] = [{"scenario": STABLE}]
    scenarios += [{"scenario": scenario, "period": period} for scenario in (SELECTIVITIES, COSTS) for period in PERIODS]
    hidden = {"scenario": HIDDEN, "seed": 0}
    return [
        *(scenario | {"seed": 0, "policy": FIXED} | fixed for scenario in scenarios),
        *(scenario | {"seed": 0, "policy": ADAPTIVE} | adaptive for scenario in scenarios),
        hidden | {"policy": FIXED} | fixed,
        hidden | {"policy": ADAPTIVE} | fixed | {"recovery": late * fixed["recovery"]},
    ]


def test_all_is_well() -> None:
    results = judge(rows())
    assert len(results) == 2 + 4 * len(PERIODS) + 1
    assert all(result.holds for result in results)


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"extra": 0.3}, 2),
        ({"work": 1.05}, 2 * len(PERIODS)),
        ({"recovery": 1.05}, 2 * len(PERIODS)),
        ({"late": 20.0}, 1),
    ],
)
def test_what_is_worse_is_reported(changed: dict[str, float], failing: int) -> None:
    assert sum(not result.holds for result in judge(rows(**changed))) == failing


def test_who_does_not_recover_is_held_to_where_the_other_settled() -> None:
    soon, never = np.array([2.0] * 5 + [1.0] * 15), np.full(20, 2.0)
    recovered = recoveries({FIXED: [soon, soon], ADAPTIVE: [soon, never]})
    assert recovered[FIXED]["recovery"] == 5 * BLOCK
    assert recovered[ADAPTIVE]["recovery"] == (5 + 20) / 2 * BLOCK


def test_a_hidden_change_moves_no_rate_of_the_order_there_was() -> None:
    random = np.random.default_rng(0)
    rates = []
    for better in (False, True):
        bits = hidden_masks(100_000, random, better=better)[:, None] >> np.arange(8) & 1
        reaching = [bits[~bits[:, :number].any(axis=1)] for number in range(8)]
        rates.append([each[:, number].mean() for number, each in enumerate(reaching)])
        assert bits[:, 7].mean() == pytest.approx(0.91 if better else 0.1, abs=0.01)
    assert rates[0] == pytest.approx(rates[1], abs=0.02)


@pytest.mark.parametrize("scenario", TINY)
def test_a_tiny_measurement(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_p, "CHUNK", 4000)
    measured = EXPERIMENT.measure({"scenario": scenario, "seed": 0} | TINY[scenario])
    assert [row["policy"] for row in measured] == [FIXED, ADAPTIVE]
    for row in measured:
        assert row["work"] > 0
        assert row["extra_evaluations"] > 0
        assert ("recovery" in row) == (scenario != STABLE)


def test_every_scenario_is_run() -> None:
    for quick in (True, False):
        assert {setting["scenario"] for setting in EXPERIMENT.settings(quick)} == set(TINY)
