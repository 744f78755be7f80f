import numpy as np
import pytest

from thalweg.drift import detector
from thalweg.routing.benefit import CHECK_AFTER, RECENT, Benefit, StopReason

ORDERS = [(0, 1), (0, 1), (1, 0)]
LEAST = 0.03


def shown(benefit: Benefit, tuples: int, right: float, seed: int = 0) -> StopReason | None:
    """Tuples of two classes, of which a share is dropped by the filter that their class's order begins with."""
    random, found = np.random.default_rng(seed), None
    for _ in range(tuples // 20):
        classes = random.integers(1, 3, 20)
        masks = np.where(random.random(20) < right, classes, 3 - classes)
        benefit.measure(masks, classes, ORDERS, np.ones(2))
        found = found or benefit.stop_reason(LEAST, overhead=0.0)
    return found


def test_savings_are_those_of_the_class_order() -> None:
    benefit = Benefit(detector("bcs"))
    assert shown(benefit, 2000, right=1.0) is None
    assert len(benefit) == RECENT
    assert benefit.mean == pytest.approx(0.5, abs=0.05)  # every second tuple saves one filter
    assert benefit.one_order == pytest.approx(1.5, abs=0.05)
    assert benefit.costs.tolist() == [1.0] * RECENT
    assert benefit.error == pytest.approx(0.5 / np.sqrt(RECENT), rel=0.05)


def test_a_change_is_a_reason_to_stop_and_says_since_when() -> None:
    benefit = Benefit(detector("bcs"))
    assert shown(benefit, 1000, right=0.95) is None
    reason = shown(benefit, 400, right=0.5, seed=1)
    assert reason is not None
    assert "no longer separates" in reason.text
    assert reason.newest is not None
    assert 20 <= reason.newest <= 300


def test_a_change_that_leaves_enough_is_none() -> None:
    benefit = Benefit(detector("bcs"))
    assert shown(benefit, 1000, right=1.0) is None
    assert shown(benefit, 1000, right=0.8, seed=1) is None


def test_what_does_not_pay_is_a_reason_to_stop_without_any_change() -> None:
    benefit = Benefit(detector("none"))
    reason = shown(benefit, CHECK_AFTER, right=0.3)
    assert reason == StopReason("what it saves does not pay for the splitting of batches")
    benefit.restart()
    assert len(benefit) == 0
    assert benefit.one_order is None
    assert shown(benefit, CHECK_AFTER, right=1.0) is None
    benefit.measure(np.ones(CHECK_AFTER, np.int64), np.ones(CHECK_AFTER, np.int64), ORDERS, np.ones(2))
    assert benefit.stop_reason(LEAST, overhead=2.0) is not None


def test_a_class_of_few_tuples_saves_what_its_own_tuples_do() -> None:
    """Beside a class that needs no order of its own, and class 0, whose tuples are most."""
    benefit = Benefit(detector("none"))
    masks, classes = np.array([0b10] * 20 + [0b01] * 180), np.array([1] * 20 + [2] * 80 + [0] * 100)
    benefit.measure(masks, classes, [(0, 1), (1, 0), (0, 1)], np.ones(2))
    nothing, rare, frequent = benefit.means(3)
    assert nothing == 0
    assert rare > 0.7
    assert frequent < 0.03
    assert benefit.means(4)[3] == pytest.approx(0.2)  # of all tuples that have a class
