"""What every detector must do, run over all of `DETECTORS`."""

import numpy as np
import pytest
from numpy.typing import NDArray

from thalweg.drift import BCS, DETECTORS, Adwin, Detector, Martingale, Monitor, detector, estimate
from thalweg.kernels import compile_kernels
from thalweg_lab.workload import Workload

every_detector = pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.name)
every_seeing = pytest.mark.parametrize(
    "kind", [kind for kind in DETECTORS if not kind.is_blind], ids=lambda kind: kind.name
)


def feed(one: Detector, rows: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The segments in which series changed, and which."""
    return [(place, alarm.series) for place, row in enumerate(rows) for alarm in one.update(row)]


@every_seeing
def test_a_change_is_found_in_the_series_that_has_it(kind: type[Detector]) -> None:
    random = np.random.default_rng(0)
    drops = np.tile([0.3, 0.5, 0.2], (300, 1))
    drops[150:, 2] = 0.8
    one = kind()
    one.watch(3)
    shown = enumerate(estimate(random.binomial(20, drops)))
    place, alarms = next((place, alarms) for place, row in shown if (alarms := one.update(row)))
    assert [alarm.series for alarm in alarms] == [2]
    assert 150 <= place < 200
    # The martingale test does not say when it was: the paper takes a fixed number of estimates.
    assert place + 1 - alarms[0].back == pytest.approx(150, abs=40 if kind is Martingale else 5)
    assert alarms[0].before == pytest.approx(0.2, abs=0.1)
    assert alarms[0].after == pytest.approx(0.8, abs=0.15)


@every_detector
def test_a_steady_stream_is_left_alone(kind: type[Detector]) -> None:
    random = np.random.default_rng(1)
    one = kind()
    one.watch(10)
    assert not feed(one, estimate(random.binomial(20, np.tile(random.random(10), (500, 1)))))


# Shares of 100 steady streams of 4000 profile tuples in which anything at all was found, at most.
@pytest.mark.parametrize(("kind", "rate"), [(BCS, 0.02), (Martingale, 0.02), (Adwin, 0.02)])
def test_false_alarms_are_rare(kind: type[Detector], rate: float) -> None:
    compile_kernels()
    false = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        drops = random.uniform(0.05, 0.95, 4)
        masks = Workload(tuple(drops.tolist())).masks(4000, random)
        false += bool(Monitor(np.argsort(-drops).tolist(), kind()).update(masks[masks > 0]))
    assert false <= 100 * rate


@every_detector
def test_constant_estimates_are_no_change(kind: type[Detector]) -> None:
    """Drop probabilities of exactly 0 and 1, and estimates without variance."""
    one = kind()
    one.watch(3)
    assert not feed(one, np.tile(estimate([0, 20, 7]), (300, 1)))


@every_seeing
def test_what_was_never_dropped_may_change(kind: type[Detector]) -> None:
    one = kind()
    one.watch(1)
    random = np.random.default_rng(2)
    rows = np.vstack([np.tile(estimate([0]), (100, 1)), estimate(random.binomial(20, 0.6, (100, 1)))])
    assert 100 <= feed(one, rows)[0][0] < 150


@every_detector
def test_missing_estimates_are_waited_for(kind: type[Detector]) -> None:
    """A series of which some segments say nothing is as if these segments were not there."""
    random = np.random.default_rng(3)
    drops = np.where(np.arange(400) < 200, 0.2, 0.7)
    rows = np.full((800, 2), np.nan)
    rows[::2, 0] = estimate(random.binomial(20, drops))
    one, dense = kind(), kind()
    one.watch(2)
    dense.watch(2)
    gaps = np.column_stack([rows[::2, 0], np.full(400, np.nan)])
    assert feed(one, rows) == [(2 * place, series) for place, series in feed(dense, gaps)]
    assert not one.update([np.nan, np.nan])


@every_detector
def test_watching_again_forgets(kind: type[Detector]) -> None:
    random = np.random.default_rng(4)
    one = kind()
    one.watch(1)
    feed(one, estimate(random.binomial(20, 0.1, (100, 1))))
    one.watch(1)
    assert not feed(one, estimate(random.binomial(20, 0.9, (100, 1))))


@every_detector
def test_nothing_to_watch_is_no_trouble(kind: type[Detector]) -> None:
    one = kind()
    one.watch(0)
    assert one.update([]) == ()


@every_detector
def test_the_wrong_number_of_estimates_is_refused(kind: type[Detector]) -> None:
    one = kind()
    one.watch(2)
    with pytest.raises(ValueError, match="watches 2 series"):
        one.update([0.5])


@every_detector
def test_a_segment_has_a_tuple(kind: type[Detector]) -> None:
    with pytest.raises(ValueError, match="at least 1 profile tuple"):
        kind(k=0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bcs", {"h": 0}, "threshold above 0"),
        ("bcs", {"nu": 0}, "nu is between 1"),
        ("bcs", {"m": 1}, "at least 2 estimates"),
        ("bcs", {"zeta": 0}, "zeta is between 0 and 1"),
        ("bcs", {"confirm": 1}, "confirm from 0 to below 1"),
        ("martingale", {"h": 1}, "above 1"),
        ("martingale", {"nu": 0}, "nu and m are between 1"),
        ("martingale", {"epsilon": 1}, "epsilon is between 0 and 1"),
        ("adwin", {"delta": 0}, "delta is between 0 and 1"),
        ("adwin", {"clock": 0}, "at least 1 estimate"),
    ],
)
def test_bad_options_say_what_is_allowed(name: str, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        detector(name, **options)


def test_detectors_are_found_by_name() -> None:
    assert [type(detector(kind.name)) for kind in DETECTORS] == list(DETECTORS)
    with pytest.raises(ValueError, match="no detector 'bsc'; did you mean 'bcs'"):
        detector("bsc")


@every_detector
@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.5, float("inf")])
def test_estimates_that_are_no_probabilities_are_refused(kind: type[Detector], wrong: float) -> None:
    one = kind()
    one.watch(2)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        one.update([0.5, wrong])
