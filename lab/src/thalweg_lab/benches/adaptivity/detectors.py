"""Detectors side by side: how soon and how surely each finds a change of a probability, and its false alarms.

All see the same bits, whether a filter drops a profile tuple: Thalweg's detectors as estimates of 20 bits each, river's
own as bits. The new detector has a setting for the least time from one false alarm to the next, and is tried with
several. It leads another detector in a row if it is as fast with one of these settings that raises no more false alarms
than the other detector, in the quiet part of that very row. It is also told how many rows hold if the false alarms of
all rows count instead, and if, beside detectors that look for rises alone, its false alarms about falls do not count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, NamedTuple, Protocol

import numpy as np

from thalweg.drift import BCS, GLR, Adwin, Detector, Martingale, estimate
from thalweg.drift.detector import K
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg_lab.results import Result, claim

BASE = 0.3  # the probability before a change
POINTS = (0.02, 0.05, 0.1, 0.2)  # by which it rises
QUIET = (200, 1000, 5000, 20_000)  # estimates before the change
LONGEST = 2000  # estimates after it
STREAMS = 21
MILLION = 1_000_000
STEADY = {1: 200_000, 120: 2500}  # estimates of each of so many series, among which false alarms are counted
LEAST, MOST = 0.02, 0.6  # probabilities of the series, drawn evenly between
# Estimates of each series for one false alarm. There are many settings where other detectors raise many: a detector has
# to be met by a setting with as many false alarms. One is the default.
SETTINGS = {
    **{f"glr {quiet}": float(quiet) for quiet in (2, 10, 20, 40, 50, 55, 60, 70, 100, 200, 300, 350, 400, 600)},
    **{f"glr {quiet:,}": float(quiet) for quiet in (1000, 2000, 4000, 6000, 10_000)},
    "glr": GLR().quiet,
    **{f"glr {quiet:,}": float(quiet) for quiet in (100_000, 150_000, 300_000, 1_000_000)},
    "glr, strict": 1e8,
}
NEW, STRICTEST = "glr", "glr, strict"
RISES_ALONE = ("river DDM", "river EDDM", "river HDDM-A", "river HDDM-W")  # detectors that do not look for falls
PIECE = 1000  # segments whose bits are drawn at once


class Watcher(Protocol):
    """Detectors of some series, as this benchmark runs them."""

    @property
    def falls(self) -> int:
        """Alarms so far that were about a fall."""
        ...

    def alarms(self, bits: Booleans, which: Integers) -> Integers:
        """Which of these series have changed, given the bits of the next segment: a row for each of them."""
        ...


class OnEstimates:
    """A detector of Thalweg for all series together, which sees an estimate of each segment."""

    def __init__(self, detector: Detector, series: int) -> None:
        self.falls = 0
        self._detector = detector
        self._series = series
        detector.watch(series)

    def alarms(self, bits: Booleans, which: Integers) -> Integers:
        """Which of these series have changed; the others wait."""
        estimates = np.full(self._series, np.nan)
        estimates[which] = estimate(bits.sum(axis=1))
        found = self._detector.update(estimates)
        self.falls += sum(alarm.after < alarm.before for alarm in found)
        return np.array([alarm.series for alarm in found], np.int64)


class Apart:
    """A watcher for each series, which knows nothing of the other series."""

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        self._watchers = list(watchers)

    @property
    def falls(self) -> int:
        """Alarms so far that were about a fall."""
        return sum(watcher.falls for watcher in self._watchers)

    def alarms(self, bits: Booleans, which: Integers) -> Integers:
        """Which of these series have changed."""
        alone = np.zeros(1, np.int64)
        has_changed = [self._watchers[i].alarms(own[None], alone).size > 0 for i, own in zip(which, bits, strict=True)]
        return which[np.array(has_changed, np.bool_)]


class OnBits:
    """A detector of river for one series, which sees every bit; when it found a change it begins anew by itself."""

    falls = 0  # it does not say

    def __init__(self, detector: Any) -> None:  # noqa: ANN401 - river has no types
        self._detector = detector

    def alarms(self, bits: Booleans, which: Integers) -> Integers:
        """The series, if it has changed."""
        has_changed = False
        for bit in bits[0].tolist():
            self._detector.update(bit)
            has_changed |= self._detector.drift_detected
        return which if has_changed else which[:0]


@dataclass
class Found:
    """How a detector did in all streams of a row."""

    delays: list[int] = field(default_factory=list)  # estimates from a change to its alarm, more than `LONGEST` if none
    false: int = 0  # alarms before the change
    falls: int = 0  # of them, alarms about a fall

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


class MeasuredDetector(NamedTuple):
    """All that is measured of a detector."""

    rows: dict[tuple[int, float], Found]  # by the quiet estimates, and the points of the rise
    steady: dict[int, float]  # false alarms in a million estimates, by the number of series; not of all settings


class Make(Protocol):
    """Makes a watcher of some series, which are watched together, or apart if they are streams of one series each."""

    def __call__(self, series: int, *, apart: bool) -> Watcher:
        """A watcher that has seen nothing yet."""
        ...


def contenders() -> dict[str, Make]:
    """All detectors, by name."""
    from river import drift
    from river.drift import binary

    def glr(quiet: float, series: int, *, apart: bool) -> Watcher:
        # Its limit depends on the product of both, so streams can be watched at once as if each were alone.
        return OnEstimates(GLR(quiet=quiet / series if apart else quiet), series)

    def ours(make: Callable[[], Detector], series: int, *, apart: bool) -> Watcher:
        return Apart(OnEstimates(make(), 1) for _ in range(series)) if apart else OnEstimates(make(), series)

    def theirs(make: Callable[[], Any], series: int, *, apart: bool) -> Watcher:  # noqa: ARG001 - never together
        return Apart(OnBits(make()) for _ in range(series))

    return {
        **{name: partial(glr, quiet) for name, quiet in SETTINGS.items()},
        **{make.name: partial(ours, make) for make in (BCS, Martingale, Adwin)},
        "river ADWIN": partial(theirs, drift.ADWIN),
        "river PageHinkley": partial(theirs, drift.PageHinkley),
        "river DDM": partial(theirs, binary.DDM),
        "river EDDM": partial(theirs, binary.EDDM),
        "river HDDM-A": partial(theirs, binary.HDDMA),
        "river HDDM-W": partial(theirs, binary.HDDMW),
    }


def detectors(streams: int = STREAMS, steady: Mapping[int, int] = STEADY) -> list[Result]:
    """Delay, recall and precision of each detector for each change, and false alarms in a million estimates."""
    names = list(contenders())
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        every = list(pool.map(partial(measure, streams=streams, steady=steady), names))
    measured = dict(zip(names, every, strict=True))
    results, held, held_for_rises = list[Result](), 0, 0
    last = {name: each.rows[max(QUIET), POINTS[0]] for name, each in measured.items()}  # all false alarms
    for quiet, points in measured[NEW].rows:
        row = {name: each.rows[quiet, points] for name, each in measured.items()}
        ahead = [name for name in row if name not in SETTINGS and not leads(row, row, name)]
        by_all = [name for name in row if name not in SETTINGS and not leads(row, last, name)]
        held += not by_all
        held_for_rises += not [name for name in by_all if not leads(row, last, name, rises=name in RISES_ALONE)]
        note = "; ".join(
            f"{name} {own.delay:g}, recall {own.recall:.2f}, precision {own.precision:.2f}, {own.false} false"
            for name, own in row.items()
        )
        note += f"; ahead: {', '.join(ahead) or 'none'}; by the false alarms of all rows: {', '.join(by_all) or 'none'}"
        measure_name = f"{BASE:g} to {BASE + points:g} after {quiet:,}: median delay"
        target = "the least at no more false alarms"
        results.append(claim("detectors", measure_name, row[NEW].delay, target, holds=not ahead, note=note))
    rows = len(results)
    note = f"false alarms in the first {max(QUIET):,} estimates of {streams} streams"
    label = "rows in which it leads at no more false alarms in all quiet parts"
    results += [
        claim("detectors", label, held, f"= {rows}", holds=held == rows, note=note),
        claim(
            "detectors",
            f"{label}, or false rises beside detectors of rises alone",
            held_for_rises,
            f"= {rows}",
            holds=held_for_rises == rows,
            note=f"{note}; {', '.join(RISES_ALONE)} look for rises alone",
        ),
    ]
    for series in steady:
        rates = {name: each.steady[series] for name, each in measured.items() if series in each.steady}
        note = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        holds = rates[STRICTEST] <= min(rates.values())
        label = f"false alarms in a million estimates, {series} series"
        results.append(claim("detectors", label, rates[NEW], "strict: the fewest", holds=holds, note=note))
    return results


def leads(row: Mapping[str, Found], quiet: Mapping[str, Found], other: str, *, rises: bool = False) -> bool:
    """Whether the new detector, in a setting with no more false alarms than another detector, is as fast as that.

    False alarms are those of `quiet`; with `rises`, those of the new detector that were about a fall do not count.

    >>> row = {"glr": Found([9], 3, 2), "glr, strict": Found([15]), "slow": Found([20], 1), "fast": Found([9], 1)}
    >>> leads(row, row, "slow"), leads(row, row, "fast"), leads(row, row, "fast", rises=True)
    (True, False, True)
    """
    most = quiet[other].false
    fair = [
        row[name].delay
        for name in SETTINGS
        if name in row and quiet[name].false - (quiet[name].falls if rises else 0) <= most
    ]
    return bool(fair) and min(fair) <= row[other].delay


def measure(name: str, streams: int, steady: Mapping[int, int]) -> MeasuredDetector:
    """Measure a detector."""
    make = contenders()[name]
    counted = {} if name in SETTINGS and name not in (NEW, STRICTEST) else steady
    return MeasuredDetector(
        changes(make, streams), {series: false_alarms(make, series, steps) for series, steps in counted.items()}
    )


def changes(make: Make, streams: int) -> dict[tuple[int, float], Found]:
    """How a detector finds each change after each quiet time, in streams that it shares with the other detectors."""
    found = {}
    randoms = [np.random.default_rng(seed) for seed in range(streams)]
    watcher, every, false = make(streams, apart=True), np.arange(streams), 0
    for passed, bits in enumerate(segments(randoms, BASE, max(QUIET)), 1):
        false += watcher.alarms(bits, every).size
        for points in POINTS if passed in QUIET else ():
            found[passed, points] = Found(delays(watcher, points, streams), false, watcher.falls)
    return found


def delays(watcher: Watcher, points: float, streams: int) -> list[int]:
    """Estimates from a change in each stream, which begins now, to its alarm; `LONGEST` + 1 if there is none."""
    watcher = deepcopy(watcher)
    randoms = [np.random.default_rng([seed, round(1 / points)]) for seed in range(streams)]
    found: Integers = np.full(streams, LONGEST + 1)
    for passed, bits in enumerate(segments(randoms, BASE + points, LONGEST), 1):
        waiting = np.flatnonzero(found > LONGEST)
        if not waiting.size:
            break
        found[watcher.alarms(bits[waiting], waiting)] = passed
    return [int(delay) for delay in found]


def segments(randoms: Sequence[np.random.Generator], share: float, count: int) -> Iterator[Booleans]:
    """So many segments of some streams: the bits of each, a row for each stream."""
    for _ in range(0, count, PIECE):
        yield from np.stack([random.random((PIECE, K)) < share for random in randoms], axis=1)


def false_alarms(make: Make, series: int, steps: int) -> float:
    """Alarms where nothing changes, for each million estimates of all series together."""
    random, watcher, every = np.random.default_rng(0), make(series, apart=False), np.arange(series)
    shares = random.uniform(LEAST, MOST, series)
    found = sum(watcher.alarms(segment(random, shares), every).size for _ in range(steps))
    return found * MILLION / (steps * series)


def segment(random: np.random.Generator, shares: Floats) -> Booleans:
    """The bits of a segment: a row for each series."""
    bits: Booleans = random.random((shares.size, K)) < shares[:, None]
    return bits
