import numpy as np
import pytest

from thalweg.drift import BCS, GLR
from thalweg.kernels import ORDERING, compile_kernels
from thalweg.ordering import greedy_order
from thalweg_lab.benches.adaptivity import SCENARIOS
from thalweg_lab.benches.adaptivity.classes import DRAWS, evaluations, masks_of
from thalweg_lab.benches.adaptivity.detectors import BASE, OnEstimates, contenders, delay, segment
from thalweg_lab.benches.adaptivity.orders import QUIET, RATIOS, hidden_change, ratio
from thalweg_lab.benches.adaptivity.streams import FILTERS, KNOWN, returning, run_stream, where_pipeline, where_policy


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_kernels(ORDERING)


def test_figures_are_counts_and_repeat_exactly() -> None:
    assert set(RATIOS) < set(SCENARIOS)
    first, second = (ratio("stationary", seeds=1) for _ in range(2))
    assert first == second
    assert isinstance(first[0].value, float)
    assert 1 < first[0].value < 1.05


def test_the_clairvoyant_has_an_order_for_each_stretch() -> None:
    stretches = returning(seed=0)[:2]
    assert len({stretch.order for stretch in stretches}) == 2
    regret = run_stream(where_pipeline(where_policy(0)), stretches)
    assert regret.evaluations > regret.clairvoyant


def test_a_hidden_change_shows_in_no_rate_of_the_order_that_runs() -> None:
    masks, dropper = hidden_change(seed=0)
    order = greedy_order(masks[:KNOWN], np.ones(FILTERS))
    assert order[-1] == dropper
    others = sum(1 << number for number in order[:-1])
    before, after = (part[(part & others) == 0] for part in (masks[:QUIET], masks[QUIET:]))
    assert abs((before >> dropper & 1).mean() - (after >> dropper & 1).mean()) < 0.01
    assert (masks[QUIET:] >> dropper & 1).mean() > (masks[:QUIET] >> dropper & 1).mean() + 0.2


def test_the_detector_for_counts_is_faster_after_a_quiet_time() -> None:
    delays = []
    for detector in (GLR(), BCS()):
        watcher, random = OnEstimates(detector, series=1), np.random.default_rng(1)
        assert not sum(watcher.alarms(segment(random, np.array([BASE]))) for _ in range(1000))
        delays.append(delay(watcher, 0.2, seed=1))
    assert delays[0] < 20 < delays[1]


def test_every_detector_sees_the_same_bits() -> None:
    for name, make in contenders().items():
        watcher, random = make(2), np.random.default_rng(0)
        for _ in range(100):
            watcher.alarms(segment(random, np.array([0.3, 0.5])))
        assert any(watcher.alarms(segment(random, np.array([0.3, 0.99]))) for _ in range(100)), name


def test_an_order_for_each_class_saves() -> None:
    random = np.random.default_rng(0)
    for draw in DRAWS.values():
        second, columns = draw(random, 0, 2000)
        masks = masks_of(second, random)
        assert all(len(column) == 2000 for column in columns.values())
        assert evaluations(masks[second], first=1) < evaluations(masks[second], first=0)
