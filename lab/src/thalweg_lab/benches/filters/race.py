"""Races: contenders take turns, and all must keep the same rows.

Every round lets each contender run once, in a random order. A ratio of times is taken within each round, and the median
over the rounds is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thalweg.ordering.types import Floats
from thalweg_lab.results import Result, at_least, at_most, between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tick = Callable[[int, int], None]  # takes the number of steps that are done, and of all steps
Make = Callable[["DataFrame"], "DataFrame"]  # from the input to the kept rows

THALWEG, AGAIN = "Thalweg", "Thalweg again"
CONTROL = (0.95, 1.05)
EXACT = 0.02  # the standard error of a typical ratio at which rounds need not be added


def part_of(tick: Tick, number: int, parts: int) -> Tick:
    """The progress of a part, reported as progress of the whole: part `number` of `parts` that follow each other."""
    return lambda done, total: tick(100 * number + 100 * done // total, 100 * parts)


class Measurement(NamedTuple):
    """One run of a contender: the number of kept rows, a checksum of them, and the time that it took."""

    rows: int
    checksum: int | None
    seconds: float


@dataclass(frozen=True)
class Race:
    """The seconds that each contender took in each round."""

    scenario: str
    seconds: Mapping[str, list[float]]
    note: str
    label: str = ""  # that the name of each measure begins with

    def faster(self, than: str, target: float, contender: str = THALWEG) -> Result:
        """How many times as fast as another contender this contender is; the target is a lower bound."""
        value, note = self._ratio(than, contender)
        return at_least(self.scenario, self._measure(f"{contender}, times as fast as {than}"), value, target, note)

    def slower(self, than: str, target: float, contender: str = THALWEG) -> Result:
        """How many times the time of another contender this contender takes; the target is an upper bound."""
        value, note = self._ratio(contender, than)
        return at_most(self.scenario, self._measure(f"{contender}, times the time of {than}"), value, target, note)

    def later(self, than: str, milliseconds: float, contender: str = THALWEG) -> Result:
        """How many milliseconds more than another a contender takes, by their medians; for short runs."""
        value, note = self._difference(contender, than)
        return at_most(self.scenario, self._measure(f"{contender}, ms more than {than}"), value, milliseconds, note)

    def apart(self, contender: str, again: str, milliseconds: float) -> Result:
        """The A/A control in milliseconds: by how much two runs of the same contender differ."""
        value, note = self._difference(contender, again)
        measure = self._measure(f"A/A control: ms between {contender} and {again}")
        return at_most(self.scenario, measure, abs(value), milliseconds, note)

    def slower_than_both(self, than: str, again: str, target: float, contender: str = THALWEG) -> Result:
        """How many times the time of another contender this contender takes, where the other runs twice in a round.

        For runs of which each is far from the next: the typical ratio to the mean of both.
        """
        value, note = self._ratio_to_both(contender, than, again)
        return at_most(self.scenario, self._measure(f"{contender}, times the time of {than}"), value, target, note)

    def control(self, contender: str = THALWEG, again: str = AGAIN, bounds: tuple[float, float] = CONTROL) -> Result:
        """The A/A control: a contender against itself, which shows how exact the other ratios are."""
        value, note = self._ratio(again, contender)
        return between(self.scenario, self._measure(f"A/A control: {again} against {contender}"), value, bounds, note)

    def best(self, *names: str) -> str:
        """The contender, of these, with the shortest median time."""
        return min(names, key=lambda name: median(self.seconds[name]))

    def _measure(self, measure: str) -> str:
        return f"{self.label}: {measure}" if self.label else measure

    def _difference(self, contender: str, than: str) -> tuple[float, str]:
        mine, theirs = (1e3 * median(self.seconds[name]) for name in (contender, than))
        medians = f"medians of {len(self.seconds[contender])} rounds; {contender} {mine:.0f} ms, {than} {theirs:.0f} ms"
        return mine - theirs, f"{self.note}; {medians}"

    def _ratio_to_both(self, slow: str, fast: str, again: str) -> tuple[float, str]:
        mine, first, second = (np.array(self.seconds[name]) for name in (slow, fast, again))
        apart, own = typical_ratio(second / first), typical_ratio(mine / np.sqrt(first * second))
        medians = ", ".join(f"{name} {median(self.seconds[name]):.2f} s" for name in (fast, slow))
        return own, f"{self.note}; typical of {len(mine)} rounds; {medians}; {fast} against itself {apart:.2f}"

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
    most_rounds: int = 0,
    control: tuple[str, str] | None = None,
) -> Race:
    """Let contenders take turns. Raises an error if contenders keep different rows.

    A contender may have several tries in a round, of which the fastest counts, so that a slow moment of the machine
    does not. Up to `most_rounds`, rounds are added as long as two contenders that do the same, the `control`, are not
    known to take the same time: they decide alone, never a ratio that is tested.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    names, random = list(contenders), np.random.default_rng(0)
    done, answers = 0, dict[tuple[int, int | None], str]()
    for number in range(max(rounds, most_rounds)):
        if number >= rounds and (control is None or _agree(*(seconds[name] for name in control))):
            break
        spent: dict[str, list[float]] = {name: [] for name in names}
        for name in (contender for _ in range(tries) for contender in random.permutation(names).tolist()):
            rows, checksum, taken = contenders[name]()
            answers.setdefault((rows, checksum), name)
            if len(answers) > 1:
                raise AssertionError(f"{scenario}: contenders kept different rows (count, checksum): {answers}")
            spent[name].append(taken)
            done += 1
            tick(min(done, rounds * tries * len(names)), rounds * tries * len(names))
        for name in names:
            seconds[name].append(min(spent[name]))
    note = f"{note}; the faster of {tries} tries" if tries > 1 else note
    return Race(scenario, seconds, note, label)


def typical_ratio(ratios: Floats) -> float:
    """The median of the geometric means of all pairs of ratios: the estimate of Hodges and Lehmann.

    Few slow runs do not change it, as they do not change a median, and it is nearly as exact as a mean.

    >>> round(typical_ratio(np.array([0.9, 1.0, 1.0, 1.0, 90.0])), 2)
    1.0
    """
    logs = np.log(ratios)
    means = (logs[:, None] + logs[None, :])[np.triu_indices(len(logs))] / 2
    return float(np.exp(np.median(means)))


def _agree(times: Sequence[float], again: Sequence[float]) -> bool:
    """Whether a contender against itself is within the bounds of a control, and is known well.

    The distance of the quartiles, divided by 1.349, is a standard deviation that few slow runs do not change, for
    normal distributions; the standard error of the typical ratio is 1.023 times that of a mean.
    """
    ratios = np.array(again) / np.array(times)
    low, high = np.percentile(ratios, (25, 75))
    is_exact = 1.023 * (high - low) / 1.349 / np.sqrt(len(ratios)) <= EXACT
    return bool(is_exact and CONTROL[0] <= typical_ratio(ratios) <= CONTROL[1])


def compete(
    scenario: str,
    frame: DataFrame | Callable[[], DataFrame],
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
    """Let functions that filter a DataFrame take turns, after an untimed round, which may have a smaller input.

    A contender's time begins with the making of its plan and ends with the count and the checksum of the kept rows.
    Instead of a DataFrame, a function may make one for each run, which is not timed: then every call is the first on
    its DataFrame, and finds nothing that is remembered of an earlier call.
    """

    def batch(make: Make, frame: DataFrame | Callable[[], DataFrame]) -> Callable[[], Measurement]:
        def run() -> Measurement:
            given = frame() if callable(frame) else frame
            start = time.perf_counter()
            rows, found = make(given).selectExpr("count(*)", checksum).collect()[0]
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
