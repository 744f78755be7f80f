"""Detectors side by side: how soon and how surely each finds a change of a probability, and its false alarms.

All see the same bits, whether a filter drops a profile tuple: Thalweg's detectors as estimates of 20 bits each, river's
own as bits. The new detector has a setting for the least time from one false alarm to the next, and is compared with
two: its default, and a hundred times that. It leads if each other detector that is faster raises more false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

import numpy as np

from thalweg.drift import BCS, GLR, Adwin, Detector, Martingale, estimate
from thalweg.drift.detector import K
from thalweg.ordering.types import Booleans, Floats
from thalweg_lab.results import Result, claim

BASE = 0.3  # the probability before a change
POINTS = (0.02, 0.05, 0.1, 0.2)  # by which it rises
QUIET = (200, 1000, 5000, 20_000)  # estimates before the change
LONGEST = 2000  # estimates after it
STREAMS = 9
MILLION = 1_000_000
STEADY = {1: 200_000, 120: 2500}  # estimates of each of so many series, among which false alarms are counted
LEAST, MOST = 0.02, 0.6  # probabilities of the series, drawn evenly between
NEW = ("glr", "glr, strict")


class Watcher(Protocol):
    """A detector of some series, as this benchmark runs it."""

    def alarms(self, bits: Booleans) -> int:
        """How many series have changed, given the bits of the next segment: a row for each series."""
        ...


class OnEstimates:
    """A detector of Thalweg, which sees an estimate of each segment."""

    def __init__(self, detector: Detector, series: int) -> None:
        self._detector = detector
        detector.watch(series)

    def alarms(self, bits: Booleans) -> int:
        """How many series have changed."""
        return len(self._detector.update(estimate(bits.sum(axis=1))))


class OnBits:
    """A detector of river for each series, which sees every bit."""

    def __init__(self, make: Callable[[], Any], series: int) -> None:
        self._detectors = [make() for _ in range(series)]

    def alarms(self, bits: Booleans) -> int:
        """How many series have changed; a detector that found a change begins anew by itself."""
        found = 0
        for detector, own in zip(self._detectors, bits.tolist(), strict=True):
            has_changed = False
            for bit in own:
                detector.update(bit)
                has_changed |= detector.drift_detected
            found += has_changed
        return found


@dataclass
class Found:
    """How a detector did in all streams of a row."""

    delays: list[int] = field(default_factory=list)  # estimates from a change to its alarm, more than `LONGEST` if none
    false: int = 0  # alarms before the change

    @property
    def delay(self) -> float:
        """The median delay."""
        return median(self.delays)

    @property
    def recall(self) -> float:
        """The share of the changes that were found."""
        return sum(delay <= LONGEST for delay in self.delays) / len(self.delays)

    @property
    def precision(self) -> float:
        """The share of the alarms that were about a change; 1 if there were none."""
        right = sum(delay <= LONGEST for delay in self.delays)
        return right / (right + self.false) if right + self.false else 1.0


def contenders() -> dict[str, Callable[[int], Watcher]]:
    """All detectors, by name: each is made for a number of series."""
    from river import drift
    from river.drift import binary

    ours: dict[str, Callable[[], Detector]] = {
        "glr": GLR,
        "glr, strict": lambda: GLR(quiet=100 * GLR().quiet),
        "bcs": BCS,
        "martingale": Martingale,
        "adwin": Adwin,
    }
    theirs: dict[str, Callable[[], Any]] = {
        "river ADWIN": drift.ADWIN,
        "river PageHinkley": drift.PageHinkley,
        "river DDM": binary.DDM,
        "river EDDM": binary.EDDM,
        "river HDDM-A": binary.HDDMA,
        "river HDDM-W": binary.HDDMW,
    }
    return {
        **{name: lambda series, make=make: OnEstimates(make(), series) for name, make in ours.items()},  # type: ignore[misc]
        **{name: lambda series, make=make: OnBits(make, series) for name, make in theirs.items()},  # type: ignore[misc]
    }


def detectors(streams: int = STREAMS, steady: Mapping[int, int] = STEADY) -> list[Result]:
    """Delay, recall and precision of each detector for each change, and false alarms in a million estimates."""
    makers = contenders()
    alarms = {
        series: {name: false_alarms(make, series, steps) for name, make in makers.items()}
        for series, steps in steady.items()
    }
    found = {name: changes(make, streams) for name, make in makers.items()}
    results = []
    for quiet in QUIET:
        for points in POINTS:
            row = {name: each[quiet, points] for name, each in found.items()}
            ahead = [name for name in row if name not in NEW and not leads(row, alarms[1], name)]
            note = "; ".join(
                f"{name} {own.delay:g}, recall {own.recall:.2f}, precision {own.precision:.2f}"
                for name, own in row.items()
            )
            note += f"; ahead: {', '.join(ahead)}" if ahead else ""
            measure = f"{BASE:g} to {BASE + points:g} after {quiet:,}: median delay"
            target = "the least at no more false alarms"
            results.append(claim("detectors", measure, row[NEW[0]].delay, target, holds=not ahead, note=note))
    for series, rates in alarms.items():
        note = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        holds = rates[NEW[1]] <= min(rates.values())
        measure = f"false alarms in a million estimates, {series} series"
        results.append(claim("detectors", measure, rates[NEW[0]], "strict: the fewest", holds=holds, note=note))
    return results


def leads(row: Mapping[str, Found], alarms: Mapping[str, float], other: str) -> bool:
    """Whether the new detector, in a setting with no more false alarms than another detector, is as fast as that.

    >>> row = {"glr": Found([9]), "glr, strict": Found([15]), "slow": Found([20]), "hasty": Found([5])}
    >>> alarms = {"glr": 30.0, "glr, strict": 0.0, "slow": 2.0, "hasty": 900.0}
    >>> leads(row, alarms, "slow"), leads(row, alarms, "hasty")
    (True, False)
    """
    fair = [row[name].delay for name in NEW if alarms[name] <= alarms[other]]
    return bool(fair) and min(fair) <= row[other].delay


def changes(make: Callable[[int], Watcher], streams: int) -> dict[tuple[int, float], Found]:
    """How a detector finds each change after each quiet time, in streams that it shares with the other detectors."""
    found = {(quiet, points): Found() for quiet in QUIET for points in POINTS}
    for seed in range(streams):
        random, watcher, false = np.random.default_rng(seed), make(1), 0
        for passed in range(1, max(QUIET) + 1):
            false += watcher.alarms(segment(random, np.array([BASE])))
            for points in POINTS if passed in QUIET else ():
                own = found[passed, points]
                own.delays.append(delay(deepcopy(watcher), points, seed))
                own.false += false
    return found


def delay(watcher: Watcher, points: float, seed: int) -> int:
    """Estimates from a change, which begins now, to its alarm; one more than are tried if there is none."""
    random = np.random.default_rng([seed, round(1 / points)])
    for passed in range(1, LONGEST + 1):
        if watcher.alarms(segment(random, np.array([BASE + points]))):
            return passed
    return LONGEST + 1


def false_alarms(make: Callable[[int], Watcher], series: int, steps: int) -> float:
    """Alarms where nothing changes, for each million estimates of all series together."""
    random, watcher = np.random.default_rng(0), make(series)
    shares = random.uniform(LEAST, MOST, series)
    found = sum(watcher.alarms(segment(random, shares)) for _ in range(steps))
    return found * MILLION / (steps * series)


def segment(random: np.random.Generator, shares: Floats) -> Booleans:
    """The bits of a segment: a row for each series."""
    bits: Booleans = random.random((shares.size, K)) < shares[:, None]
    return bits
