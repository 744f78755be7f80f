import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering import greedy_order, order_cost
from thalweg.ordering.raking import ORDERS, Raking
from thalweg.ordering.types import Floats, Integers

FILTERS = 5


def processed(masks: Integers, order: tuple[int, ...]) -> tuple[Floats, Floats]:
    """The tuples that each filter evaluates and drops when all tuples run in an order."""
    evaluated, dropped = np.zeros(FILTERS), np.zeros(FILTERS)
    for number in order:
        gone = masks >> number & 1 == 1
        evaluated[number], dropped[number] = masks.size, gone.sum()
        masks = masks[~gone]
    return evaluated, dropped


def share_dropped(masks: Integers, weights: Floats, order: tuple[int, ...]) -> list[float]:
    """The share of the weight that each position of an order drops."""
    shares = []
    for number in order:
        gone = masks >> number & 1 == 1
        shares.append(float(weights[gone].sum()))
        masks, weights = masks[~gone], weights[~gone]
    return shares


def drawn(rows: int, seed: int) -> Integers:
    """Drop masks of correlated filters."""
    random = np.random.default_rng(seed)
    drops = random.uniform(0.05, 0.5, FILTERS)
    common = random.random((rows, 1))
    own = random.random((rows, FILTERS))
    bits = np.where(random.random((rows, FILTERS)) < 0.5, common, own) < drops
    masks: Integers = bits @ (1 << np.arange(FILTERS))
    return masks


def test_without_any_counts_all_weigh_the_same() -> None:
    raking = Raking()
    assert not raking
    assert raking.weights(np.array([1, 2, 3])).tolist() == [1.0, 1.0, 1.0]
    assert raking.weights(np.zeros(0, np.int64)).size == 0


@settings(max_examples=20)
@given(order=st.permutations(range(FILTERS)), earlier=st.permutations(range(FILTERS)), seed=st.integers(0, 99))
def test_weighted_tuples_drop_as_the_current_order_does(order: list[int], earlier: list[int], seed: int) -> None:
    rows, now = drawn(50_000, seed), tuple(order)
    profile = rows[:2000][rows[:2000] > 0]
    raking = Raking()
    for ran in (tuple(earlier), now):
        raking.note(ran, *processed(rows, ran))
    weights = raking.weights(profile)
    assert weights.sum() == pytest.approx(profile.size)
    gone = rows[rows > 0]
    wanted = share_dropped(gone, np.ones(gone.size), now)
    # To a hundredth: the profile's own tuples count, too, and hardly any tuple gets as far as the last position.
    assert np.array(share_dropped(profile, weights, now)) / profile.size * gone.size == pytest.approx(
        wanted, abs=0.01 * gone.size
    )


def test_orders_of_a_weighted_profile_cost_half_as_much_too_much() -> None:
    plain, raked = [], []
    for seed in range(60):
        rows = drawn(20_000, seed)
        profile = rows[:150][rows[:150] > 0]
        best = order_cost(rows, greedy_order(rows, np.ones(FILTERS)))
        order, raking = greedy_order(profile, np.ones(FILTERS), prior=1.0), Raking()
        plain.append(order_cost(rows, order) / best - 1.0)
        for _ in range(3):
            raking.note(order, *processed(rows, order))
            order = greedy_order(profile, np.ones(FILTERS), prior=1.0, weights=raking.weights(profile))
        raked.append(order_cost(rows, order) / best - 1.0)
    assert np.mean(raked) < 0.5 * np.mean(plain)


def test_few_counts_hardly_move_the_weights() -> None:
    profile = np.array([1] * 100 + [2] * 100)
    few, many = Raking(), Raking()
    few.note((0, 1), np.array([4.0, 1.0]), np.array([3.0, 1.0]))
    many.note((0, 1), np.array([40_000.0, 10_000.0]), np.array([30_000.0, 10_000.0]))
    assert few.weights(profile)[0] == pytest.approx(1.0, abs=0.02)
    assert many.weights(profile)[0] == pytest.approx(1.5, abs=0.02)


def test_filters_that_no_tuple_reached_are_left_to_the_profile() -> None:
    profile = np.array([0b01, 0b10, 0b10, 0b100, 0b100, 0b100])
    raking = Raking()
    raking.note((0, 1, 2), np.array([100.0, 0.0, 0.0]), np.array([100.0, 0.0, 0.0]))
    weights = raking.weights(profile)
    assert weights[1:] == pytest.approx(weights[1])


def test_only_the_last_orders_are_remembered_and_nothing_after_a_change() -> None:
    raking, one = Raking(), (np.array([100.0, 50.0]), np.array([50.0, 25.0]))
    rows = drawn(1000, seed=0)
    raking.note((0, 1), *one)
    before = raking.weights(np.array([1, 2]))
    raking.forget()
    assert not raking
    assert raking.weights(np.array([1, 2])).tolist() == [1.0, 1.0]
    raking.note((0, 1), *one)
    assert raking.weights(np.array([1, 2])) == pytest.approx(before)
    many, newest = Raking(), Raking()
    for turn in range(ORDERS + 3):
        order = (*tuple(np.roll(range(3), turn).tolist()), 3 + turn % 2, 4 - turn % 2)
        many.note(order, *processed(rows, order))
        if turn >= 3:  # the orders before it are forgotten
            newest.note(order, *processed(rows, order))
    assert many.weights(np.array([1, 2])) == pytest.approx(newest.weights(np.array([1, 2])))


def test_counts_of_another_order_are_left_out() -> None:
    rows, raking = drawn(1000, seed=0), Raking()
    raking.note((1, 0, 2, 3, 4), *processed(rows, (0, 1, 2, 3, 4)))
    assert not raking
