"""The peers' methods: what they find, and what they cannot."""

import numpy as np

from thalweg.ordering import AdjacentSwap, AGreedy, MarginalRank, Policy
from thalweg.ordering.types import Integers


def run(policy: Policy, masks: Integers, costs: Integers, batches: int) -> None:
    """Show a policy batches of 1000 tuples as ordinary processing sees them."""
    random = np.random.default_rng(0)
    for _ in range(batches):
        alive = random.choice(masks, 1000)
        evaluated, dropped = np.zeros(policy.filters, np.int64), np.zeros(policy.filters, np.int64)
        for one in policy.order:
            evaluated[one] = alive.size
            alive = alive[(alive >> one) & 1 == 0]
            dropped[one] = evaluated[one] - alive.size
        policy.observe(evaluated, dropped, evaluated * costs * 1.0)


def test_adjacent_swap_sorts_independent_filters() -> None:
    bits = np.random.default_rng(1).random((20_000, 4)) < [0.1, 0.3, 0.5, 0.9]
    policy = AdjacentSwap(4)
    run(policy, (bits << np.arange(4)).sum(axis=1), np.ones(4, np.int64), batches=2000)
    assert policy.order[0] == 3


def test_marginal_rank_weighs_time() -> None:
    bits = np.random.default_rng(1).random((20_000, 2)) < [0.5, 0.6]
    masks = (bits << np.arange(2)).sum(axis=1)
    policy = MarginalRank(2)
    run(policy, masks, np.array([1, 10]), batches=20)
    assert policy.order == (0, 1)


def test_marginal_rank_misses_the_better_filter_behind_a_correlated_one() -> None:
    """P0 drops half of the tuples, P1 those and more: 74%. Behind P0, P1 seems to drop less, and stays there."""
    masks = np.repeat([0b11, 0b10, 0b00], [50, 24, 26])
    policy = MarginalRank(2)
    run(policy, masks, np.ones(2, np.int64), batches=200)
    assert policy.order == (0, 1)
    joint = AGreedy(2)
    joint.update(masks[masks > 0])
    assert joint.order == (1, 0)
