"""Tables whose rows are replaced while the cell runs, against a model that knows nothing but lists of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow
from thalweg.mjoin.catch_up import catch_up
from thalweg.mjoin.difference import difference

STREAM = pa.schema([("key", pa.int64()), ("at", pa.int64()), ("value", pa.int64())])
TABLE = pa.schema([("key", pa.int64()), ("value", pa.int64())])
WINDOWS = {"A": 10, "B": 6}
NAMES = ("A", "T", "B")
QUERY = JoinQuery(
    (
        Input("A", STREAM, "at", TimeWindow(WINDOWS["A"])),
        Input("T", TABLE),
        Input("B", STREAM, "at", TimeWindow(WINDOWS["B"])),
    ),
    (frozenset((name, "key") for name in NAMES),),
    select=tuple((name, "value", name) for name in NAMES),
)
STEP_TIME = 4  # by which the time of rows goes on from step to step

small = st.integers(0, 2)
stream_rows = st.lists(st.tuples(small, st.integers(0, STEP_TIME), small), max_size=4)
versions = st.one_of(st.none(), st.lists(st.tuples(small, small), max_size=4))
steps = st.lists(st.tuples(stream_rows, stream_rows, versions), max_size=6)
restarts = st.sampled_from(["goes on", "is loaded", "catches up"])

Row = tuple[int, ...]


@dataclass
class Model:
    """All rows that have come, and the table as it is now."""

    table: list[Row] = field(default_factory=list)
    streams: dict[str, list[Row]] = field(default_factory=lambda: {"A": [], "B": []})

    def results_with(self, new: dict[str, list[Row]]) -> Counter[Row]:
        """The results that rows make which have just come, with the table as it is now."""
        before = self._join(self.streams, self.table)
        for name, rows in new.items():
            self.streams[name] = [*self.streams[name], *rows]
        return self._join(self.streams, self.table) - before

    def current(self, watermark: int) -> Counter[Row]:
        """The join of the rows that are in their windows, and of the table."""
        alive = {
            name: [row for row in rows if row[1] + WINDOWS[name] > watermark] for name, rows in self.streams.items()
        }
        return self._join(alive, self.table)

    def _join(self, streams: dict[str, list[Row]], table: list[Row]) -> Counter[Row]:
        return Counter(
            (a[2], t[1], b[2])
            for a, t, b in product(streams["A"], table, streams["B"])
            if a[0] == t[0] == b[0] and max(a[1], b[1]) - a[1] < WINDOWS["A"] and max(a[1], b[1]) - b[1] < WINDOWS["B"]
        )


def batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.record_batch([pa.array(column, pa.int64()) for column in columns], schema=schema)


@dataclass
class Run:
    """A cell with its state, which may be made anew between two steps."""

    query: JoinQuery
    state: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cell, self.behind, self.present = Cell(self.query), Cell(self.query), set[int]()

    def step(self, new: dict[str, pa.RecordBatch], watermark: int, tables: dict[str, pa.RecordBatch]) -> list[Row]:
        done = self.cell.step(new, watermark, tables)
        for number in done.removed:
            del self.state[number]
        self.state |= done.added
        return [tuple(row.values()) for row in done.results.to_pylist()]

    def restart(self, kind: str) -> None:
        watermark = self.cell.watermark
        if kind == "is loaded":
            self.cell = Cell.load(self.query, self.state, watermark)
        if kind == "catches up":
            present = self.present & set(self.state)
            missing = {number: data for number, data in self.state.items() if number not in present}
            catch_up(self.behind, present, missing, watermark)
            self.cell = self.behind
        self.behind, self.present = Cell.load(self.query, self.state, watermark), set(self.state)


@settings(max_examples=30)
@given(steps, st.lists(restarts, min_size=6, max_size=6))
def test_results_have_the_table_that_holds_when_the_last_row_comes(
    given_steps: list[tuple[list[Row], list[Row], list[Row] | None]], kinds: list[str]
) -> None:
    model, run = Model(), Run(QUERY)
    for number, (a, b, version) in enumerate(given_steps):
        new: dict[str, list[Row]] = {
            name: [(key, at + number * STEP_TIME, value) for key, at, value in rows]
            for name, rows in (("A", a), ("B", b))
        }
        model.table = model.table if version is None else version
        tables = {} if version is None else {"T": batch(version, TABLE)}
        found = run.step({name: batch(rows, STREAM) for name, rows in new.items()}, number * STEP_TIME, tables)
        assert Counter(found) == model.results_with(new)
        run.restart(kinds[number])


@settings(max_examples=30)
@given(steps, st.lists(restarts, min_size=6, max_size=6))
def test_a_changelog_follows_the_table(
    given_steps: list[tuple[list[Row], list[Row], list[Row] | None]], kinds: list[str]
) -> None:
    model, run, total = Model(), Run(replace(QUERY, output="changelog")), Counter[Row]()
    for number, (a, b, version) in enumerate(given_steps):
        new: dict[str, list[Row]] = {
            name: [(key, at + number * STEP_TIME, value) for key, at, value in rows]
            for name, rows in (("A", a), ("B", b))
        }
        model.table = model.table if version is None else version
        model.results_with(new)
        tables = {} if version is None else {"T": batch(version, TABLE)}
        for *row, change in run.step(
            {name: batch(rows, STREAM) for name, rows in new.items()}, number * STEP_TIME, tables
        ):
            total[tuple(row)] += change
        assert +total == model.current(number * STEP_TIME)
        assert not -total
        run.restart(kinds[number])


def test_a_changelog_says_nothing_of_rows_that_stay() -> None:
    cell = Cell(replace(QUERY, output="changelog"))
    streams = {name: batch([(1, 0, 5)], STREAM) for name in WINDOWS}
    cell.step(streams, 0, {"T": batch([(1, 7), (1, 8)], TABLE)})
    step = cell.step({}, 0, {"T": batch([(1, 9), (1, 7)], TABLE)})
    assert sorted((row["T"], row["change"]) for row in step.results.to_pylist()) == [(8, -1), (9, 1)]


@given(st.lists(st.tuples(small, small)), st.lists(st.tuples(small, small)))
def test_the_difference_of_two_versions(before: list[Row], after: list[Row]) -> None:
    gone, come = difference(batch(before, TABLE), batch(after, TABLE))
    assert Counter(before[place] for place in gone) == Counter(before) - Counter(after)
    assert Counter(after[place] for place in come) == Counter(after) - Counter(before)


def test_nested_values_and_null_are_compared_too() -> None:
    before = pa.record_batch({"a": [[1], [2], None], "b": [np.nan, None, 0.0]})
    after = pa.record_batch({"a": [[2], None, [1]], "b": [None, 1.0, np.nan]})
    assert [places.tolist() for places in difference(before, after)] == [[2], [1]]


def test_a_large_table_is_kept_in_several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("cell", "window"):
        monkeypatch.setattr(f"thalweg.mjoin.{module}.LARGE_SEGMENT", 16_000)
    large = pa.record_batch([np.arange(20_000), np.arange(20_000)], schema=TABLE)
    cell = Cell(QUERY)
    step = cell.step({}, 0, {"T": large})
    assert len(step.added) == 20
    assert max(map(len, step.added.values())) < 20_000
    assert len(cell.step({}, 0, {"T": large}).removed) == 20  # they have not been merged
