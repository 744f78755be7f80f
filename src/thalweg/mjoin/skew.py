"""Decides which values are heavy, and when the layout changes, from samples of the rows that are sent.

A value is heavy when the rows that have it are more than what each place along its class should have of all rows: its
place then has about twice its share. It stops being so when they are less than half of that. The layout changes only
when all rows in windows were sent by the newest; as long as there are others, the next change waits. Knows no rows and
no files.
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
REPORTED = 16  # values of a class that a task tells of
HEAVY = 1.0  # of the fair share of a place along the class: more makes a value heavy,
LIGHT = 0.5  # and less than this makes it light again
CLEARLY_MORE = 2.0  # times the rows of the spread input, that another must have to be spread instead
LEAST_ROWS = 1000  # that must have come lately: of fewer, no cell has much to do
KEPT = 0.5  # of what was counted before is remembered, a micro-batch later


def frequent(hashed: Integers) -> dict[int, float]:
    """The most frequent of some hashes, and about how often each comes.

    >>> frequent(np.array([5, 6, 5, 7, 5, 6]))
    {5: 3.0, 6: 2.0}
    """
    if hashed.size > SAMPLE:  # by chance, for data may be periodic; but the same whenever a task is done again
        sample = hashed[np.random.default_rng(hashed.size).integers(0, hashed.size, SAMPLE)]
    else:
        sample = hashed
    values, counts = np.unique(sample, return_counts=True)
    top = np.argsort(-counts, kind="stable")[:REPORTED]
    scale = hashed.size / max(sample.size, 1)
    return {int(values[one]): float(counts[one] * scale) for one in top.tolist() if counts[one] > 1}


@dataclass(frozen=True)
class SkewReport:
    """What a task tells of the rows of an input that it has sent."""

    name: str
    rows: int = 0
    deadline: int = BEGINNING  # the latest of these rows
    frequent: Mapping[int, Mapping[int, float]] = field(default_factory=dict)  # rows of frequent values, by class


@dataclass(frozen=True)
class Ledger:
    """What is known of the rows that have been sent, after a micro-batch."""

    layouts: ActiveLayouts = PLAIN  # by which the rows of the last micro-batch were sent
    deadline: int = BEGINNING  # the latest of rows that were sent by the newest layout
    deadline_before: int = BEGINNING  # and by those before
    rows: Mapping[str, float] = field(default_factory=dict)  # lately, by input
    values: Mapping[int, Mapping[int, Mapping[str, float]]] = field(default_factory=dict)  # by class, hash and input

    def after(self, layouts: ActiveLayouts, reports: Iterable[SkewReport], shares: Shares) -> Ledger:
        """What is known when some more rows have been sent."""
        several = list(reports)
        newer = layouts.generation > self.layouts.generation
        deadline = max([BEGINNING if newer else self.deadline, *(one.deadline for one in several)])
        rows = {name: KEPT * each for name, each in self.rows.items()}
        values = {
            number: {hashed: {name: KEPT * each for name, each in one.items()} for hashed, one in by_hash.items()}
            for number, by_hash in self.values.items()
        }
        for report in several:
            rows[report.name] = rows.get(report.name, 0.0) + report.rows
            for number, found in report.frequent.items():
                for hashed, count in found.items():
                    own = values.setdefault(number, {}).setdefault(hashed, {})
                    own[report.name] = own.get(report.name, 0.0) + count
        known = Ledger(layouts, deadline, self.deadline if newer else self.deadline_before, rows, values)
        kept = {
            number: {
                hashed: one for hashed, one in by_hash.items() if known.load(number, hashed, shares) > LIGHT * KEPT
            }
            for number, by_hash in values.items()
        }
        return Ledger(layouts, deadline, known.deadline_before, rows, kept)

    def load(self, number: int, hashed: int, shares: Shares) -> float:
        """How many times the fair share of a place along its class the rows of a value are."""
        total = sum(each for name, each in self.rows.items() if number in shares.placed_by[name])
        rows = sum(self.values.get(number, {}).get(hashed, {}).values())
        return rows * shares.sizes[number] / total if total else 0.0

    def next(self, watermark: int, shares: Shares) -> ActiveLayouts:
        """The layouts of the next micro-batch, from the watermark of the last."""
        layouts = self.layouts
        if layouts.before is not None and watermark >= self.deadline_before:
            layouts = ActiveLayouts(layouts.generation, layouts.heavy)
        if layouts.before is None and self.deadline < FOREVER and sum(self.rows.values()) >= LEAST_ROWS:
            heavy = self._heavy(shares)
            if heavy != layouts.heavy:
                return ActiveLayouts(layouts.generation + 1, heavy, before=layouts.heavy)
        return layouts

    def _heavy(self, shares: Shares) -> tuple[HeavyValue, ...]:
        """The values to split."""
        already = {(one.number, one.hashed): one.spread for one in self.layouts.heavy}
        found = []
        for number, by_hash in self.values.items():
            loads = {hashed: self.load(number, hashed, shares) for hashed in by_hash}
            heavy = [one for one in loads if loads[one] > (LIGHT if (number, one) in already else HEAVY)]
            for hashed in heavy:
                spread = max(sorted(by_hash[hashed]), key=by_hash[hashed].__getitem__)
                before = already.get((number, hashed))
                if before and by_hash[hashed][spread] <= CLEARLY_MORE * by_hash[hashed].get(before, 0.0):
                    spread = before
                found.append(HeavyValue(number, hashed, spread))
        return tuple(sorted(found))

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "layouts": self.layouts.to_json(),
            "deadlines": [self.deadline, self.deadline_before],
            "rows": dict(self.rows),
            "values": {
                str(number): {str(hashed): dict(one) for hashed, one in by_hash.items()}
                for number, by_hash in self.values.items()
            },
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Ledger:
        """What `to_json` made."""
        values = {
            int(number): {int(hashed): one for hashed, one in by_hash.items()}
            for number, by_hash in found["values"].items()
        }
        deadline, before = found["deadlines"]
        return cls(ActiveLayouts.from_json(found["layouts"]), deadline, before, found["rows"], values)
