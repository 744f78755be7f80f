import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from thalweg.drift import beta

positive = st.floats(1e-3, 1e4)


@given(x=positive)
def test_gamma_functions_are_scipys(x: float) -> None:
    assert beta.digamma(x) == pytest.approx(special.digamma(x), rel=1e-9, abs=1e-9)
    assert beta.trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-9)


@given(alpha=positive, other=positive)
def test_the_beta_function_is_scipys(alpha: float, other: float) -> None:
    scale = math.lgamma(alpha + other)
    assert beta.log_beta(alpha, other) == pytest.approx(special.betaln(alpha, other), rel=1e-7, abs=1e-8 * (1 + scale))


@pytest.mark.parametrize(("alpha", "other"), [(2.0, 5.0), (0.6, 0.8), (0.5, 18.0), (40.0, 40.0), (9.0, 1.0)])
@pytest.mark.parametrize("size", [20, 200])
def test_fits_are_scipys(alpha: float, other: float, size: int) -> None:
    data = np.random.default_rng(size).beta(alpha, other, size).clip(1e-6, 1 - 1e-6)
    fitted = beta.fit(np.log(data).mean(), np.log1p(-data).mean(), data.mean(), data.var(), size)
    expected = stats.beta.fit(data, floc=0, fscale=1)[:2]
    assert fitted[:2] == pytest.approx(expected, rel=1e-3)


def test_errors_of_a_fit_are_those_of_many_fits() -> None:
    """The standard errors of the logarithms, against how fits to other samples scatter."""
    random = np.random.default_rng(0)
    fits = []
    for _ in range(400):
        data = random.beta(6, 14, 100)
        fits.append(beta.fit(np.log(data).mean(), np.log1p(-data).mean(), data.mean(), data.var(), 100))
    scatter = np.log(np.array(fits)[:, :2]).std(axis=0)
    assert np.array(fits)[:, 2:].mean(axis=0) == pytest.approx(scatter, rel=0.15)
