import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.charts import DecayedMean, HeldEstimate, RoundStatistics
from thalweg.charts.round_estimates import RoundEstimates

values = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20)


@given(values, st.integers(1, 8), st.floats(0.0, 3.0))
def test_a_decayed_mean_is_the_formula_of_section_4_3(observed: list[float], rounds: int, decay: float) -> None:
    mean = DecayedMean(rounds, decay)
    for value in observed:
        mean.observe(value)
    kept = np.array(observed[::-1][:rounds])
    weights = np.exp(-decay * np.arange(len(kept)))
    assert mean.estimate == pytest.approx(float((kept * weights).sum() / weights.sum()))


@given(values)
def test_a_held_estimate_is_always_near_the_last_observation_or_new(observed: list[float]) -> None:
    held = HeldEstimate(threshold=0.5)
    for value in observed:
        before = held.renewals
        renewed = held.observe(value)
        assert held.renewals == before + renewed
        assert renewed or abs(value - held.estimate) <= 0.5 * held.estimate


def test_what_is_not_observed_keeps_its_estimate() -> None:
    estimates = RoundEstimates()
    assert estimates.expected is None
    assert estimates.observe(RoundStatistics({"A": 1.0, "B": 8.0}, {"A": 0.5}, {"A = B": 0.1}, {"C": 100.0}))
    assert not estimates.observe(RoundStatistics({"A": 1.0, "B": 8.0}))
    expected = estimates.expected
    assert expected == RoundStatistics({"A": 1.0, "B": 8.0}, {"A": 0.5}, {"A = B": 0.1}, {"C": 100.0})
    seen = estimates.completed(RoundStatistics({"A": 3.0, "B": 3.0}))
    assert (seen.rates["A"], seen.selectivities["A"], seen.table_sizes["C"]) == (3.0, 0.5, 100.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rounds": 0}, "at least 1 round, not 0"), ({"decay": -1.0}, "the decay is a number, 0 or more")],
)
def test_bad_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecayedMean(**options)  # type: ignore[arg-type]


def test_bad_values_are_refused() -> None:
    with pytest.raises(ValueError, match="a round's value is a finite number, not nan"):
        DecayedMean().observe(math.nan)
    with pytest.raises(ValueError, match="nothing was observed yet"):
        _ = DecayedMean().estimate
    with pytest.raises(ValueError, match="the threshold is a share of the estimate"):
        HeldEstimate(threshold=math.nan)
