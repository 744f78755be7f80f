"""Contenders that take turns: in every round each runs once, in an order of its own, and all must agree.

A ratio is taken within each round and reported as the median over the rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thalweg_lab.results import Result, at_least, at_most, between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tick = Callable[[int, int], None]  # so many of so many rounds are done
Make = Callable[["DataFrame"], "DataFrame"]  # from the input to the kept rows

THALWEG, AGAIN = "Thalweg", "Thalweg again"
CONTROL = (0.95, 1.05)


def part_of(tick: Tick, number: int, parts: int) -> Tick:
    """How far one of several races that follow one another is, told as how far all of them are."""
    return lambda done, total: tick(100 * number + 100 * done // total, 100 * parts)


class Measurement(NamedTuple):
    """What one run of a contender gave: how many rows are kept, a checksum of them, and the time it took."""

    rows: int
    checksum: int | None
    seconds: float


@dataclass(frozen=True)
class Race:
    """The seconds that each contender took in each round."""

    scenario: str
    seconds: Mapping[str, list[float]]
    note: str
    label: str = ""  # before all measures

    def faster(self, than: str, target: float, who: str = THALWEG) -> Result:
        """By how much a contender is faster than another, and that it should be by so much."""
        value, note = self._ratio(than, who)
        return at_least(self.scenario, self._measure(f"{who}, times as fast as {than}"), value, target, note)

    def slower(self, than: str, target: float) -> Result:
        """How much longer Thalweg takes than another, and that it should be no more than so much."""
        value, note = self._ratio(THALWEG, than)
        return at_most(self.scenario, self._measure(f"{THALWEG}, times the time of {than}"), value, target, note)

    def later(self, than: str, milliseconds: float, who: str = THALWEG) -> Result:
        """How many milliseconds more a contender takes than another, by their medians, where a ratio says little."""
        value, note = self._difference(who, than)
        return at_most(self.scenario, self._measure(f"{who}, ms more than {than}"), value, milliseconds, note)

    def apart(self, who: str, again: str, milliseconds: float) -> Result:
        """The A/A control in milliseconds, either way."""
        value, note = self._difference(who, again)
        measure = self._measure(f"A/A control: ms between {who} and {again}")
        return at_most(self.scenario, measure, abs(value), milliseconds, note)

    def control(self, who: str = THALWEG, again: str = AGAIN) -> Result:
        """The A/A control: a contender against itself, which tells what the other ratios are worth."""
        value, note = self._ratio(again, who)
        return between(self.scenario, self._measure(f"A/A control: {again} against {who}"), value, CONTROL, note)

    def best(self, *names: str) -> str:
        """Which of some contenders is the fastest by its median."""
        return min(names, key=lambda name: median(self.seconds[name]))

    def _measure(self, what: str) -> str:
        return f"{self.label}: {what}" if self.label else what

    def _difference(self, who: str, than: str) -> tuple[float, str]:
        mine, theirs = (1e3 * median(self.seconds[name]) for name in (who, than))
        medians = f"medians of {len(self.seconds[who])} rounds; {who} {mine:.0f} ms, {than} {theirs:.0f} ms"
        return mine - theirs, f"{self.note}; {medians}"

    def _ratio(self, slow: str, fast: str) -> tuple[float, str]:
        ratios = [longer / shorter for longer, shorter in zip(self.seconds[slow], self.seconds[fast], strict=True)]
        spread = f"median of {len(ratios)} rounds, {min(ratios):.2f}..{max(ratios):.2f}"
        medians = ", ".join(f"{name} {median(self.seconds[name]):.2f} s" for name in (fast, slow))
        return median(ratios), f"{self.note}; {spread if len(ratios) > 1 else 'one round'}; {medians}"


def race(
    scenario: str,
    contenders: Mapping[str, Callable[[], Measurement]],
    rounds: int,
    tick: Tick,
    note: str,
    *,
    label: str = "",
    tries: int = 1,
) -> Race:
    """Let contenders take turns; raises where one keeps other rows than the rest.

    A contender may have several tries in a round, the fastest of which counts: what slows it down by chance is no part
    of it.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    names, random = list(contenders), np.random.default_rng(0)
    done, answers = 0, dict[tuple[int, int | None], str]()
    for _ in range(rounds):
        spent: dict[str, list[float]] = {name: [] for name in names}
        for name in (each for _ in range(tries) for each in random.permutation(names).tolist()):
            rows, checksum, taken = contenders[name]()
            answers.setdefault((rows, checksum), name)
            if len(answers) > 1:
                raise AssertionError(f"{scenario}: contenders kept different rows (count, checksum): {answers}")
            spent[name].append(taken)
            done += 1
            tick(done, rounds * tries * len(names))
        for name in names:
            seconds[name].append(min(spent[name]))
    note = f"{note}; the faster of {tries} tries" if tries > 1 else note
    return Race(scenario, seconds, note, label)


def compete(
    scenario: str,
    frame: DataFrame,
    makes: Mapping[str, Make],
    rounds: int,
    tick: Tick,
    note: str,
    *,
    small: DataFrame | None = None,
    label: str = "",
    tries: int = 1,
    checksum: str = "sum(id)",
) -> Race:
    """Let ways to filter a DataFrame take turns, after an untimed round of all, on a smaller input if there is one.

    A contender's time begins with the making of its plan and ends with the count and the checksum of the kept rows.
    """

    def batch(make: Make, frame: DataFrame) -> Callable[[], Measurement]:
        def run() -> Measurement:
            start = time.perf_counter()
            rows, found = make(frame).selectExpr("count(*)", checksum).collect()[0]
            return Measurement(rows, found, time.perf_counter() - start)

        return run

    first = frame if small is None else small
    race(scenario, {name: batch(make, first) for name, make in makes.items()}, 1, lambda _done, _total: None, note)
    return race(
        scenario,
        {name: batch(make, frame) for name, make in makes.items()},
        rounds,
        tick,
        note,
        label=label,
        tries=tries,
    )
