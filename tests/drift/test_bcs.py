"""BCS against its own definition, written down once more with SciPy."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from thalweg.drift import BCS, Watched, estimate
from thalweg.drift.bcs import FEW, RECENT
from thalweg.kernels import compile_kernels
from thalweg.ordering import AGreedy
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.types import Booleans, Integers


def by_definition(estimates: NDArray[np.float64], h: float, m: int, zeta: float) -> int | None:
    """The first estimate at which the sum exceeds h (bcs-change-detection-2012, section III)."""
    alpha_0, beta_0 = stats.beta.fit(estimates[:m], floc=0, fscale=1)[:2]
    slope = stats.norm.ppf((1 + zeta) / 2)
    information = -_hessian(alpha_0, beta_0) * m
    errors = np.sqrt(np.diag(np.linalg.inv(information))) / (alpha_0, beta_0)
    total = 0.0
    for j in range(m, len(estimates)):
        mean, variance = estimates[: j + 1].mean(), estimates[: j + 1].var()
        both = mean * (1 - mean) / variance - 1
        alpha, other = both * mean, both * (1 - mean)
        if (np.abs(np.log([alpha / alpha_0, other / beta_0])) > slope * errors).any():
            ratio = stats.beta.logpdf(estimates[j], alpha, other) - stats.beta.logpdf(estimates[j], alpha_0, beta_0)
            total = max(0.0, total + ratio)
        if total > h:
            return j
    return None


def _hessian(alpha: float, other: float) -> NDArray[np.float64]:
    from scipy.special import polygamma

    common = polygamma(1, alpha + other)
    return np.array([[common - polygamma(1, alpha), common], [common, common - polygamma(1, other)]])


@pytest.mark.parametrize("zeta", [0.05, 0.95])
@pytest.mark.parametrize(("before", "after"), [(0.3, 0.5), (0.7, 0.4), (0.5, 0.5), (0.2, 0.25)])
def test_it_does_what_its_definition_says(before: float, after: float, zeta: float) -> None:
    random = np.random.default_rng(7)
    drops = np.where(np.arange(200) < 60, before, after)
    series = estimate(random.binomial(20, drops))
    one = BCS(h=10, zeta=zeta, confirm=0)
    one.watch(1)
    found = next((place for place, x in enumerate(series) if one.update([x])), None)
    assert found == by_definition(series, h=10, m=20, zeta=zeta)


def test_without_confirmation_a_change_began_nu_estimates_ago() -> None:
    random = np.random.default_rng(0)
    one = BCS(nu=7, confirm=0)
    one.watch(1)
    rows = estimate(random.binomial(20, np.where(np.arange(200) < 100, 0.2, 0.6)))
    [alarm] = next(alarms for x in rows if (alarms := one.update([x])))
    assert alarm.back == 7


# Profile tuples from a change of one of two probabilities to its detection: the median of 40 seeds at most.
@pytest.mark.parametrize(("step", "delay", "missed"), [(0.1, 2000, 0.2), (0.2, 700, 0.0), (0.4, 200, 0.0)])
def test_larger_steps_are_found_sooner(step: float, delay: int, missed: float) -> None:
    compile_kernels()
    delays = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        low = random.uniform(0.05, 0.95 - step)
        drops = np.full((320, 2), 0.5)
        drops[:, 0] = np.where(np.arange(320) < 100, low, low + step)
        one = BCS()
        one.watch(2)
        rows = estimate(random.binomial(20, drops))
        found = [20 * (place - 99) for place, row in enumerate(rows) if one.update(row)]
        assert not found or found[0] > 0
        delays.append(found[0] if found else np.inf)
    assert np.median(delays) <= delay
    assert np.isinf(delays).mean() <= missed


def test_confirmation_stops_what_creeps() -> None:
    """The paper's sum exceeds h sooner or later wherever the training set was unlucky."""
    compile_kernels()
    found = {0.0: 0, 0.002: 0}
    for confirm in found:
        random = np.random.default_rng(1)
        one = BCS(confirm=confirm)
        one.watch(50)
        drops = random.uniform(0.1, 0.9, 50)
        found[confirm] = sum(len(one.update(estimate(random.binomial(20, drops)))) for _ in range(1000))
    assert found[0.0] > 20
    assert found[0.002] == 0


@pytest.mark.parametrize("quiet", [300, 3000])
def test_the_delay_does_not_depend_on_how_long_nothing_happened(quiet: int) -> None:
    """The mean of all estimates moves more slowly the more there are: the delay was 510 after 5000 of them."""
    compile_kernels()
    delays = []
    for seed in range(9):
        random, one = np.random.default_rng(seed), BCS()
        one.watch(1)
        for row in estimate(random.binomial(20, 0.3, (quiet, 1))):
            assert not one.update(row)
        rows = estimate(random.binomial(20, 0.5, (200, 1)))
        delays.append(next(place for place, row in enumerate(rows, 1) if one.update(row)))
    assert np.median(delays) <= 60


def test_moments_are_of_the_newest_estimates_and_in_the_paper_of_all() -> None:
    rows = estimate(np.random.default_rng(0).binomial(20, 0.3, 2 * RECENT + 7))
    for confirm, known in ((0.002, rows[-RECENT:]), (0.0, rows)):
        one = BCS(h=1e9, confirm=confirm)
        one.watch(1)
        for x in rows.tolist():
            one.update([x])
        [record] = one._series.records  # noqa: SLF001 - nothing else tells them
        assert record["mean"] == pytest.approx(known.mean())
        assert record["squares"] == pytest.approx(((known - known.mean()) ** 2).sum())


def test_training_is_shorter_where_few_tuples_are_profiled() -> None:
    assert (BCS().training, BCS(m=7).training, BCS.for_few_tuples().training) == (20, 7, FEW)


def test_a_hidden_change_is_found_under_the_profiling_budget() -> None:
    """Filter 2 begins to drop what filter 0 drops, which no count of ordinary processing shows."""
    random, seconds = np.random.default_rng(0), 0.0

    def filter_of(number: int) -> Filter:
        def keeps(masks: Integers) -> Booleans:
            nonlocal seconds
            seconds += 3e-6 * masks.size
            kept: Booleans = masks >> number & 1 == 0
            return kept

        return keeps

    policy = Watched(AGreedy(3, prior=1.0), BCS.for_few_tuples())
    pipeline = Pipeline(policy, [filter_of(number) for number in range(3)], clock=lambda: seconds)
    for batch in range(24):
        masks = (random.random((10_000, 3)) < (0.6, 0.3, 0.05)) @ [1, 2, 4]
        if batch >= 12:
            masks[masks & 3 > 0] |= 4
        pipeline.keep(masks)
    assert policy.detected
    assert policy.order[0] == 2
