"""Rows that count one by one in outer, semi and anti joins: which of them have a match, and when that is known.

A preserved row can be matched until the watermark passes its deadline, so that is when it is known to have none. Rows
of the other inputs are kept longer than their windows, by the window of the preserved input (`JoinQuery.retention`):
so the matches of a row that leaves are all still there, and its window needs no record of rows that were matched. In a
semi join a row counts when its first match comes. (Decision 0091)

A changelog tells of each preserved row in its window whether it has a match now. After a step, the combinations that
a row was in before and is in now are found in one search, since rows that expire with the step are still there.
(Decision 0176)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.mjoin.marks import unmarked
from thalweg.mjoin.probing import ProbePlan, Prober
from thalweg.mjoin.query import JoinQuery
from thalweg.mjoin.window import BEGINNING, Segment
from thalweg.ordering.types import Integers

Rows = Mapping[str, Integers]  # the numbers of the rows of combinations, by input
Choose = Callable[[Rows], Integers | None]


class RowChanges(NamedTuple):
    """The numbers of preserved rows that are no longer results, and that are new results."""

    ended: Integers
    begun: Integers


class PreservedRows:
    """Finds the preserved rows of a cell that have matches.

    `surely` chooses the combinations whose keys are equal, where an index has found them by hash.
    """

    def __init__(self, query: JoinQuery, prober: Prober, surely: Choose) -> None:
        self._query, self._prober, self._surely = query, prober, surely
        self._floors = dict.fromkeys(query.names, BEGINNING)  # rows that have left their windows are found, too

    def unmatched(self, plan: ProbePlan, rows: Integers) -> Integers:
        """Those of some rows, in ascending order, that have no match."""
        has_match = np.zeros(rows.size, np.bool_)
        for combinations in self._combinations(plan, rows):
            has_match[np.searchsorted(rows, combinations[plan.stream])] = True
        return rows[~has_match]

    def first_matched(self, plan: ProbePlan, rows: Integers, segment: Segment, name: str) -> Integers:
        """Those of some rows that had no match before an input got a new segment."""
        if name == plan.stream:
            return rows
        had_match = np.zeros(rows.size, np.bool_)
        for combinations in self._combinations(plan, rows):
            earlier = combinations[name] < segment.first
            had_match[np.searchsorted(rows, combinations[plan.stream][earlier])] = True
        return rows[~had_match]

    def changes(self, plan: ProbePlan, rows: Integers, ends: Mapping[str, int], before: int, now: int) -> RowChanges:
        """Which of some rows, in ascending order, were results before a step, or are results since, but not both.

        `ends` has the number of the first row that came with the step, for each input, and `before` and `now` are the
        watermarks before and after it.
        """
        windows, own = self._prober.windows, self._prober.windows[plan.stream]
        had_match, has_match = np.zeros(rows.size, np.bool_), np.zeros(rows.size, np.bool_)
        for combinations in self._combinations(plan, rows, dict.fromkeys(ends, before)):
            places = np.searchsorted(rows, combinations[plan.stream])
            was = [numbers < ends[name] for name, numbers in combinations.items()]
            is_now = [windows[name].ring("deadlines", numbers) > now for name, numbers in combinations.items()]
            had_match[places[np.logical_and.reduce(was)]] = True
            has_match[places[np.logical_and.reduce(is_now)]] = True
        deadlines, needs_match = own.ring("deadlines", rows), not self._query.keeps_unmatched
        was_result = (rows < ends[plan.stream]) & (deadlines > before) & (had_match == needs_match)
        is_result = (deadlines > now) & (has_match == needs_match)
        return RowChanges(ended=rows[was_result & ~is_result], begun=rows[is_result & ~was_result])

    def matched(self, name: str, combinations: Rows) -> Integers:
        """The rows of an input in some combinations, each once and in ascending order."""
        chosen = self._surely(combinations)
        rows = combinations[name] if chosen is None else combinations[name][chosen]
        return np.unique(rows)

    def result(self, name: str, rows: pa.RecordBatch, sign: int = 1) -> pa.RecordBatch:
        """Rows of an input as results that begin or end: the columns of other inputs are NULL."""
        query, rows = self._query, unmarked(rows)
        columns = [
            rows[column] if source == name else pa.nulls(rows.num_rows, query.input(source).schema.field(column).type)
            for source, column, _ in query.select
        ]
        if query.event_time_of:
            time = query.input(name).time
            columns.append(rows[time] if time else pa.nulls(rows.num_rows, pa.int64()))
        if query.output == "changelog":
            columns.append(pa.array(np.full(rows.num_rows, sign, np.int8)))
        return pa.record_batch(columns, schema=query.result_schema)

    def _combinations(self, plan: ProbePlan, rows: Integers, floors: Mapping[str, int] | None = None) -> Iterator[Rows]:
        """All combinations that rows have ever been in, or those of rows with a later deadline than `floors`."""
        for found in self._prober.run(plan, rows, floors or self._floors):
            chosen = self._surely(found.rows)
            yield found.rows if chosen is None else {name: numbers[chosen] for name, numbers in found.rows.items()}
