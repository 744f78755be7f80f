import numpy as np
import pytest

from thalweg.drift.regimes import LONGEST, Regimes
from thalweg.ordering.types import Integers


def masks(drops: list[float], size: int, seed: int) -> Integers:
    bits = np.random.default_rng(seed).random((size, len(drops))) < drops
    found: Integers = bits @ (1 << np.arange(len(drops)))
    return found


DAY, NIGHT = [0.9, 0.3, 0.5, 0.1], [0.2, 0.6, 0.5, 0.4]


def test_a_regime_that_returns_is_recognised() -> None:
    found = 0
    for seed in range(100):
        regimes = Regimes(4)
        regimes.remember(masks(DAY, 1000, seed))
        regimes.remember(masks(NIGHT, 1000, seed + 1000))
        again = regimes.recognise(masks(DAY, 100, seed + 2000))
        found += again is not None and again.number == 0
        assert again is None or again.number == 0
    assert found >= 95


def test_another_is_not() -> None:
    regimes = Regimes(4)
    regimes.remember(masks(DAY, 1000, 0))
    assert regimes.recognise(masks(NIGHT, 100, 1)) is None
    assert regimes.recognise(masks(DAY, 100, 1), but=0) is None
    assert regimes.recognise(masks(DAY, 0, 1)) is None


def test_what_is_known_of_one_that_returned_is_replaced() -> None:
    regimes = Regimes(4)
    assert regimes.remember(masks(DAY, 1000, 0)) == 0
    first = regimes.recognise(masks(DAY, 100, 1))
    assert regimes.remember(masks(DAY, LONGEST + 5, 2), first) == 0
    second = regimes.recognise(masks(DAY, 100, 1))
    assert second is not None
    assert (second.number, second.masks.size) == (0, LONGEST)
    assert regimes.remember(masks(NIGHT, 1000, 3)) == 1


def test_the_oldest_is_forgotten() -> None:
    regimes = Regimes(4, room=1)
    regimes.remember(masks(DAY, 1000, 0))
    regimes.remember(masks(NIGHT, 1000, 1))
    assert regimes.recognise(masks(DAY, 100, 2)) is None
    nothing = Regimes(4, room=0)
    nothing.remember(masks(DAY, 1000, 0))
    assert nothing.recognise(masks(DAY, 100, 2)) is None
    with pytest.raises(ValueError, match="from 0 to 1,000, not -1"):
        Regimes(4, room=-1)
