import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thalweg.drift import GLR, estimate
from thalweg.drift.glr import WINDOWS, limits


def delay(quiet: int, before: float, after: float, seed: int, series: int = 1) -> int | None:
    """Estimates from a change of the first series to its alarm, of 400 at most."""
    random = np.random.default_rng(seed)
    detector = GLR()
    detector.watch(series)
    drops = np.full(series, before)
    for row in estimate(random.binomial(20, drops, (quiet, series))):
        detector.update(row)
    drops[0] = after
    for passed, row in enumerate(estimate(random.binomial(20, drops, (400, series))), 1):
        if any(alarm.series == 0 for alarm in detector.update(row)):
            return passed
    return None


@pytest.mark.parametrize(("after", "most"), [(0.4, 60), (0.5, 14), (0.8, 4)])
def test_the_delay_does_not_grow_with_the_quiet_time(after: float, most: int) -> None:
    for quiet in (200, 1000, 5000):
        delays = [delay(quiet, 0.3, after, seed) for seed in range(3)]
        assert all(found is not None and found <= most for found in delays)


def test_a_change_is_found_in_one_of_many_series() -> None:
    found = delay(300, 0.3, 0.6, seed=0, series=120)
    assert found is not None
    assert found <= 15


@pytest.mark.parametrize(("quiet", "series"), [(100, 1), (30, 20)])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_false_alarms_keep_their_bound_for_any_number_of_series(quiet: float, series: int, share: float) -> None:
    """Streams of so many series each, watched at once: limits depend on the product of estimates and series alone."""
    streams, steps = 100 // series, 1500
    random = np.random.default_rng(1)
    detector = GLR(quiet=quiet / streams)
    detector.watch(streams * series)
    rows = estimate(random.binomial(20, share, (steps, streams * series)))
    assert sum(len(detector.update(row)) for row in rows) <= streams * steps / quiet


def test_a_false_alarm_is_not_followed_by_another() -> None:
    """A run of high estimates raises an alarm. It must not be the standard for the estimates after it."""
    detector = GLR(quiet=100)
    detector.watch(1)
    steady, high = estimate([6]), estimate([12])
    assert not any(detector.update(steady) for _ in range(300))
    assert any(detector.update(high) for _ in range(10))
    assert not any(detector.update(steady) for _ in range(300))


def bernoulli_divergence(share: float, mean: float) -> float:
    return sum(p * math.log(p / q) for p, q in ((share, mean), (1 - share, 1 - mean)) if p > 0)


def excess(shares: NDArray[np.float64], k: int, quiet: float) -> float:
    """By how much the evidence exceeds the limit, in the window where it does so most, directly."""
    found, limit = -math.inf, limits(quiet)
    for window in WINDOWS[shares.size > WINDOWS].tolist():
        after, before, mean = shares[-window:].mean(), shares[:-window].mean(), shares.mean()
        if 0 < mean < 1:
            evidence = window * bernoulli_divergence(after, mean)
            evidence += (shares.size - window) * bernoulli_divergence(before, mean)
            found = max(found, k * evidence - limit[min(window, shares.size - window)])
    return found


@given(st.lists(st.integers(0, 20), min_size=2, max_size=60))
def test_it_alarms_exactly_where_the_evidence_exceeds_its_limit(dropped: list[int]) -> None:
    detector = GLR(quiet=1)
    detector.watch(1)
    for seen, number in enumerate(dropped, 1):
        beyond = excess(np.array(dropped[:seen]) / 20, 20, quiet=1)
        alarms = detector.update(estimate([number]))
        assert bool(alarms) == (beyond > 0) or abs(beyond) < 1e-9
        if alarms:
            [alarm] = alarms
            assert alarm.after == pytest.approx(np.mean(dropped[seen - alarm.back : seen]) / 20)
            assert alarm.before == pytest.approx(np.mean(dropped[: seen - alarm.back]) / 20)
            return


def test_changes_are_found_where_they_began() -> None:
    random = np.random.default_rng(0)
    shares = np.repeat([0.2, 0.7, 0.2], 100)
    detector = GLR()
    detector.watch(1)
    began = [
        segment + 1 - alarm.back
        for segment, share in enumerate(shares)
        for alarm in detector.update(estimate([random.binomial(20, share)]))
    ]
    assert began == pytest.approx([100, 200], abs=2)


def test_a_quiet_time_is_a_number_of_estimates() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        GLR(quiet=0)
