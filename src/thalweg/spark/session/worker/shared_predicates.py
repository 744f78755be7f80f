"""Python predicates that several queries call on the rows of one stream: each is asked once for a row, or not at all.

A predicate is asked for the rows that are still undecided for some conjunction that contains it. The order is by rank:
the measured time of a row, divided by the measured share of rows that the predicate rejects. As in `tw.where`, an error
counts only where no other predicate of the conjunction rejects the row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.filters.worker.judges import Judge
from thalweg.spark.filters.worker.view import View

FIRST_ROWS = 128  # that predicates of which nothing is known are tried on


@dataclass
class PredicateCounts:
    """How often a predicate was asked, how often it was true, and the seconds that took."""

    rows: float = 0
    true: float = 0
    seconds: float = 0.0

    def decayed(self) -> PredicateCounts:
        """The counts of a micro-batch that is one further back."""
        return PredicateCounts(self.rows / 2, self.true / 2, self.seconds / 2)

    def __add__(self, other: PredicateCounts) -> PredicateCounts:
        return PredicateCounts(self.rows + other.rows, self.true + other.true, self.seconds + other.seconds)

    @property
    def rank(self) -> float:
        """The time of a row, divided by the share of rows that are rejected: the lower, the earlier it is asked."""
        rejected = self.rows - self.true
        return self.seconds / rejected if rejected else math.inf if self.rows else 0.0


class EarlyAnswer(NamedTuple):
    """What a predicate answered before other conditions were evaluated; other rows are undecided."""

    is_true: Booleans
    is_decided: Booleans


@dataclass
class Failed:
    """The latest row for which a conjunction cannot be decided, because a predicate raises."""

    time: int
    reason: str


@dataclass
class SharedPredicates:
    """The predicates of a stream's conjunctions, of which `members` has the numbers of their predicates."""

    judges: Sequence[Judge]
    members: Sequence[Sequence[int]]
    known: Sequence[PredicateCounts]  # of earlier rows
    counts: list[PredicateCounts] = field(init=False)  # of these rows
    failed: dict[int, Failed] = field(default_factory=dict)  # by conjunction
    _decided: dict[int, Booleans] = field(default_factory=dict)  # rows with early answers, by predicate

    def __post_init__(self) -> None:
        self.counts = [PredicateCounts() for _ in self.judges]

    def decide(
        self,
        columns: Sequence[pa.Array],
        times: Integers,
        alive: list[Booleans],
        early: Sequence[EarlyAnswer | None] = (),
    ) -> list[Booleans]:
        """The answers of each predicate, FALSE where it was not asked; rows that are rejected leave `alive`.

        Predicates with an early answer are asked for the rows that it leaves undecided.
        """
        answers = [np.zeros(len(times), np.bool_) for _ in self.judges]
        self._decided = {number: answer.is_decided for number, answer in enumerate(early) if answer is not None}
        for number, answer in enumerate(early):
            if answer is not None:
                answers[number] |= answer.is_true & answer.is_decided
                for place, members in enumerate(self.members):
                    if number in members:
                        alive[place] &= answers[number] | ~answer.is_decided
        start = 0
        if any(not (known.rows or new.rows) for known, new in zip(self.known, self.counts, strict=True)):
            start = min(FIRST_ROWS, len(times))
            self._decide(columns, times, alive, answers, slice(0, start))
        if start < len(times):
            self._decide(columns, times, alive, answers, slice(start, len(times)))
        return answers

    def _decide(
        self,
        columns: Sequence[pa.Array],
        times: Integers,
        alive: list[Booleans],
        answers: list[Booleans],
        part: slice,
    ) -> None:
        failures: list[tuple[int, int, str]] = []  # predicate, row and reason
        for number in sorted(
            range(len(self.judges)), key=lambda number: (self.known[number] + self.counts[number]).rank
        ):
            undecided = [alive[place][part] for place, members in enumerate(self.members) if number in members]
            is_asked = np.logical_or.reduce(undecided)
            if number in self._decided:
                is_asked &= ~self._decided[number][part]
            rows = np.flatnonzero(is_asked) + part.start
            if not rows.size:
                continue
            begin = time.perf_counter()
            verdict = self.judges[number].judge(View(columns, rows))
            counts = self.counts[number]
            counts.seconds += time.perf_counter() - begin
            counts.rows += rows.size
            counts.true += int(np.count_nonzero(verdict.true))
            answers[number][rows] = verdict.true if verdict.failed is None else verdict.true | verdict.failed
            failures += [(number, int(rows[row]), reason) for row, reason in (verdict.reasons or {}).items()]
            for place, members in enumerate(self.members):
                if number in members:
                    alive[place][part] &= answers[number][part]
        for number, row, reason in failures:
            for place, members in enumerate(self.members):
                known = self.failed.get(place)
                if number in members and alive[place][row] and (known is None or times[row] > known.time):
                    self.failed[place] = Failed(int(times[row]), f"predicate {self.judges[number].name!r}: {reason}")
