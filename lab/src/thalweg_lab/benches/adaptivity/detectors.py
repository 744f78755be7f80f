"""Detectors side by side: delays of changes of a probability after quiet times, and false alarms."""

from __future__ import annotations

from statistics import median

import numpy as np

from thalweg.drift import DETECTORS, Detector, estimate
from thalweg_lab.results import Result, claim

BASE = 0.3  # the probability before a change
POINTS = (0.02, 0.05, 0.1, 0.2)  # by which it rises
QUIET = (200, 1000, 5000)  # estimates before the change
LONGEST = 2000  # estimates after it
STREAMS = 9
SERIES = (1, 120)
STEADY = {1: 100_000, 120: 2000}  # estimates of each series, among which false alarms are counted
NEW = "glr"


def detectors() -> list[Result]:
    """The median delay of each detector for each change, and its false alarms."""
    kinds = [kind for kind in DETECTORS if not kind.is_blind]
    results = []
    for quiet in QUIET:
        for points in POINTS:
            found = {kind.name: [delay(kind, quiet, points, seed) for seed in range(STREAMS)] for kind in kinds}
            medians = {name: median(delays) for name, delays in found.items()}
            missed = {name: sum(each > LONGEST for each in delays) for name, delays in found.items()}
            note = ", ".join(f"{name} {medians[name]:g} ({missed[name]} of {STREAMS} missed)" for name in found)
            holds = medians[NEW] <= min(medians.values())
            scenario = f"{BASE:g} to {BASE + points:g} after {quiet}"
            results.append(
                claim("detectors", f"{scenario}: median delay", medians[NEW], "the least", holds=holds, note=note)
            )
    for series in SERIES:
        alarms = {kind.name: false_alarms(kind, series) for kind in kinds}
        note = ", ".join(f"{name} {number}" for name, number in alarms.items())
        holds = alarms[NEW] <= alarms["bcs"]
        measure = f"false alarms in {STEADY[series]:,} estimates of {series} series"
        results.append(claim("detectors", measure, alarms[NEW], "no more than bcs", holds=holds, note=note))
    return results


def delay(kind: type[Detector], quiet: int, points: float, seed: int) -> int:
    """Estimates from a change to its alarm; one more than are tried if there is none."""
    random, detector = np.random.default_rng(seed), kind()
    detector.watch(1)
    for row in estimate(random.binomial(detector.k, BASE, (quiet, 1))):
        detector.update(row)
    for passed in range(1, LONGEST + 1):
        if detector.update(estimate(random.binomial(detector.k, [BASE + points]))):
            return passed
    return LONGEST + 1


def false_alarms(kind: type[Detector], series: int) -> int:
    """Alarms where nothing changes."""
    random, detector = np.random.default_rng(0), kind()
    detector.watch(series)
    shares = random.uniform(0.02, 0.6, series)
    return sum(len(detector.update(estimate(random.binomial(detector.k, shares)))) for _ in range(STEADY[series]))
