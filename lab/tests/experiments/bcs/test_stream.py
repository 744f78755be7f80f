import numpy as np
import pytest

from thalweg.drift import Watched
from thalweg.ordering import AGreedy, AsWritten, Sweep, order_cost
from thalweg_lab.experiments.bcs.stream import BLOCK, HIGH, LEAST_CHANGE, LOW, abrupt, count, gradual, redrawn, regimes
from thalweg_lab.workload import Workload


def test_evaluations_are_those_of_the_cost_model() -> None:
    masks = Workload((0.5, 0.2, 0.7)).masks(3 * BLOCK, np.random.default_rng(0))
    orders = [(0, 1, 2), (2, 1, 0)]
    counts = count(
        {str(order): AsWritten(3, order=order) for order in orders}, [masks[: 2 * BLOCK], masks[2 * BLOCK :]]
    )
    for order in orders:
        found = counts[str(order)]
        assert found.evaluations == round(order_cost(masks, order) * masks.size)
        assert found.blocks.tolist() == [
            round(order_cost(masks[start : start + BLOCK], order) * BLOCK) for start in range(0, 3 * BLOCK, BLOCK)
        ]
        assert found.tuples == 3 * BLOCK


def test_profile_tuples_are_a_sample_and_the_same_for_all() -> None:
    masks = Workload((0.5, 0.2, 0.7)).masks(100_000, np.random.default_rng(0))
    policies = {order: AGreedy(3, p=0.05, adaptive_p=False, order=order) for order in ((0, 1, 2), (2, 1, 0))}
    counts = count({str(order): policy for order, policy in policies.items()}, [masks])
    first, second = policies.values()
    assert first.profile.masks.tolist() == second.profile.masks.tolist()
    expected = 0.05 * (masks > 0).sum()
    assert all(found.profiled == pytest.approx(expected, rel=0.1) for found in counts.values())


def test_a_policy_sees_no_more_than_it_asks_for() -> None:
    sweep = Sweep(3, p=0.5, window=100)
    count({"sweep": sweep}, [np.full(1000, 0b111)])
    assert {int(mask).bit_count() for mask in sweep.profile.masks} <= {1, 2}


def test_the_same_seed_counts_the_same() -> None:
    random = np.random.default_rng(0)
    chunks = list(abrupt(regimes(1, random, filters=5), 50_000, random))
    runs = [count({"": Watched(AGreedy(5, p=0.05))}, chunks, seed=3)[""] for _ in range(2)]
    assert runs[0].evaluations == runs[1].evaluations
    assert runs[0].reoptimisations == runs[1].reoptimisations


def test_all_probabilities_change_and_none_a_little() -> None:
    random = np.random.default_rng(0)
    drops = tuple(random.uniform(LOW, HIGH, 200).tolist())
    after = redrawn(drops, random)
    assert all(abs(drop - new_drop) >= LEAST_CHANGE for drop, new_drop in zip(drops, after, strict=True))
    assert min(after) >= LOW
    assert max(after) <= HIGH
    assert len(regimes(5, random)) == 6


def test_a_gradual_change_goes_all_the_way() -> None:
    before, after = Workload((0.1,)), Workload((0.9,))
    masks = np.concatenate(list(gradual(before, after, 200_000, np.random.default_rng(0))))
    rates = [part.mean() for part in np.split(masks, 10)]
    assert rates == pytest.approx(np.linspace(0.14, 0.86, 10).tolist(), abs=0.02)
    assert not list(gradual(before, after, 0, np.random.default_rng(0)))
