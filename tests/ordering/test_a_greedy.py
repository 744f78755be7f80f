import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import AGreedy, Independent, LocalSwaps, greedy_order, optimal_order, order_cost
from thalweg.ordering.matrix_view import MatrixView
from thalweg.ordering.types import Integers

TUPLES = {1: 0b0000, 2: 0b0100, 3: 0b1100, 4: 0b1110, 5: 0b1011, 6: 0b1011, 7: 0b0001}  # figure 2, F1 = bit 0


def masks_of(*tuples: int) -> list[int]:
    return [TUPLES[one] for one in tuples]


def test_probes_of_example_2() -> None:
    stream = masks_of(1, 2, 1, 4, 7, 2, 5, 4)
    probes = [8 * order_cost(stream, order) for order in ((0, 1, 2, 3), (2, 1, 3, 0), (2, 0, 1, 3))]
    assert probes == [20, 18, 16]
    assert optimal_order(stream, np.ones(4)) == (2, 0, 1, 3)


def test_views_and_correction_of_examples_3_to_5() -> None:
    policy = AGreedy(4, window=6, order=(2, 0, 1, 3))
    assert not policy.update([mask for mask in masks_of(1, 2, 1, 4, 7, 2, 5, 4) if mask])
    assert policy.profile.masks.tolist() == masks_of(2, 4, 7, 2, 5, 4)
    assert policy.state.counts.tolist() == [[4, 2, 3, 3], [0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]

    assert policy.update(masks_of(3, 6))
    assert policy.profile.masks.tolist() == masks_of(7, 2, 5, 4, 3, 6)
    assert policy.order == (3, 2, 0, 1)
    assert policy.state.counts.tolist() == [[4, 3, 3, 3], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    change = policy.last_change
    assert change is not None
    assert (change.position, change.filter, change.instead_of) == (0, 3, 2)


@pytest.mark.parametrize("filters", [3, 4, 8, 20, 50])
def test_example_6_independent_pays_for_correlation(filters: int) -> None:
    """Filters 1..n-1 keep the values 1..49 and filter n keeps 50..100."""
    last = 1 << (filters - 1)
    stream = np.array([last if value <= 49 else last - 1 for value in range(1, 101)])
    shuffled = np.random.default_rng(0).permutation(np.tile(stream, 20))
    costs = {}
    for kind in (AGreedy, Independent):
        policy = kind(filters, window=1000)
        policy.update(shuffled)
        costs[kind] = order_cost(stream, policy.order)
    assert costs[Independent] == pytest.approx(0.49 * filters + 0.51)
    assert costs[AGreedy] == pytest.approx(1.49)


@pytest.mark.parametrize("filters", [4, 5, 10, 20, 50])
def test_example_7_local_swaps_stays_in_a_local_optimum(filters: int) -> None:
    """Filter i drops the i-th part of the values; then the last keeps only the part of the one before it."""
    width = 100 // filters
    part = np.arange(100) // width
    before = 1 << part
    after = np.where(part == filters - 1, 1 << (filters - 1), before)
    after = np.where(part == filters - 2, before, after | 1 << (filters - 1))
    costs = {}
    for kind in (AGreedy, LocalSwaps):
        policy = kind(filters, window=1000)
        for stream in (before, after):
            for _ in range(20):
                policy.update(known(policy, stream))
        costs[kind] = order_cost(after, policy.order)
    assert costs[LocalSwaps] == pytest.approx((filters + 1) / 2, rel=0.02)
    assert costs[AGreedy] == pytest.approx(1 + 1 / filters)


def known(policy: AGreedy | LocalSwaps, masks: Integers) -> list[int]:
    """What a profile of these tuples knows: the filters up to the dropping one, and those the policy asks for."""
    seen = []
    for mask in masks.tolist():
        position = next(place for place, one in enumerate(policy.order) if mask >> one & 1)
        asked = (policy.order[position], *policy.needs(position))
        seen.append(sum(mask & 1 << one for one in asked))
    return seen


instances = st.integers(2, 6).flatmap(
    lambda filters: st.tuples(
        st.lists(st.integers(1, 2**filters - 1), min_size=1, max_size=60),
        st.lists(st.floats(0.01, 100), min_size=filters, max_size=filters),
    )
)


@given(instances, st.sampled_from([1.0, 0.9, 0.5]), st.integers(1, 70))
def test_settled_order_keeps_the_greedy_invariant(
    instance: tuple[list[int], list[float]], alpha: float, window: int
) -> None:
    masks, costs = instance
    policy = AGreedy(len(costs), alpha=alpha, window=window, costs=costs)
    policy.update(masks)
    view = MatrixView(policy.order)
    view.insert(masks[-window:])
    assert np.array_equal(policy.state.counts, view.counts)
    ranks = view.counts / np.array(costs)[list(policy.order)]
    for row in range(len(costs)):
        assert ranks[row, row] >= alpha * ranks[row, row:].max() * (1 - 1e-9)


@given(instances, st.sampled_from([1.0, 0.9, 0.5]))
def test_cost_is_within_four_of_the_optimum(instance: tuple[list[int], list[float]], alpha: float) -> None:
    """Theorem 4.1."""
    masks, costs = instance
    policy = AGreedy(len(costs), alpha=alpha, window=60, costs=costs)
    policy.update(masks)
    best = order_cost(masks, optimal_order(masks, costs), costs)
    assert order_cost(masks, policy.order, costs) <= 4 / alpha * best * (1 + 1e-9)


@given(instances)
def test_converges_to_the_static_greedy_cost(instance: tuple[list[int], list[float]]) -> None:
    """Without thrash avoidance the settled order is a greedy one; with ties there may be several."""
    masks, costs = instance
    policy = AGreedy(len(costs), alpha=1.0, window=60, costs=costs, order=greedy_order(masks, costs))
    policy.update(masks)
    ranks = MatrixView(policy.order)
    ranks.insert(masks)
    first = ranks.counts[0] / np.array(costs)[list(policy.order)]
    assert first[0] == pytest.approx(first.max())


def test_measured_times_decide() -> None:
    """Filter 1 drops twice as much, at three times the price."""
    policy = AGreedy(2, window=100)
    masks, times = [0b11, 0b10] * 50, [[1.0, 3.0]] * 100
    policy.update(masks, times)
    assert policy.order == (0, 1)
    policy.update(masks, [[1.0, 1.5]] * 100)
    assert policy.order == (1, 0)


def test_profiles_all_later_filters() -> None:
    policy = AGreedy(4, order=(3, 1, 0, 2))
    assert [policy.needs(position) for position in range(4)] == [(1, 0, 2), (0, 2), (2,), ()]
