"""BCS against its own definition, written down once more with SciPy."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from thalweg.drift import BCS, estimate
from thalweg.kernels import compile_kernels


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
