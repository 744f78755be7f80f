"""The looks at a long run: what each measure was after the warm-up and at the end, and how fast it grew.

As a program it prints the table of docs/faults.md: `python -m tests.soak.looks build/soak.jsonl`.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Look = dict[str, float]  # values of measures; "second" says when, since the start
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Growth:
    """A measure in the middle third of a run and in its last third, as medians; the first third is the warm-up."""

    measure: str
    middle: float
    last: float
    hourly: float  # the slope of a straight line through the values of both thirds

    def as_row(self) -> str:
        """A row of a table, bytes as megabytes."""
        unit, name = (MEGABYTE, f"{self.measure}, MB") if is_bytes(self.measure) else (1, self.measure)
        values = (value / unit for value in (self.middle, self.last, self.hourly))
        return f"| {name} | {' | '.join(f'{value:,.1f}'.removesuffix('.0') for value in values)} |"


def is_bytes(measure: str) -> bool:
    return measure.endswith(("memory", "heap", "bytes"))


def growths(looks: Sequence[Look]) -> list[Growth]:
    """The growth of all measures."""
    end = looks[-1]["second"]
    warm = [look for look in looks if look["second"] > end / 3]
    found = []
    for measure in warm[-1].keys() - {"second"}:
        points = [(look["second"], look[measure]) for look in warm if measure in look]
        middle = [value for second, value in points if second <= end * 2 / 3]
        last = [value for second, value in points if second > end * 2 / 3]
        if middle and last:
            seconds, values = np.array(points, float).T
            slope = np.polyfit(seconds, values, 1)[0]
            found.append(Growth(measure, statistics.median(middle), statistics.median(last), 3600 * float(slope)))
    return sorted(found, key=lambda growth: growth.measure)


def main(file: str) -> None:
    looks = [json.loads(line) for line in Path(file).read_text().splitlines()]
    print("| | middle third | last third | growth an hour |\n|---|---|---|---|")  # noqa: T201 - a program
    for growth in growths(looks):
        print(growth.as_row())  # noqa: T201 - a program


if __name__ == "__main__":
    main(*sys.argv[1:])
