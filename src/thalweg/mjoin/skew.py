"""Decides which values are heavy, and when the layout changes, from samples of the rows that are sent.

A value is heavy when its rows are more than the fair share of all rows that each place along its class should have: its
place then has about twice its share. The value is light again when its rows are less than half of that. The layout
changes only when all rows in windows were sent by the newest layout; as long as there are other rows, the next change
waits. This module knows no rows and no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.mjoin.layouts import PLAIN, ActiveLayouts, HeavyValue
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.window import BEGINNING, FOREVER
from thalweg.ordering.types import Integers

SAMPLE = 1024  # rows of a task that are looked at
REPORTED = 16  # values of a class that a task reports
HEAVY = 1.0  # of the fair share of a place along the class: more makes a value heavy,
LIGHT = 0.5  # and less than this makes it light again
CLEARLY_MORE = 1.5  # times the rows that the best way to split a value sends: then it is split that way instead
LEAST_ROWS = 1000  # that must have come lately: with fewer, no cell has much to do
KEPT = 0.5  # of the earlier counts is remembered, a micro-batch later


def frequent_values(hashed: Integers) -> dict[int, float]:
    """The most frequent of some hashes, and about how often each comes.

    >>> frequent_values(np.array([5, 6, 5, 7, 5, 6]))
    {5: 3.0, 6: 2.0}
    """
    if hashed.size > SAMPLE:  # by chance, for data may be periodic; but the same sample whenever a task is repeated
        sample = hashed[np.random.default_rng(hashed.size).integers(0, hashed.size, SAMPLE)]
    else:
        sample = hashed
    values, counts = np.unique(sample, return_counts=True)
    top = np.argsort(-counts, kind="stable")[:REPORTED]
    scale = hashed.size / max(sample.size, 1)
    return {int(values[place]): float(counts[place] * scale) for place in top.tolist() if counts[place] > 1}


@dataclass(frozen=True)
class SkewReport:
    """The report of a task on the rows of an input that it has sent.

    >>> first, second = SkewReport("A", 5, 30, {0: {7: 2.0}}), SkewReport("A", 1, 20, {0: {7: 1.0, 8: 1.0}})
    >>> first.add(second)
    SkewReport(name='A', rows=6, deadline=30, frequent={0: {7: 3.0, 8: 1.0}})
    """

    name: str
    rows: int = 0
    deadline: int = BEGINNING  # the latest deadline of these rows
    frequent: Mapping[int, Mapping[int, float]] = field(default_factory=dict)  # rows of frequent values, by class

    def add(self, other: SkewReport) -> SkewReport:
        """The report of the rows of both reports."""
        frequent = {number: dict(counts) for number, counts in self.frequent.items()}
        for number, counts in other.frequent.items():
            total = frequent.setdefault(number, {})
            for hashed, count in counts.items():
                total[hashed] = total.get(hashed, 0.0) + count
        return SkewReport(self.name, self.rows + other.rows, max(self.deadline, other.deadline), frequent)

    def to_json(self) -> dict[str, Any]:
        """The report as plain values for JSON."""
        return {"name": self.name, "rows": self.rows, "deadline": self.deadline, "frequent": _text_keys(self.frequent)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SkewReport:
        """The report that `to_json` was called on."""
        return cls(saved["name"], saved["rows"], saved["deadline"], _number_keys(saved["frequent"]))


@dataclass(frozen=True)
class SkewStatistics:
    """Statistics of the rows that have been sent, after a micro-batch."""

    layouts: ActiveLayouts = PLAIN  # by which the rows of the last micro-batch were sent
    deadline: int = BEGINNING  # the latest deadline of rows that were sent by the newest layout
    deadline_before: int = BEGINNING  # and of rows that were sent by earlier layouts
    rows: Mapping[str, float] = field(default_factory=dict)  # lately, by input
    values: Mapping[int, Mapping[int, Mapping[str, float]]] = field(default_factory=dict)  # by class, hash and input

    def after(self, layouts: ActiveLayouts, reports: Iterable[SkewReport], shares: Shares) -> SkewStatistics:
        """The statistics when some more rows have been sent."""
        reports = list(reports)
        is_newer = layouts.generation > self.layouts.generation
        deadline = max([BEGINNING if is_newer else self.deadline, *(report.deadline for report in reports)])
        rows = {name: KEPT * count for name, count in self.rows.items()}
        values = {
            number: {
                hashed: {name: KEPT * count for name, count in by_input.items()} for hashed, by_input in by_hash.items()
            }
            for number, by_hash in self.values.items()
        }
        for report in reports:
            rows[report.name] = rows.get(report.name, 0.0) + report.rows
            for number, counts in report.frequent.items():
                for hashed, count in counts.items():
                    by_input = values.setdefault(number, {}).setdefault(hashed, {})
                    by_input[report.name] = by_input.get(report.name, 0.0) + count
        deadline_before = self.deadline if is_newer else self.deadline_before
        known = SkewStatistics(layouts, deadline, deadline_before, rows, values)
        frequent = {
            number: {
                hashed: by_input
                for hashed, by_input in by_hash.items()
                if known.load(number, hashed, shares) > LIGHT * KEPT
            }
            for number, by_hash in values.items()
        }
        return SkewStatistics(layouts, deadline, deadline_before, rows, frequent)

    def load(self, number: int, hashed: int, shares: Shares) -> float:
        """How many times the fair share of a place along its class the rows of a value are."""
        total = sum(count for name, count in self.rows.items() if number in shares.placed_by[name])
        rows = sum(self.values.get(number, {}).get(hashed, {}).values())
        return rows * shares.sizes[number] / total if total else 0.0

    def next_layouts(self, watermark: int, shares: Shares) -> ActiveLayouts:
        """The layouts of the next micro-batch, from the watermark of the last."""
        layouts = self.layouts
        if layouts.before is not None and watermark >= self.deadline_before:
            layouts = ActiveLayouts(layouts.generation, layouts.heavy)
        if layouts.before is None and self.deadline < FOREVER and sum(self.rows.values()) >= LEAST_ROWS:
            heavy = self._heavy_values(shares)
            if heavy != layouts.heavy:
                return ActiveLayouts(layouts.generation + 1, heavy, before=layouts.heavy)
        return layouts

    def _heavy_values(self, shares: Shares) -> tuple[HeavyValue, ...]:
        """The values to split."""
        split_now = {(value.number, value.hashed): value for value in self.layouts.heavy}
        heavy = []
        for number, by_hash in self.values.items():
            for hashed, by_input in by_hash.items():
                present = split_now.get((number, hashed))
                if self.load(number, hashed, shares) <= (LIGHT if present else HEAVY):
                    continue
                split = cheapest_split(number, hashed, by_input, shares)
                least = copied_rows(split, by_input, shares)
                if present and copied_rows(present, by_input, shares) <= CLEARLY_MORE * least:
                    split = present
                heavy.append(split)
        return tuple(sorted(heavy))

    def to_json(self) -> dict[str, Any]:
        """The statistics as plain values for JSON."""
        return {
            "layouts": self.layouts.to_json(),
            "deadline": self.deadline,
            "deadline_before": self.deadline_before,
            "rows": dict(self.rows),
            "values": _text_keys(self.values),
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SkewStatistics:
        """The statistics that `to_json` was called on."""
        layouts, values = ActiveLayouts.from_json(saved["layouts"]), _number_keys(saved["values"])
        return cls(layouts, saved["deadline"], saved["deadline_before"], saved["rows"], values)


def cheapest_split(number: int, hashed: int, rows: Mapping[str, float], shares: Shares) -> HeavyValue:
    """The way to split a value that sends the fewest rows, from the rows that each input has of it.

    >>> grid = Shares((8,), {name: frozenset([0]) for name in "ABC"})
    >>> cheapest_split(0, 17, {"A": 100.0, "B": 2.0}, grid)
    HeavyValue(number=0, hashed=17, spread='A', lines=0, across='')
    >>> cheapest_split(0, 17, {"A": 100.0, "B": 80.0, "C": 1.0}, grid)
    HeavyValue(number=0, hashed=17, spread='A', lines=4, across='B')
    """
    places = shares.sizes[number]
    first, *others = sorted(rows, key=lambda name: (-rows[name], name))
    splits = [HeavyValue(number, hashed, first)]
    splits += [
        HeavyValue(number, hashed, first, lines, others[0])
        for lines in range(places - 1, 1, -1)
        if others and places % lines == 0
    ]
    return min(splits, key=lambda split: copied_rows(split, rows, shares))


def copied_rows(split: HeavyValue, rows: Mapping[str, float], shares: Shares) -> float:
    """How many rows are sent for a value, copies included, if it is split in this way."""
    places = shares.sizes[split.number]
    return sum(count * len(split.places(name, places).copies) for name, count in rows.items())


def _text_keys(by_class: Mapping[int, Mapping[int, Any]]) -> dict[str, dict[str, Any]]:
    """Keys of classes and hashes as JSON wants them."""
    return {
        str(number): {str(hashed): value for hashed, value in by_hash.items()} for number, by_hash in by_class.items()
    }


def _number_keys(by_class: Mapping[str, Mapping[str, Any]]) -> dict[int, dict[int, Any]]:
    """The reverse of `_text_keys`."""
    return {
        int(number): {int(hashed): value for hashed, value in by_hash.items()} for number, by_hash in by_class.items()
    }
