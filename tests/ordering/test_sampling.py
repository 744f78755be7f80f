import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import AGreedy, Sampler
from thalweg.ordering.sampling import BLOCK, FLOOR, PATIENCE, counts_of, forget


@given(st.lists(st.integers(0, 300), max_size=20), st.floats(0, 1))
def test_choice_does_not_depend_on_batching(sizes: list[int], probability: float) -> None:
    whole, parts = Sampler(1, probability, seed=3), Sampler(1, probability, seed=3)
    chosen, start = [], 0
    for size in sizes:
        chosen += (parts.choose(size) + start).tolist()
        start += size
    assert chosen == whole.choose(start).tolist()


@pytest.mark.parametrize("probability", [0.005, 0.1, 0.5])
def test_share_chosen_is_the_probability(probability: float) -> None:
    share = len(Sampler(1, probability).choose(400_000)) / 400_000
    assert share == pytest.approx(probability, rel=0.05)


def test_the_extremes() -> None:
    assert len(Sampler(1, 0.0).choose(10**9)) == 0
    assert len(Sampler(1, 1.0).choose(50)) == 50


def test_a_warm_up_spreads_over_the_tuples_that_all_filters_of_a_slice_drop() -> None:
    sampler = Sampler(2, 0.01, adaptive=True)
    sampler.expect(10_000)
    first, second = sampler.choose(5000).size, sampler.choose(5000).size
    assert 20 <= first <= 60
    assert 20 <= second <= 60


def test_a_warm_up_takes_all_dropped_tuples_of_small_slices() -> None:
    sampler = Sampler(1, 0.01, adaptive=True)
    sizes = []
    for _ in range(3):
        sampler.expect(30)
        sizes.append(sampler.choose(25).size)
    assert sizes[:2] == [25, 25]
    assert sizes[2] > 5  # of the 14 that are left, spread over 30 rows


class Stream:
    """Shows a sampler blocks of ordinary processing with given drop rates and times."""

    def __init__(self) -> None:
        self.sampler = Sampler(2, 0.01, window=100, adaptive=True)
        self.random = np.random.default_rng(0)
        self.seen = 0

    def show(self, blocks: int, drops: tuple[float, float] = (0.5, 0.5), times: tuple[float, float] = (1, 1)) -> None:
        for _ in range(blocks):
            first = self.random.binomial(BLOCK, drops[0])
            second = self.random.binomial(BLOCK - first, drops[1])
            evaluated = np.array([BLOCK, BLOCK - first])
            self.seen += int(self.sampler.probability * BLOCK)
            counts = counts_of(2, evaluated, [first, second], evaluated * times)
            self.sampler.watch(counts, seen=self.seen, window=100)


def test_probability_falls_to_the_floor_while_nothing_moves_and_stays() -> None:
    stream = Stream()
    stream.show(4)
    assert stream.sampler.probability == 0.01  # the window is not yet full
    stream.show(60)
    assert stream.sampler.probability == pytest.approx(FLOOR * 0.01)
    stream.show(500)
    assert stream.sampler.probability == pytest.approx(FLOOR * 0.01)


@pytest.mark.parametrize("drops", [(0.6, 0.5), (0.5, 0.7), (0.4, 0.4)])
def test_one_block_of_other_drop_rates_brings_the_full_probability_back(drops: tuple[float, float]) -> None:
    stream = Stream()
    stream.show(60)
    stream.show(1, drops)
    assert stream.sampler.probability == 0.01
    stream.show(4, drops)
    assert stream.sampler.probability == 0.01  # held until the window has turned over
    stream.show(60, drops)
    assert stream.sampler.probability == pytest.approx(FLOOR * 0.01)


def test_a_lasting_slow_down_counts_and_a_short_one_does_not() -> None:
    stream = Stream()
    stream.show(60)
    stream.show(PATIENCE - 1, times=(1, 9))
    assert stream.sampler.probability == pytest.approx(FLOOR * 0.01)
    stream.show(20)
    stream.show(PATIENCE, times=(1, 9))
    assert stream.sampler.probability == 0.01


def test_a_change_of_order_alone_does_not_raise_it() -> None:
    """Filters that are as good as each other change places now and then; that is no news."""
    policy = AGreedy(2, window=10)
    for _ in range(60):
        policy.update([0b01, 0b10])
        policy.observe([BLOCK, BLOCK // 2], [BLOCK // 2, BLOCK // 4], [1.0, 1.0])
    settled = policy.sampler.probability
    policy.update([0b01, 0b10] * 6 if policy.order[0] == 1 else [0b10] * 12)
    policy.observe([BLOCK // 2, BLOCK], [BLOCK // 4, BLOCK // 2], [1.0, 1.0])
    assert policy.sampler.probability <= settled


def test_fixed_probability_never_moves() -> None:
    policy = AGreedy(2, adaptive_p=False)
    for _ in range(100):
        policy.observe([BLOCK, BLOCK // 2], [BLOCK // 2, 0], [1.0, 1.0])
    assert policy.sampler.probability == 0.01


def test_rates_are_forgotten_from_the_first_changed_position_of_a_batch_on() -> None:
    """A batch that brings two corrections: at the first position, and then at the second."""
    policy = AGreedy(3, window=100, alpha=1.0, adaptive_p=True)
    policy.observe([1000, 500, 250], [500, 250, 125], [1.0, 1.0, 1.0])
    policy.update([0b110, 0b110, 0b110, 0b100, 0b001])
    assert policy.order == (2, 0, 1)
    assert policy.last_change is not None
    assert policy.last_change.position == 1  # the last correction's
    assert policy.sampler.arrays.block["evaluated"].tolist() == [0.0, 0.0, 0.0]


def test_a_sudden_change_is_seen_without_a_whole_block() -> None:
    sampler = Sampler(1, 0.01, window=100, adaptive=True)
    for _ in range(40):
        sampler.watch(counts_of(1, [BLOCK], [BLOCK // 2], [1.0]), seen=1000, window=100)
    few = BLOCK // 4
    assert not sampler.watch(counts_of(1, [few], [few // 2], [1.0]), seen=1000, window=100)
    assert sampler.watch(counts_of(1, [few], [few * 3 // 4], [1.0]), seen=1000, window=100)
    assert sampler.probability == 0.01


@given(before=st.permutations(range(5)), after=st.permutations(range(5)))
def test_rates_are_forgotten_only_of_filters_that_other_tuples_reach(before: list[int], after: list[int]) -> None:
    sampler = Sampler(5, probability=0.5)
    sampler.arrays.reference["evaluated"] = 100.0
    forget(sampler.arrays, np.array(before), np.array(after))
    known = {number for number in range(5) if sampler.arrays.reference["evaluated"][number] > 0}
    assert known == {
        number
        for position, number in enumerate(after)
        if before[position] == number and set(before[:position]) == set(after[:position])
    }
