import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.drift import BCS, GLR, Detector, Monitor, estimate
from thalweg.drift.detector import Alarm
from thalweg.drift.monitor import Shift
from thalweg.ordering import MatrixView
from thalweg.ordering.types import Floats


class Listener(Detector):
    """Keeps the estimates that it is shown."""

    name = "listener"

    def _begin(self, series: int) -> None:
        self.shown: list[Floats] = []

    def _take(self, estimates: Floats) -> list[Alarm]:
        self.shown.append(estimates.copy())
        return []


@given(seed=st.integers(0, 999), filters=st.integers(1, 6), cuts=st.lists(st.integers(1, 30), max_size=6))
def test_estimates_are_the_matrix_view_of_each_segment(seed: int, filters: int, cuts: list[int]) -> None:
    random = np.random.default_rng(seed)
    order = random.permutation(filters).tolist()
    masks = random.integers(0, 2**filters, 70)
    listener = Listener()
    monitor = Monitor(order, listener)
    for part in np.split(masks, np.minimum(np.cumsum(cuts), 70)):
        monitor.update(part)
    assert monitor.seen == 70
    assert monitor.room == 10
    for place, estimates in enumerate(listener.shown):
        view = MatrixView(order)
        view.insert(masks[20 * place : 20 * place + 20])
        assert estimates[:-filters].tolist() == estimate(view.counts[np.triu_indices(filters)]).tolist()
        assert np.isnan(estimates[-filters:]).all()  # no times, no costs


def test_all_conditional_probabilities_and_costs_are_watched_at_once() -> None:
    detector = BCS()
    Monitor(range(15), detector)
    assert detector.series == 15 * 16 // 2 + 15
    Monitor(range(15), detector, diagonal=True)
    assert detector.series == 30


def test_a_change_is_named() -> None:
    """Filter 2 comes to drop what filter 1 lets pass: of all tuples, and of those that reach it."""
    random = np.random.default_rng(0)
    bits = random.random((4000, 3)) < np.where(np.arange(4000)[:, None] < 2000, [0.3, 0.5, 0.1], [0.3, 0.5, 0.7])
    monitor = Monitor([1, 2, 0], BCS())
    shift = monitor.update(bits @ [1, 2, 4])[0]
    assert (shift.kind, shift.filter) == ("selectivity", 2)
    assert shift.at == pytest.approx(2000, abs=40)
    assert shift.given in {(), (1,)}
    assert shift.before < shift.after


def test_a_filter_that_becomes_slow_is_named() -> None:
    random = np.random.default_rng(0)
    times = random.gamma(4, 0.25e-3, (4000, 2))
    times[2000:, 1] *= 4
    shifts = Monitor([0, 1], BCS()).update(random.integers(1, 4, 4000), times)
    assert [(shift.kind, shift.filter) for shift in shifts] == [("cost", 1)]
    assert shifts[0].at == pytest.approx(2000, abs=40)
    assert shifts[0].before == pytest.approx(1e-3, rel=0.1)
    assert shifts[0].after == pytest.approx(4e-3, rel=0.2)


def test_costs_that_wander_a_little_are_no_change() -> None:
    random = np.random.default_rng(0)
    times = 1e-3 * np.exp(0.2 * np.sin(np.arange(8000) / 700))[:, None] * random.gamma(4, 0.25, (8000, 2))
    assert not Monitor([0, 1], BCS()).update(random.integers(1, 4, 8000), times)


def test_times_may_be_missing() -> None:
    """NaN costs, costs of exactly zero, and a filter that is timed now and then."""
    random = np.random.default_rng(0)
    times = np.full((3000, 3), np.nan)
    times[:, 1] = 0.0
    times[::100, 2] = random.gamma(4, 0.25, 30)
    assert not Monitor([0, 1, 2], BCS()).update(random.integers(1, 8, 3000), times)


def test_a_lost_processor_is_no_change() -> None:
    random = np.random.default_rng(0)
    times = random.gamma(4, 0.25e-6, (4000, 2))
    times[1234, 0] = 0.1
    assert not Monitor([0, 1], BCS()).update(random.integers(1, 4, 4000), times)


@pytest.mark.parametrize(
    ("masks", "times", "timed", "message"),
    [
        ([1 << 40], None, None, "between 0 and 3"),
        ([-1], None, None, "between 0 and 3"),
        ([1, 2], [[1.0, 1.0]], None, "non-negative seconds"),
        ([1], [[1.0]], [True], "a row for each"),
        ([1, 2], [[1.0, 1.0], [1.0, 1.0]], [True], "a row for each"),
    ],
)
def test_arguments_that_a_kernel_cannot_take_are_refused(
    masks: list[int], times: list[list[float]] | None, timed: list[bool] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Monitor([0, 1], BCS()).update(masks, times, timed)


def test_an_order_names_each_filter_once() -> None:
    with pytest.raises(ValueError, match="each of the filters"):
        Monitor([0, 7], BCS())


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_costs_that_change_beyond_measure(factor: float) -> None:
    monitor = Monitor([0, 1], GLR())
    shifts: list[Shift] = []
    for tuples, seconds in ((4000, 1e-4), (8000, 1e-4 * factor)):
        shifts += monitor.update(np.ones(tuples, np.int64), np.full((tuples, 2), [seconds, 1e-5]))
    assert {(shift.kind, shift.filter) for shift in shifts} == {("cost", 0)}
    assert all((shift.after > shift.before) == (factor > 1) and shift.after > 0 for shift in shifts)
