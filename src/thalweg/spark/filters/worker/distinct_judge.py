"""Asks a deterministic predicate once for each distinct value of its columns, where that pays.

Hosts, paths, user agents and categories repeat in real logs, and a function of a row takes much longer than to find out
that a value was there before. Outcomes are remembered for the rows of a task: a function may be sent anew with the next
task, and a stored table may have been refreshed. Errors are not remembered from batch to batch. (docs/decisions/0073)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from thalweg.ordering.repeats import Repeats, Way
from thalweg.ordering.types import Integers
from thalweg.spark.filters.worker.distinct_values import (
    NOT_KNOWN,
    DistinctValues,
    Outcomes,
    RememberedOutcomes,
    can_be_found,
    distinct_values,
)
from thalweg.spark.filters.worker.judges import FALSE, TRUE, UNKNOWN, Counts, Judge, Verdict
from thalweg.spark.filters.worker.view import View

FAILED = 3  # an outcome besides those of `judges`


class DistinctJudge:
    """A judge of some columns that another judge is asked for, as seldom as pays."""

    def __init__(
        self,
        asked: Judge,
        columns: Sequence[int],
        repeats: Repeats | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = asked.name
        self.asked = asked
        self.columns = tuple(columns)
        self.repeated = 0  # rows whose values were asked for before
        self._clock = clock
        self._repeats = repeats or Repeats()
        self._remembered = RememberedOutcomes()

    def adopt(self, fresh: DistinctJudge) -> None:
        """Pass the function on, and forget the outcomes of the function before it."""
        self.asked.adopt(fresh.asked)
        self._remembered.clear()

    def begin_task(self) -> None:
        """Let the asked judge prepare."""
        self.asked.begin_task()
        self._remembered.clear()

    def counts(self) -> Counts:
        """What the asked judge tells."""
        return self.asked.counts()

    def judge(self, view: View) -> Verdict:
        """Judge each row, by its own or by an equal row."""
        way = self._repeats.choose(len(view)) if self._can_be_found(view) else Way.EACH_ROW
        if way is Way.EACH_ROW:
            return self._ask(view)
        start = self._clock()
        values = distinct_values([view.codes(number) for number in self.columns])
        finding = self._clock() - start
        if way is Way.EACH_VALUE:
            verdict = self._ask(view[values.first_rows])
            self._repeats.note_values(rows=len(view), values=len(values), finding=finding)
            self.repeated += len(view) - len(values)
            return _spread(values, _outcomes(verdict), verdict.reasons)
        return self._ask_for_new(view, values, finding)

    def _can_be_found(self, view: View) -> bool:
        return bool(self.columns) and all(can_be_found(view.kind(number)) for number in self.columns)

    def _ask(self, view: View) -> Verdict:
        start = self._clock()
        verdict = self.asked.judge(view)
        self._repeats.note_asked(len(view), self._clock() - start)
        return verdict

    def _ask_for_new(self, view: View, values: DistinctValues, finding: float) -> Verdict:
        """Ask for the distinct values that are not remembered, and remember them."""
        start = self._clock()
        own = view[values.first_rows]
        columns = [own.column(number) for number in self.columns]
        keys = self._remembered.keys(columns)
        outcomes = self._remembered.outcomes(keys)
        new = np.flatnonzero(outcomes == NOT_KNOWN)
        looking_up = self._clock() - start
        reasons = dict[int, str]()
        if new.size:
            verdict = self._ask(own[new])
            outcomes[new] = _outcomes(verdict)
            reasons = {int(new[row]): reason for row, reason in (verdict.reasons or {}).items()}
            start = self._clock()
            kept = new[outcomes[new] != FAILED].tolist()
            size = sum(column.nbytes for column in columns) * len(kept) // len(keys)
            self._remembered.remember([keys[value] for value in kept], outcomes[kept].tolist(), size)
            looking_up += self._clock() - start
        returned = len(values) - new.size
        self._repeats.note_values(
            rows=len(view), values=len(values), finding=finding, returned=returned, looking_up=looking_up
        )
        self.repeated += len(view) - new.size
        return _spread(values, outcomes, reasons)


def _outcomes(verdict: Verdict) -> Outcomes:
    """A verdict as one number for each row."""
    outcomes = np.where(verdict.true, TRUE, FALSE).astype(np.int8)
    if verdict.null is not None:
        outcomes[verdict.null] = UNKNOWN
    if verdict.failed is not None:
        outcomes[verdict.failed] = FAILED
    return outcomes


def _spread(values: DistinctValues, outcomes: Outcomes, reasons: dict[int, str] | None) -> Verdict:
    """The verdict of all rows by the outcomes of their values."""
    by_row = outcomes[values.codes]
    null, failed = by_row == UNKNOWN, by_row == FAILED
    if not reasons:
        return Verdict(by_row == TRUE, null if null.any() else None)
    rows: Integers = np.flatnonzero(failed)
    by_failed_row = {row: reasons[int(values.codes[row])] for row in rows.tolist()}
    return Verdict(by_row == TRUE, null if null.any() else None, failed, by_failed_row)


def distinct_judge(
    make: Callable[[Sequence[int], Sequence[int]], Judge], columns: Sequence[int], codes: Sequence[int]
) -> DistinctJudge:
    """The judge that this maker makes, asked once for each distinct value of the columns where that pays."""
    return DistinctJudge(make(columns, codes), columns)
