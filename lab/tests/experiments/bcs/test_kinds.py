import numpy as np
import pytest

from thalweg_lab.experiments.bcs.kinds import (
    ABRUPT,
    BCS,
    COLOURS,
    FORGETFUL,
    GRADUAL,
    KINDS,
    NONE,
    RECURRING,
    judge,
    measure,
    recovered,
    stream,
)
from thalweg_lab.experiments.experiment import Row

TINY = {"period": 100_000, "stretches": 4, "seed": 0}


def rates(kind: str) -> list[float]:
    """How often the first filter drops in each stretch."""
    masks = np.concatenate(list(stream(TINY | {"kind": kind}, np.random.default_rng(0))))
    return [float((part & 1).mean()) for part in np.split(masks, 4)]


def test_streams_change_as_their_kind_says() -> None:
    assert np.ptp(rates(NONE)) < 0.02
    assert np.abs(np.diff(rates(ABRUPT))).min() > 0.08
    first, *_, fourth = rates(RECURRING)
    assert first == pytest.approx(fourth, abs=0.02)  # three regimes, so the fourth stretch is the first again
    assert len(rates(GRADUAL)) == 4


@pytest.mark.parametrize("kind", [NONE, RECURRING])
def test_a_tiny_stream(kind: str) -> None:
    rows = measure(TINY | {"kind": kind})
    assert [row["policy"] for row in rows] == list(COLOURS)
    assert all(row["excess"] > -5 for row in rows)
    assert all((row["recovery"] > 0) == (kind != NONE) for row in rows if row["policy"] != BCS)


def table(of: dict[str, float], base: float) -> list[Row]:
    return [
        {
            "kind": kind,
            "seed": 0,
            "policy": name,
            "evaluations": 100 * of.get(name, base),
            "excess": of.get(name, base),
            "recovery": of.get(name, base),
            "early": of.get(name, base),
        }
        for kind in KINDS
        for name in COLOURS
    ]


def test_what_helps_holds() -> None:
    assert all(result.holds for result in judge(table({BCS: 1.0, FORGETFUL: 1.5}, base=3.0)))


def test_what_hurts_does_not() -> None:
    assert not any(result.holds for result in judge(table({BCS: 4.0, FORGETFUL: 3.0}, base=3.0)))


def test_what_never_recovers_counts_in_full() -> None:
    assert recovered(np.full(10, 1.5)) == 10
    assert recovered(np.full(10, 1.0)) == 0
    assert recovered(np.array([1.5, 1.0, 1.5, 1.5, 1.0, 1.0])) == 4
