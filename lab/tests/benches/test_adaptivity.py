import numpy as np
import pytest

from thalweg.drift import BCS, GLR
from thalweg.kernels import ORDERING, compile_kernels
from thalweg.ordering import greedy_order
from thalweg_lab.benches.adaptivity import SCENARIOS, detectors
from thalweg_lab.benches.adaptivity.classes import DRAWS, evaluations, masks_of
from thalweg_lab.benches.adaptivity.detectors import BASE, OnEstimates, contenders, delays, segment
from thalweg_lab.benches.adaptivity.orders import QUIET, RATIOS, hidden_change, ratio
from thalweg_lab.benches.adaptivity.streams import FILTERS, KNOWN, returning, run_stream, where_pipeline, where_policy

ONE = np.zeros(1, np.int64)


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
    found = []
    for detector in (GLR(), BCS()):
        watcher, random = OnEstimates(detector, series=1), np.random.default_rng(1)
        assert not sum(watcher.alarms(segment(random, np.array([BASE])), ONE).size for _ in range(1000))
        found += delays(watcher, 0.2, streams=1)
    assert found[0] < 20
    assert found[0] < found[1]


def test_every_detector_sees_the_same_bits() -> None:
    for name, make in contenders().items():
        for apart in (False, True):
            watcher, random, both = make(2, apart=apart), np.random.default_rng(0), np.arange(2)
            for _ in range(100):
                watcher.alarms(segment(random, np.array([0.3, 0.5])), both)
            changed = [watcher.alarms(segment(random, np.array([0.3, 0.99])), both).tolist() for _ in range(100)]
            assert [1] in changed, name


def test_streams_that_are_watched_at_once_raise_the_alarms_of_each_alone() -> None:
    bits = np.random.default_rng(0).random((600, 3, 20)) < 0.3
    bits[300:] |= np.random.default_rng(1).random((300, 3, 20)) < 0.1
    make = contenders()["glr 100"]
    together = make(3, apart=True)
    alone = [make(1, apart=True) for _ in range(3)]
    for segment_bits in bits:
        found = together.alarms(segment_bits, np.arange(3)).tolist()
        assert sorted(found) == [one for one in range(3) if alone[one].alarms(segment_bits[[one]], ONE).size]
    assert together.falls == sum(watcher.falls for watcher in alone)


def test_all_rows_have_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detectors, "QUIET", (100,))
    monkeypatch.setattr(detectors, "LONGEST", 100)
    results = detectors.detectors(streams=2, steady={1: 50})
    assert len(results) == len(detectors.POINTS) + 3
    assert all("ahead" in result.note for result in results[: len(detectors.POINTS)])


def test_an_order_for_each_class_saves() -> None:
    random = np.random.default_rng(0)
    for draw in DRAWS.values():
        second, columns = draw(random, 0, 2000)
        masks = masks_of(second, random)
        assert all(len(column) == 2000 for column in columns.values())
        assert evaluations(masks[second], first=1) < evaluations(masks[second], first=0)
