import math

import numpy as np
import pytest

from thalweg.ordering.stopwatch import Stopwatch


def watched(calls: list[int], a_call: float, a_row: float) -> Stopwatch:
    watch = Stopwatch()
    for rows in [1, 1, 1, *calls]:
        watch.note(rows, a_call + a_row * rows)
    return watch


@pytest.mark.parametrize("calls", [[5000], [20] * 30, [10_000, 300, 20, 700]])
@pytest.mark.parametrize("a_call", [0.0, 3e-5, 1e-3])
def test_number_of_rows_does_not_matter(calls: list[int], a_call: float) -> None:
    assert watched(calls, a_call, 2e-8).per_row == pytest.approx(2e-8, rel=0.05, abs=a_call * 0.01)


def test_nothing_is_known_at_first_and_empty_calls_say_nothing() -> None:
    watch = Stopwatch()
    watch.note(0, 1.0)
    assert math.isnan(watch.per_row)
    watch.note(1, 1e-3)
    assert math.isnan(watch.per_row)


def test_without_single_calls_time_over_rows_is_the_best_guess() -> None:
    watch = Stopwatch()
    watch.note(100, 1.0)
    assert watch.per_row == pytest.approx(0.01)


def test_a_lost_processor_is_not_believed_and_a_lasting_change_is_followed() -> None:
    watch = watched([1000] * 20, 1e-5, 1e-6)
    watch.note(1000, 1.0)
    assert watch.per_row < 1.3e-6
    for _ in range(40):
        watch.note(1000, 1e-5 + 1e-2)
    assert watch.per_row == pytest.approx(1e-5, rel=0.1)


def test_noise_of_small_calls_averages_out() -> None:
    random = np.random.default_rng(0)
    watch = watched([], 3e-5, 2e-8)
    for _ in range(50):
        watch.note(500, 3e-5 + 500 * 2e-8 + random.normal(0, 2e-6))
    assert watch.per_row == pytest.approx(2e-8, rel=0.2)
