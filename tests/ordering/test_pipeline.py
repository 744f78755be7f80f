import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from thalweg.ordering import POLICIES, AGreedy, AsWritten, Policy, optimal_order, order_cost
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.slices import FIRST_SLICE
from thalweg.ordering.stopwatch import SINGLES

every_policy = pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)


def bit(one: int) -> Filter:
    """A filter that drops the rows whose bit is set."""
    return lambda rows: rows >> one & 1 == 0


@every_policy
@given(
    masks=st.lists(st.integers(0, 31), max_size=300),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    p=st.sampled_from([0.0, 0.1, 1.0]),
)
def test_what_is_kept_depends_on_neither_policy_nor_batches(
    kind: type[Policy], masks: list[int], cuts: list[int], p: float
) -> None:
    rows = np.array(masks, np.int64)
    pipeline = Pipeline(kind(5, p=p, window=20), [bit(one) for one in range(5)])
    kept = [pipeline.keep(part) for part in np.split(rows, sorted(min(cut, rows.size) for cut in cuts))]
    assert np.concatenate(kept).tolist() == (rows == 0).tolist()
    assert pipeline.tuples == rows.size


def test_evaluations_follow_the_cost_model() -> None:
    rows = np.random.default_rng(0).integers(0, 16, 5000)
    pipeline = Pipeline(AsWritten(4, order=(2, 0, 3, 1)), [bit(one) for one in range(4)])
    pipeline.keep(rows)
    assert pipeline.evaluations == round(order_cost(rows, (2, 0, 3, 1)) * 5000)
    assert pipeline.extra_evaluations == 0


def test_learns_a_correlated_order_from_one_batch() -> None:
    """The shape of example 6: all but the last filter drop the same rows."""
    rows = np.random.default_rng(0).choice([0b1000, 0b0111], p=[0.49, 0.51], size=10_000)
    pipeline = Pipeline(AGreedy(4), [bit(one) for one in range(4)], costs=np.ones(4), clock=lambda: 0.0)
    pipeline.keep(rows)
    best = order_cost(rows, optimal_order(rows, np.ones(4)))
    assert pipeline.policy.order.index(3) == 1
    assert pipeline.evaluations / 10_000 < 1.1 * best


def test_the_first_rows_do_not_all_run_in_a_bad_order() -> None:
    sizes: list[int] = []

    def watched(rows: np.ndarray) -> np.ndarray:
        sizes.append(len(rows))
        return rows >= 0

    # The second filter drops everything.
    pipeline = Pipeline(AGreedy(2), [watched, lambda rows: rows < 0], clock=lambda: 0.0)
    pipeline.keep(np.arange(10_000))
    assert sizes[:SINGLES] == [1] * SINGLES
    assert max(sizes) <= FIRST_SLICE
    assert sum(sizes) < 1000


def test_what_a_call_costs_whatever_its_rows_is_not_the_rows_fault() -> None:
    """Both filters take a microsecond a row; each call takes a millisecond more, which few rows would bear alone."""

    now = 0.0

    def slow(one: int) -> Filter:
        def keep(rows: np.ndarray) -> np.ndarray:
            nonlocal now
            now += 1e-3 + 1e-6 * len(rows)
            return np.asarray(rows >> one & 1 == 0)

        return keep

    rows = np.random.default_rng(0).choice([0b01, 0b10, 0b11, 0b00], p=[0.8, 0.05, 0.1, 0.05], size=20_000)
    pipeline = Pipeline(AGreedy(2), [slow(0), slow(1)], clock=lambda: now)
    for start in range(0, 20_000, 2000):
        pipeline.keep(rows[start : start + 2000])
    first, second = pipeline.policy.profile.mean_times
    assert second == pytest.approx(first, rel=0.1)  # of 2000 rows the second sees 200: 6 times as long a row


def test_number_of_filters_must_fit() -> None:
    with pytest.raises(ValueError, match="orders 2 filters, not 1"):
        Pipeline(AsWritten(2), [bit(0)])


COSTS, KEEPS = (40, 4, 20, 2, 10, 1), (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
SHIFTS = (0, 3, 1)  # a phase each: filter i has the cost and the keep rate of number i + shift
PHASE, BATCH = 60_000, 10_000


def test_an_order_that_has_become_bad_does_not_run_for_long() -> None:
    """Costs and keep rates change places; on a clock that only the filters' own costs advance."""
    random = np.random.default_rng(4)
    now, phase = 0.0, 0
    draws = np.zeros((0, 6))

    def drifting(one: int) -> Filter:
        def keep(rows: np.ndarray) -> np.ndarray:
            nonlocal now
            number = (one + SHIFTS[phase]) % 6
            now += 15e-6 + rows.size * COSTS[number] * 0.3e-6
            return np.asarray(draws[rows, one] < KEEPS[number])

        return keep

    pipeline = Pipeline(AGreedy(6), [drifting(one) for one in range(6)], clock=lambda: now)
    ideal = 0.0
    for phase in range(len(SHIFTS)):  # noqa: B007 - the filters read it
        for _ in range(PHASE // BATCH):
            draws = random.random((BATCH, 6))
            pipeline.keep(np.arange(BATCH))
        alive = 1.0
        for number in sorted(range(6), key=lambda number: COSTS[number] / (1 - KEEPS[number])):
            ideal += PHASE * alive * COSTS[number] * 0.3e-6
            alive *= KEEPS[number]
    assert now < 1.25 * ideal
    assert pipeline.profile_seconds < 0.06 * now


def test_slices_take_a_while_but_not_long() -> None:
    now, sizes = 0.0, list[int]()

    def slow(rows: np.ndarray) -> np.ndarray:
        nonlocal now
        sizes.append(rows.size)
        now += 1e-5 * rows.size
        return np.ones(rows.size, np.bool_)

    pipeline = Pipeline(AGreedy(1), [slow], clock=lambda: now)
    for _ in range(3):
        pipeline.keep(np.arange(10_000))
    assert sizes[:6] == [1] * SINGLES + [FIRST_SLICE, 2 * FIRST_SLICE, 4 * FIRST_SLICE]
    assert 199 <= sizes[-5] <= 201  # 2 ms
    assert all(1999 <= size <= 4001 for size in sizes[-4:])  # and 20 ms; the last may take the rest along


def test_a_stationary_stream_is_not_thought_to_have_changed() -> None:
    """Corrections of the order, several a batch at first, are no changes of the stream."""
    restarts = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        drops = random.uniform(0.05, 0.5, 12)
        common = np.repeat(random.random((100_000, 4)), 3, axis=1)  # filters in groups of three, which often agree
        own = random.random((100_000, 12))
        rows = (np.where(random.random((100_000, 12)) < 0.8, common, own) < drops) @ (1 << np.arange(12))
        pipeline = Pipeline(AGreedy(12, prior=1.0, seed=seed), [bit(number) for number in range(12)], clock=lambda: 0.0)
        for start in range(0, rows.size, 3000):
            pipeline.keep(rows[start : start + 3000])
        restarts += len(pipeline.restarts)
    assert restarts == 0


def test_a_policy_knows_all_counts_of_its_order_before_it_learns_from_profile_tuples() -> None:
    told, learnt = np.zeros(3), 0

    class Listening(AGreedy):
        def observe(self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike) -> bool:
            nonlocal told
            told = told + np.asarray(evaluated)
            return super().observe(evaluated, dropped, seconds)

        def update(self, masks: ArrayLike, times: ArrayLike | None = None, stamps: ArrayLike | None = None) -> bool:
            nonlocal learnt
            learnt += 1
            assert told.tolist() == pipeline.evaluated.tolist()
            return super().update(masks, times, stamps)

    pipeline = Pipeline(Listening(3), [bit(number) for number in range(3)], costs=np.ones(3), clock=lambda: 0.0)
    for rows in np.random.default_rng(0).integers(0, 8, (30, 1000)):
        pipeline.keep(rows)
    assert learnt > 10
