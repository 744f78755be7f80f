import numpy as np
import pytest

from thalweg_lab.engine import Engine
from thalweg_lab.experiments.a_greedy import convergence, fig9, fig10, fig11, fig12, fig13
from thalweg_lab.experiments.a_greedy.convergence import (
    DEFAULTS,
    EVALUATIONS,
    RIVALS,
    TIME,
    edges,
    measure,
    rise_and_fall,
)
from thalweg_lab.experiments.experiment import Experiment, Row

each = pytest.mark.parametrize(
    "experiment",
    [module.EXPERIMENT for module in (fig9, fig10, fig11, fig12, fig13)],
    ids=lambda experiment: experiment.id,
)


def row(policy: str, time: float, seed: int = 0, **about: float) -> Row:
    return {"policy": policy, "seed": seed, TIME: time, EVALUATIONS: time / 10, **about}


@each
def test_a_tiny_measurement(experiment: Experiment) -> None:
    setting = experiment.settings(True)[0]  # noqa: FBT003
    policies = dict.fromkeys(setting["policies"], 1)
    rows = experiment.measure(setting | {"filters": 3, "gamma": 2, "p": 0.2, "policies": policies, "turns": 4})
    assert [row["policy"] for row in rows] == list(policies)
    for row in rows:
        assert row["tuples_per_second"] * row[TIME] == pytest.approx(1e9)
        assert 1 <= row[EVALUATIONS] <= 3
        profiles = row["policy"] != "optimal"
        assert (row["profiled_share"] > 0) == profiles
        assert (row["creation_share"] > 0) == profiles
        assert ("overhead_nanoseconds" in row) == setting.get("twins", False)


@each
def test_several_seeds_and_one_race_a_setting(experiment: Experiment) -> None:
    for quick in (True, False):
        settings = experiment.settings(quick)
        assert len({setting["seed"] for setting in settings}) >= 3
        assert all("a-greedy" in setting["policies"] for setting in settings)


def test_policies_find_what_the_optimal_order_finds() -> None:
    policies = {"a-greedy": 1, "sweep": 1, "local-swaps": 1, "optimal": 1}
    rows = measure(DEFAULTS | {"filters": 4, "p": 0.2, "policies": policies, "turns": 4, "seed": 1})
    evaluations = [row[EVALUATIONS] for row in rows]
    assert max(evaluations) <= 1.02 * min(evaluations)


def test_independent_runs_several_times_from_different_orders() -> None:
    setting = DEFAULTS | {"policies": RIVALS}
    made = convergence.contestants(setting, convergence.workload(setting), np.random.default_rng(0))
    orders = {policy.order for name, policy in made.items() if name.startswith("independent")}
    assert len(orders) == RIVALS["independent"]
    assert not any(policy.sampler.adaptive for policy in made.values())


def test_equal_costs_stay_equal_whatever_is_measured() -> None:
    setting = DEFAULTS | {"filters": 3, "p": 0.2, "policies": {"a-greedy": 1}, "seed": 0}
    stream, random = convergence.workload(setting), np.random.default_rng(0)
    for costs in ("equal", "measured"):
        made = convergence.contestants(setting | {"costs": costs}, stream, random)
        convergence.settle(Engine([1, 1, 1]), made, stream, random)
        [policy] = made.values()
        assert (len(set(policy.profile.mean_times.tolist())) == 1) == (costs == "equal")


def test_edges_compare_within_a_race() -> None:
    rows = [
        *(row("a", time, seed, n=2) for seed, time in ((0, 10.0), (1, 100.0))),
        *(row("b", time, seed, n=2) for seed, time in ((0, 11.0), (1, 130.0))),
        row("a", 10.0, n=3),
    ]
    edge = edges(rows, "n", "a", "b")
    assert list(edge) == [2]
    assert edge[2].share == pytest.approx(0.2)
    assert edge[2].error == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("times", "holds"),
    [
        ({1: 100, 4: 105, 8: 100}, True),
        ({1: 105, 4: 105, 8: 100}, False),
        ({1: 100, 4: 105, 8: 110}, False),
        ({1: 100, 4: 100.5, 8: 100}, False),
    ],
)
def test_an_edge_rises_and_falls(times: dict[int, float], holds: bool) -> None:  # noqa: FBT001
    rows = [found for x, time in times.items() for found in (row("a-greedy", 100, x=x), row("independent", time, x=x))]
    assert [result.holds for result in rise_and_fall(rows, "x", (2, 7))] == [holds, holds]
