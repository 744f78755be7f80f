import sys

import numpy as np
import pytest
from river.drift import ADWIN

from thalweg.drift import Adwin, estimate


def test_it_finds_what_rivers_own_finds() -> None:
    random = np.random.default_rng(0)
    drops = np.concatenate([np.tile(random.uniform(0.1, 0.9, 4), (150, 1)) for _ in range(5)])
    rows = estimate(random.binomial(20, drops))
    one = Adwin(delta=0.01, clock=8)
    one.watch(4)
    found = [(place, alarm.series) for place, row in enumerate(rows) for alarm in one.update(row)]
    expected = []
    for series in range(4):
        river = ADWIN(delta=0.01, clock=8)  # type: ignore[no-untyped-call]  # river ships no types
        for place, x in enumerate(rows[:, series]):
            river.update(float(x))  # type: ignore[no-untyped-call]
            if river.drift_detected:
                expected.append((place, series))
    assert sorted(found) == sorted(expected)
    assert len(found) > 4


def test_without_river_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(ModuleNotFoundError, match=r"install thalweg\[drift\]"):
        Adwin().watch(1)
