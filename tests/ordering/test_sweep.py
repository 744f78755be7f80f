import numpy as np

from thalweg.ordering import Sweep
from thalweg.ordering.sweep import PROFILED_POSITION


def test_stages_go_round_the_positions() -> None:
    policy = Sweep(4, window=5)
    columns = []
    for _ in range(20):
        columns.append(int(policy.state.memory[PROFILED_POSITION]))
        policy.update([0b0001] * 5)  # nothing to correct: a stage is a window long
    assert columns[:6] == [1, 2, 3, 1, 2, 3]


def test_a_move_ends_the_stage_and_keeps_the_others_in_order() -> None:
    policy = Sweep(4, window=50)
    for _ in range(40):
        wanted = policy.needs(0)
        policy.update([0b0001 | (0b1000 if 3 in wanted else 0)] * 5 + [0b1000] * 5)
    assert policy.order[0] == 3
    assert [one for one in policy.order if one != 3] == [0, 1, 2]


def test_reaches_the_greedy_order_of_independent_filters() -> None:
    random = np.random.default_rng(2)
    drops = np.array([0.1, 0.5, 0.3, 0.7])
    policy = Sweep(4, window=300)
    for bits in random.random((40_000, 4)) < drops:
        position = next((place for place, one in enumerate(policy.order) if bits[one]), None)
        if position is not None:
            asked = (policy.order[position], *policy.needs(position))
            policy.update([sum(int(bits[one]) << one for one in asked)])
    assert policy.order == (3, 1, 2, 0)
