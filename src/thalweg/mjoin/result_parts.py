"""Combinations of row numbers as results: record batches of bounded size, so a step never holds all its results."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa

from thalweg.mjoin.keys import equal, is_exact
from thalweg.mjoin.marks import all_meet_here, meet_here
from thalweg.mjoin.query import JoinQuery
from thalweg.mjoin.step import ResultChange, Statistics, Step
from thalweg.mjoin.window import Window
from thalweg.ordering.types import Integers

PART_BYTES = 8 << 20  # of results at once, roughly: so many that the cost of sending a part does not matter
FIRST_PART, MOST_PART = 1 << 12, 1 << 17  # results at once: while it is not known how wide they are, and at most


class ResultParts:
    """Makes parts of a step of its results; learns how wide results are."""

    def __init__(self, query: JoinQuery, windows: Mapping[str, Window]) -> None:
        self._query, self._windows = query, windows
        self._part_rows = FIRST_PART  # results to give at once

    def full(
        self, changes: Iterable[ResultChange], statistics: Statistics
    ) -> Generator[Step, None, list[ResultChange]]:
        """Results as parts of a step, but for the last results, which fill no part."""
        waiting, size = list[ResultChange](), 0
        for sign, rows in changes:
            start, end = 0, rows[self._query.names[0]].size
            while start < end:
                stop = min(start + self._part_rows - size, end)
                waiting.append(ResultChange(sign, {name: numbers[start:stop] for name, numbers in rows.items()}))
                size, start = size + stop - start, stop
                if size == self._part_rows:
                    yield self.part(waiting, statistics)
                    waiting, size = [], 0
        return waiting

    def part(self, changes: list[ResultChange], statistics: Statistics) -> Step:
        """A part of a step."""
        batch = self._result_batch(changes)
        statistics.results += batch.num_rows
        if batch.num_rows:
            self._part_rows = min(max(PART_BYTES * batch.num_rows // max(batch.nbytes, 1), 1), MOST_PART)
        return Step(batch, {}, {}, (), statistics)

    def _result_batch(self, changes: list[ResultChange]) -> pa.RecordBatch:
        """Results as rows."""
        query, nothing = self._query, np.empty(0, np.int64)
        rows = {name: np.concatenate([nothing, *(each.rows[name] for each in changes)]) for name in query.names}
        signs = np.repeat(
            np.array([each.sign for each in changes], np.int8), [each.rows[query.names[0]].size for each in changes]
        )
        for choose in (self.with_equal_keys, self._that_count_here):
            chosen = choose(rows)
            if chosen is not None:
                rows, signs = {name: numbers[chosen] for name, numbers in rows.items()}, signs[chosen]
        columns = [self._windows[name].take(rows[name], column) for name, column, _ in query.select]
        if query.event_time_of:
            times = [self._windows[name].ring("times", rows[name]) for name in query.event_time_of]
            columns.append(pa.array(reduce(np.maximum, times)))
        if query.output == "changelog":
            columns.append(pa.array(signs))
        return pa.record_batch(columns, schema=query.result_schema)

    def with_equal_keys(self, rows: Mapping[str, Integers]) -> Integers | None:
        """Which results have equal keys where keys were joined by hash; None if all surely have."""
        same = None
        for equal_columns in self._query.equalities:
            columns = dict(sorted(equal_columns))
            (first, column), *others = columns.items()
            if not is_exact(self._query.input(first).schema.field(column).type):
                values = self._windows[first].take(rows[first], column)
                for name, other in others:
                    agree = equal(values, self._windows[name].take(rows[name], other))
                    same = agree if same is None else same & agree
        return None if same is None or same.all() else np.flatnonzero(same)

    def _that_count_here(self, rows: Mapping[str, Integers]) -> Integers | None:
        """Which results count in this cell, where rows of several layouts meet; None if all surely do."""
        if all_meet_here(segment.mark for window in self._windows.values() for segment in window.segments):
            return None
        return np.flatnonzero(meet_here([self._windows[name].marks(numbers) for name, numbers in rows.items()]))
