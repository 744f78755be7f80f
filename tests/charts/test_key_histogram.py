import numpy as np
import pytest

from thalweg.charts import KeyHistogram


@pytest.mark.parametrize(("keys", "tolerance"), [(10, 0.02), (1_000, 0.1), (100_000, 0.6)])
def test_the_selectivity_of_uniform_keys_is_near_one_over_their_number(keys: int, tolerance: float) -> None:
    random = np.random.default_rng(0)
    left, right = (random.integers(keys, size=100_000) for _ in range(2))
    exact = float((np.bincount(left, minlength=keys) * np.bincount(right, minlength=keys)).sum()) / 1e10
    assert KeyHistogram.of(left).selectivity_with(KeyHistogram.of(right)) == pytest.approx(
        exact, rel=tolerance, abs=1e-5
    )


def test_histograms_of_parts_add_up() -> None:
    codes = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, size=1_000)
    whole = KeyHistogram.of(codes)
    assert (KeyHistogram.of(codes[:300]) + KeyHistogram.of(codes[300:])).counts.tolist() == whole.counts.tolist()
    assert whole.selectivity_with(KeyHistogram.of(codes[:0])) == 0.0
