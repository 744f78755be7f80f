from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from thalweg.drift import BCS, DETECTORS, Detector, Watched
from thalweg.drift.watched import Phase
from thalweg.kernels import compile_kernels
from thalweg.ordering import POLICIES, AGreedy, AsWritten, MatrixView, Policy, StaticGreedy, greedy_order
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.sampling import FLOOR
from thalweg.ordering.types import Integers
from thalweg_lab.workload import Workload

every_policy = pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)
every_detector = pytest.mark.parametrize("detector", DETECTORS, ids=lambda kind: kind.name)

BEFORE, AFTER = (0.9, 0.3, 0.5, 0.1), (0.1, 0.4, 0.3, 0.8)


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    compile_kernels()


def stream(*stretches: tuple[tuple[float, ...], int], seed: int = 0) -> Integers:
    """Profile tuples of stretches with these drop probabilities."""
    random = np.random.default_rng(seed)
    parts = [Workload(drops).masks(2 * tuples, random) for drops, tuples in stretches]
    return np.concatenate([part[part > 0][:tuples] for part, (_, tuples) in zip(parts, stretches, strict=True)])


def known(one: Policy, mask: int) -> int:
    """The bits that profiling this tuple reveals."""
    position = next(place for place, name in enumerate(one.order) if mask >> name & 1)
    return sum(mask & 1 << name for name in (one.order[position], *one.needs(position)))


@every_policy
@every_detector
def test_any_policy_with_any_detector_keeps_a_legal_order(kind: type[Policy], detector: type[Detector]) -> None:
    one = Watched(kind(4, window=600, after={3: [1]}), detector())
    for mask in stream((BEFORE, 900), (AFTER, 900)):
        one.update([known(one, int(mask))])
        assert sorted(one.order) == [0, 1, 2, 3]
        assert one.order.index(1) < one.order.index(3)
    assert one.monitor.order == one.order or one.phase is Phase.LEARNING or one.detector.is_blind


@every_policy
@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 300), max_size=8))
@settings(max_examples=4)
def test_a_batch_of_k_equals_k_batches_of_one(kind: type[Policy], seed: int, cuts: list[int]) -> None:
    masks = stream((BEFORE, 700), (AFTER, 700), seed=seed)
    times = np.random.default_rng(seed).random((masks.size, 4)) + 0.1
    whole, single = Watched(kind(4, window=500)), Watched(kind(4, window=500))
    edges = [0, *np.minimum(np.cumsum(cuts), masks.size).tolist(), masks.size]
    for start, stop in pairwise(edges):
        whole.update(masks[start:stop], times[start:stop])
    for k in range(masks.size):
        single.update(masks[k : k + 1], times[k : k + 1])
    assert whole.order == single.order
    assert list(whole.changes) == list(single.changes)
    assert whole.profile.masks.tolist() == single.profile.masks.tolist()


@every_policy
def test_with_none_it_is_the_policy_itself(kind: type[Policy]) -> None:
    masks = stream((BEFORE, 1000), (AFTER, 1000))
    alone, watched = kind(4), Watched(kind(4), "none")
    for start in range(0, masks.size, 50):
        assert alone.update(masks[start : start + 50]) == watched.update(masks[start : start + 50])
        assert alone.order == watched.order
        assert [alone.needs(place) for place in range(4)] == [watched.needs(place) for place in range(4)]
    assert alone.last_change == watched.last_change
    assert alone.profile.masks.tolist() == watched.profile.masks.tolist()
    assert not watched.changes


@pytest.mark.parametrize("name", ["bcs", "martingale", "adwin"])
def test_after_a_change_only_what_is_up_to_date_counts(name: str) -> None:
    """The paper's example 1: in so large a window, A-Greedy alone would never see it."""
    masks = stream((BEFORE, 4000), (AFTER, 3000))
    alone, watched = AGreedy(4, window=100_000, alpha=1.0), Watched(AGreedy(4, window=100_000, alpha=1.0), name)
    for one in (alone, watched):
        one.update(masks)
    assert alone.order[0] == 0
    assert watched.order[:2] == greedy_order(masks[4000:], [1] * 4)[:2]  # few tuples get any further
    drift = watched.changes[0]
    assert drift.kind == "selectivity"
    assert drift.at == pytest.approx(4000, abs=200)
    assert drift.seen > drift.at
    assert drift.stamp == drift.at
    assert drift.dropped == pytest.approx(4000, abs=200)
    assert drift.dropped + drift.kept == drift.seen
    assert (drift.order_before[0], drift.order_after[0]) == (0, 3)
    assert drift.before != pytest.approx(drift.after, abs=0.1)
    assert len(watched.profile) <= 3200


def test_while_nothing_changes_the_order_rests() -> None:
    masks = stream(((0.5, 0.5, 0.5, 0.5), 20_000))
    alone, watched = AGreedy(4), Watched(AGreedy(4))
    for one in (alone, watched):
        for start in range(0, masks.size, 100):
            one.update(masks[start : start + 100])
    assert not watched.changes
    assert watched.phase in {Phase.RESTING, Phase.ANALYSING}
    assert alone.last_change is not None
    assert watched.last_change is not None
    assert watched.last_change.count < alone.last_change.count
    assert watched.profile.seen == masks.size
    assert watched.profile.masks.tolist() == alone.profile.masks.tolist()


def test_what_creeps_in_unnoticed_is_analysed_when_half_of_the_window_is_new() -> None:
    class Blindfold(BCS):
        def _take(self, estimates: NDArray[np.float64]) -> list[object]:  # type: ignore[override]
            return []

    one = Watched(AGreedy(4, window=1000), Blindfold())
    one.update(stream((BEFORE, 3000), (AFTER, 2000)))
    assert not one.changes
    assert one.order[0] == 3


def test_a_policy_that_never_rests_is_settled_as_its_window_grows() -> None:
    masks = np.where(np.arange(1000) % 25 < 12, 1, 2)  # the second filter drops 8% more, too little to move it at once
    alone, watched = AGreedy(2, alpha=0.9), Watched(AGreedy(2, alpha=0.9), "glr")
    for policy in (alone, watched):
        policy.update(masks)
    assert (alone.order, watched.order) == ((0, 1), (1, 0))


def test_the_watched_probabilities_follow_the_order() -> None:
    one = Watched(AGreedy(4))
    masks = stream((BEFORE, 2000), (AFTER, 2000))
    for start in range(0, masks.size, 20):
        one.update(masks[start : start + 20])
        if one.phase is Phase.RESTING:
            assert one.monitor.order == one.order


def test_the_view_is_right_when_the_policy_analyses() -> None:
    one = Watched(AGreedy(4, window=700))
    masks = stream((BEFORE, 2000), (AFTER, 2000), (BEFORE, 2000))
    analysed = 0
    for start in range(0, masks.size, 20):
        one.update(masks[start : start + 20])
        if one.phase is Phase.ANALYSING or start < 380:
            analysed += 1
            assert one.state.counts[np.triu_indices(4)].tolist() == (
                MatrixView.of(one).counts[np.triu_indices(4)].tolist()
            )
    assert analysed > 25


def test_a_regime_that_returns_is_reused_at_once() -> None:
    masks = stream((BEFORE, 3000), (AFTER, 3000), (BEFORE, 3000), (AFTER, 3000))
    one = Watched(AGreedy(4, window=5000))
    one.update(masks)
    assert [drift.regime for drift in one.changes] == [None, 0, 1]
    returned = one.changes[1]
    assert returned.order_after[:2] == greedy_order(masks[:3000], [1] * 4)[:2]
    forgetful = Watched(AGreedy(4, window=5000), remember=0)
    forgetful.update(masks)
    assert [drift.regime for drift in forgetful.changes] == [None, None, None]


def test_a_gradual_change_is_found_and_followed() -> None:
    random = np.random.default_rng(0)
    before, after = (Workload(drops).masks(12_000, random) for drops in (BEFORE, AFTER))
    share = np.clip((np.arange(12_000) - 4000) / 4000, 0, 1)
    masks = np.where(random.random(12_000) < share, after, before)
    masks = masks[masks > 0]
    one = Watched(AGreedy(4, window=100_000))
    one.update(masks)
    assert one.changes
    assert one.order[0] == 3
    assert one.changes[-1].order_after == one.order


def test_a_filter_that_becomes_slow_moves_back() -> None:
    random = np.random.default_rng(0)
    masks = stream(((0.6, 0.55, 0.1, 0.1), 6000))
    times = random.gamma(4, 0.25e-3, (6000, 4))
    times[3000:, 0] *= 20
    one = Watched(AGreedy(4, window=100_000))
    for start in range(0, 6000, 50):
        one.update(masks[start : start + 50], times[start : start + 50])
    [drift] = one.changes
    assert (drift.kind, drift.filter) == ("cost", 0)
    assert drift.at == pytest.approx(3000, abs=40)
    assert drift.before == pytest.approx(1e-3, rel=0.1)
    assert drift.after == pytest.approx(20e-3, rel=0.2)
    assert drift.order_before[0] == 0
    assert drift.order_after[0] == 1


def test_a_policy_that_decides_once_decides_again() -> None:
    masks = stream((BEFORE, 3000), (AFTER, 3000))
    one = Watched(StaticGreedy(4, window=500))
    for mask in masks:
        one.update([known(one, int(mask))])
    assert one.detected == 1
    assert one.order[0] == 3
    assert one.needs(0) == ()


def test_a_policy_that_never_changes_is_only_watched() -> None:
    one = Watched(AsWritten(4, p=0.01))
    for mask in stream((BEFORE, 2000), (AFTER, 2000)):
        one.update([known(one, int(mask))])
    assert one.detected == 1
    assert one.order == (0, 1, 2, 3)


def test_a_change_raises_an_adaptive_probability() -> None:
    one = Watched(AGreedy(4, p=0.1, adaptive_p=True))
    one.update(stream((BEFORE, 2000)))
    evaluated = np.array([4000, 2000, 1000, 500])
    for _ in range(100):
        one.observe(evaluated, evaluated // 2, evaluated * 1.0)
    assert one.sampler.probability == pytest.approx(FLOOR * 0.1)
    one.update(stream((AFTER, 400), seed=1))
    assert one.detected == 1
    assert one.sampler.probability == 0.1


@pytest.mark.parametrize("window", [1, 7, 100, 399])
def test_a_window_shorter_than_the_training_set_is_no_trouble(window: int) -> None:
    """Where the window is so short that its order never settles, changes may go unnoticed."""
    one = Watched(AGreedy(4, window=window))
    masks = stream((BEFORE, 3000), (AFTER, 1000))
    one.update(masks[:3000])
    assert not one.changes
    one.update(masks[3000:])
    assert one.detected == 1 or (window < 100 and not one.changes)
    assert one.order[0] == 3 or window < 100


@every_detector
@pytest.mark.parametrize("mask", [0b0000, 0b1111, 0b0100])
def test_probabilities_of_0_and_1_are_no_change(detector: type[Detector], mask: int) -> None:
    one = Watched(AGreedy(4), detector())
    for _ in range(60):
        one.update([mask] * 50, np.full((50, 4), np.nan))
    assert not one.changes


def test_what_is_told_to_forget_learns_anew() -> None:
    one = Watched(AGreedy(4, window=100_000))
    one.update(stream((BEFORE, 3000)))
    one.forget()
    assert len(one.profile) == 0
    assert one.phase is Phase.LEARNING
    one.update(stream((AFTER, 3000), seed=1))
    assert one.order[0] == 3
    assert not one.changes
    one.update(stream((BEFORE, 3000), seed=2))
    assert one.order[0] == 0
    assert one.detected == 1


def test_what_ordinary_processing_shows_is_passed_on() -> None:
    def observe(one: Watched) -> bool:
        one.update(stream((BEFORE, 100)))
        evaluated = np.array([4000, 2000, 1000, 500])
        for share in (2, 2, 2, 4):
            one.observe(evaluated, evaluated // share, evaluated * 1.0)
        return one.saw_change

    assert observe(Watched(AGreedy(4, adaptive_p=True), "bcs"))
    assert observe(Watched(AGreedy(4, adaptive_p=True), "none"))
    assert not observe(Watched(AGreedy(4, adaptive_p=False), "bcs"))


def test_the_log_is_bounded() -> None:
    one = Watched(AGreedy(4), log=2)
    one.update(stream((BEFORE, 1500), (AFTER, 1500), (BEFORE, 1500), (AFTER, 1500)))
    assert len(one.changes) == 2
    assert one.detected == 3


def passes(one: int, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A filter that drops the rows that say so."""
    return ~rows[:, one]


def test_it_runs_wherever_a_policy_does() -> None:
    """What is kept never depends on the optimizer."""
    random = np.random.default_rng(0)
    rows = random.random((60_000, 4)) < np.where(np.arange(60_000)[:, None] < 30_000, BEFORE, AFTER)
    watched = Watched(AGreedy(4, p=0.1, adaptive_p=False))
    line = Pipeline(watched, [partial(passes, one) for one in range(4)], clock=lambda: 0.0)
    kept = np.concatenate([line.keep(part) for part in np.split(rows, 60)])
    assert (kept == ~rows.any(axis=1)).all()
    assert watched.detected >= 1


def test_what_is_watched_cannot_be_watched_again() -> None:
    with pytest.raises(TypeError, match="watched already"):
        Watched(Watched(AGreedy(2)))


def test_a_regime_that_returns_is_recognised_after_the_executor_starts_over() -> None:
    one, random = Watched(AGreedy(4), "glr"), np.random.default_rng(0)
    day, night = (0.6, 0.1, 0.1, 0.2), (0.1, 0.2, 0.6, 0.1)

    def learn(drops: tuple[float, ...], tuples: int) -> None:
        masks = (random.random((tuples, 4)) < drops) @ (1 << np.arange(4))
        one.update(masks[masks > 0])

    learn(day, 600)
    one.forget()
    learn(night, 600)
    known = len(one.profile)
    one.forget()
    learn(day, 100)
    assert one.order[0] == 0
    assert len(one.profile) > known - 100  # the profile of the first day has returned with it


def test_what_ordinary_processing_counts_corrects_an_order_by_few_profile_tuples() -> None:
    few = [0b01] * 60 + [0b10] * 40  # by chance: the second filter drops more
    alone, watched = (Watched(AGreedy(2, prior=1.0), "glr") for _ in range(2))
    alone.update(few)
    watched.observe([10_000, 6000], [4000, 6000], [1.0, 1.0])
    watched.update(few)
    assert (alone.order, watched.order) == ((0, 1), (1, 0))


def test_rates_from_before_a_change_are_forgotten() -> None:
    watched = Watched(AGreedy(2, prior=1.0), "glr")
    watched.observe([10_000, 6000], [4000, 6000], [1.0, 1.0])
    watched.forget()
    watched.update([0b01] * 60 + [0b10] * 40)
    assert watched.order == (0, 1)


def test_counts_of_a_class_of_rows_say_nothing_of_the_whole_window() -> None:
    watched = Watched(AGreedy(2, prior=1.0), "glr")
    watched.sampler.adaptive = False
    watched.observe([10_000, 6000], [4000, 6000], [1.0, 1.0])
    watched.update([0b01] * 60 + [0b10] * 40)
    assert watched.order == (0, 1)


def test_a_detector_that_lets_a_policy_rest_leaves_its_order_to_the_profile() -> None:
    watched = Watched(AGreedy(2, prior=1.0), "bcs")
    watched.observe([10_000, 6000], [4000, 6000], [1.0, 1.0])
    watched.update([0b01] * 60 + [0b10] * 40)
    assert watched.order == (0, 1)
