import numpy as np
import pytest

from thalweg.ordering import POLICIES, AdjacentSwap, AsWritten, Policy, greedy_order
from thalweg.ordering.replay import replay


@pytest.mark.parametrize("kind", [one for one in POLICIES if one is not AsWritten], ids=lambda kind: kind.name)
def test_every_policy_learns_from_a_sample(kind: type[Policy]) -> None:
    random = np.random.default_rng(7)
    drops = random.random((4000, 3)) < [0.05, 0.9, 0.4]
    masks = (drops << np.arange(3)).sum(axis=1)
    policy = kind(3)
    replay(policy, masks, [1.0, 1.0, 1.0])
    assert greedy_order(masks, [1, 1, 1]) == (1, 2, 0)
    if kind is AdjacentSwap:  # it swaps at random, and may not be there yet
        assert policy.order[0] == 1
    else:
        assert policy.order == (1, 2, 0)


def test_policies_that_decide_once_do_not_wait_for_more() -> None:
    for kind in POLICIES:
        if kind.name in {"optimal", "static-greedy"}:
            policy = kind(2)
            replay(policy, [0b10] * 10, [1.0, 1.0])
            assert policy.order == (1, 0)


def test_an_empty_sample_teaches_nothing() -> None:
    policy = POLICIES[3](2)
    replay(policy, [], [1.0, 1.0])
    assert policy.order == (0, 1)
