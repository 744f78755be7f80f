import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thalweg.drift import GLR, estimate
from thalweg.drift.glr import WINDOWS


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


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_false_alarms_stay_far_below_their_bound(share: float) -> None:
    """The bound is one in a thousand estimates of each series; of 20 series and 2000 estimates, two."""
    random = np.random.default_rng(1)
    detector = GLR()
    detector.watch(20)
    rows = estimate(random.binomial(20, share, (2000, 20)))
    assert sum(len(detector.update(row)) for row in rows) == 0


def bernoulli_divergence(share: float, mean: float) -> float:
    return sum(p * math.log(p / q) for p, q in ((share, mean), (1 - share, 1 - mean)) if p > 0)


def strongest(shares: NDArray[np.float64], k: int) -> float:
    """The greatest evidence over all windows, directly."""
    found = 0.0
    for window in WINDOWS[shares.size > WINDOWS].tolist():
        after, before, mean = shares[-window:].mean(), shares[:-window].mean(), shares.mean()
        if 0 < mean < 1:
            evidence = window * bernoulli_divergence(after, mean)
            evidence += (shares.size - window) * bernoulli_divergence(before, mean)
            found = max(found, k * evidence)
    return found


@given(st.lists(st.integers(0, 20), min_size=2, max_size=60))
def test_it_alarms_exactly_where_the_evidence_exceeds_its_limit(dropped: list[int]) -> None:
    detector = GLR(quiet=1)
    detector.watch(1)
    limit = np.log(2.0 * WINDOWS.size)
    for seen, number in enumerate(dropped, 1):
        evidence = strongest(np.array(dropped[:seen]) / 20, 20)
        alarms = detector.update(estimate([number]))
        assert bool(alarms) == (evidence > limit) or abs(evidence - limit) < 1e-9
        if alarms:
            [alarm] = alarms
            assert alarm.after == pytest.approx(np.mean(dropped[seen - alarm.back : seen]) / 20)
            assert alarm.before == pytest.approx(np.mean(dropped[: seen - alarm.back]) / 20)
            return


def test_after_an_alarm_it_goes_on_with_the_estimates_since_the_change() -> None:
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
    with pytest.raises(ValueError, match="1 or more"):
        GLR(quiet=0)
