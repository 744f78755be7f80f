import numpy as np
import pytest

from thalweg_lab.experiments.om.series import WanderingStream, series, wander


@pytest.mark.parametrize("variation", [0.09, 0.26])
def test_values_wander_with_the_coefficient_of_variation_that_was_asked_for(variation: float) -> None:
    values = wander(500.0, variation, 200_000, np.random.default_rng(0))
    assert values.mean() == pytest.approx(500.0, rel=0.03)
    assert values.std() / values.mean() == pytest.approx(variation, rel=0.1)


def test_rounds_resemble_the_round_before() -> None:
    values = np.log(wander(1.0, 0.26, 100_000, np.random.default_rng(0)))
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(0.98, abs=0.005)


def test_a_series_is_repeatable_and_jumps_in_a_burst() -> None:
    streams = [WanderingStream("T", 500.0, 0.5, 0.09)]
    rounds = series(streams, 300, seed=1, burst=(100, 200))
    assert rounds == series(streams, 300, seed=1, burst=(100, 200))
    rates = np.log([float(each.observed.rates["T"]) for each in rounds])
    steps = np.abs(np.diff(rates))
    assert steps[100:199].mean() > 3 * steps[:99].mean()
    assert all(0.0 <= each.observed.selectivities["T"] <= 1.0 for each in rounds)
