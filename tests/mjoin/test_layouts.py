"""Cells with heavy values split, by layouts that change, together give the results of a single cell, each once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.mjoin import BEGINNING, Cell, Input, JoinQuery, TimeWindow
from thalweg.mjoin.catch_up import catch_up
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts, HeavyValue, split_by_cells
from thalweg.mjoin.marks import ALWAYS, ELSEWHERE, counted_here, mark, together
from thalweg.mjoin.shares import Shares, choose_shares
from thalweg.ordering.types import Integers

KEYS = 5  # the first of which is in half of the rows
HASHES = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, KEYS)
STEP = 10  # microseconds
GRAPHS = {
    "common": [["A.x", "B.x", "C.x"]],
    "pair": [["A.x", "B.x"]],
    "linear": [["A.x", "B.x"], ["B.y", "C.y"]],
    "cyclic": [["A.x", "B.x"], ["B.y", "C.y"], ["C.x", "A.y"]],
}
Output = Literal["append", "changelog"]


def query_of(graph: str, output: Output = "append", table: str = "") -> JoinQuery:
    classes = [frozenset((text[0], text[2]) for text in equal) for equal in GRAPHS[graph]]
    names = sorted({name for equal in classes for name, _ in equal})
    schema = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("id", pa.int64()), ("t", pa.int64())])
    windows = dict(zip(names, (TimeWindow(25), TimeWindow(40), TimeWindow(7)), strict=False))
    return JoinQuery(
        tuple(Input(name, schema) if name == table else Input(name, schema, "t", windows[name]) for name in names),
        tuple(classes),
        select=tuple((name, "id", name) for name in names),
        output=output,
    )


def shares_of(query: JoinQuery, cells: int, table: str = "") -> Shares:
    rates = {name: 0.0 if name == table else 1.0 for name in query.names}
    return choose_shares({name: frozenset(own) for name, own in query.key_columns.items()}, rates, cells)


def hashes_of(query: JoinQuery, shares: Shares, name: str, rows: pa.RecordBatch) -> dict[int, Integers]:
    own = {number: columns[0] for number, columns in query.key_columns[name].items() if shares.sizes[number] > 1}
    return {number: HASHES[rows[column].to_numpy()] for number, column in own.items()}


def any_rows(random: np.random.Generator, schema: pa.Schema, at: int, most: int = 12) -> pa.RecordBatch:
    size = int(random.integers(0, most))
    keys = [np.where(random.random(size) < 0.5, 0, random.integers(0, KEYS, size)) for _ in "xy"]
    columns = [*keys, random.integers(0, 10**9, size), at + random.integers(-STEP, STEP, size)]
    return pa.record_batch([pa.array(column, pa.int64()) for column in columns], schema=schema)


def any_heavy(random: np.random.Generator, query: JoinQuery, shares: Shares, table: str) -> tuple[HeavyValue, ...]:
    """Some values to split, mostly the frequent value, with one input spread or two."""
    heavy = []
    for number, equal in enumerate(query.equalities):
        for key in range(KEYS):
            if shares.sizes[number] > 1 and random.random() < (0.7 if key == 0 else 0.1):
                first, *others = random.permutation(sorted({name for name, _ in equal} - {table})).tolist()
                lines = [each for each in range(2, shares.sizes[number]) if shares.sizes[number] % each == 0]
                value = HeavyValue(number, int(HASHES[key]), first)
                if others and lines and random.random() < 0.7:
                    value = value._replace(lines=int(random.choice(lines)), across=others[0])
                heavy.append(value)
    return tuple(heavy)


class Grid:
    """All cells of a join, each with its state and two workers that step it and catch up with each other."""

    def __init__(self, query: JoinQuery, shares: Shares, table: str) -> None:
        self.query, self.shares, self.table = query, shares, table
        self.cells = [[Cell(query), Cell(query)] for _ in range(shares.cells)]
        self.known: list[list[set[int]]] = [[set(), set()] for _ in self.cells]  # segments that each worker has
        self.states: list[dict[int, bytes]] = [{} for _ in self.cells]
        self.watermarks: list[int | None] = [None] * shares.cells
        self.counted: Counter[str] = Counter()

    def worker(self, number: int, random: np.random.Generator) -> int:
        """Some worker that has the cell as its state says."""
        worker, state, watermark = int(random.integers(2)), self.states[number], self.watermarks[number]
        if random.random() < 0.2:
            self.cells[number][worker] = Cell.load(self.query, state, watermark)
        else:
            known = self.known[number][worker]
            missing = {segment: data for segment, data in state.items() if segment not in known}
            catch_up(self.cells[number][worker], known & state.keys(), missing, watermark)
        return worker

    def step(
        self, batches: dict[str, pa.RecordBatch], watermark: int, layouts: ActiveLayouts, random: np.random.Generator
    ) -> list[pa.RecordBatch]:
        arrivals: list[dict[str, list[pa.RecordBatch]]] = [{} for _ in self.cells]
        for name, batch in batches.items():
            if name == self.table:
                for cell, own in enumerate(arrivals):
                    own[name] = [mark(batch, ALWAYS | (ELSEWHERE if cell else 0))]
                continue
            for cells, rows in split_by_cells(
                layouts, self.shares, name, hashes_of(self.query, self.shares, name, batch), batch
            ):
                for cell in cells:
                    arrivals[cell].setdefault(name, []).append(rows)
        results = []
        for number, own in enumerate(arrivals):
            if not own and self.query.output == "append":
                continue  # no result depends on rows that expire there
            worker = self.worker(number, random)
            given_rows = {name: together(several, self.query.input(name).schema) for name, several in own.items()}
            step = self.cells[number][worker].step(given_rows, watermark)
            for gone in step.removed:
                del self.states[number][gone]
            self.states[number] |= step.added
            self.known[number][worker], self.watermarks[number] = set(self.states[number]), watermark
            results.append(step.results)
            for name, rows in given_rows.items():
                if self.shares.is_first(name, number):
                    self.counted[name] += int(np.count_nonzero(counted_here(rows)))
        return results


def rows_of(results: list[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for batch in results for row in batch.to_pylist())


@pytest.mark.thorough
@pytest.mark.parametrize("output", ["append", "changelog"])
@pytest.mark.parametrize("graph", GRAPHS)
@settings(max_examples=12)
@given(cells=st.integers(2, 9), seed=st.integers(0, 10**6), has_table=st.booleans())
def test_each_result_comes_once_whatever_the_layouts(
    graph: str, output: Output, cells: int, seed: int, *, has_table: bool
) -> None:
    table = "B" if has_table else ""
    query = query_of(graph, output, table)
    random, shares = np.random.default_rng(seed), shares_of(query, cells, table)
    alone, grid = Cell(query), Grid(query, shares, table)
    layouts, sent, deadlines, watermark = PLAIN, Counter[str](), [BEGINNING, BEGINNING], BEGINNING
    for number in range(8):
        batches = {
            source.name: any_rows(random, source.schema, number * STEP)
            for source in query.inputs
            if (source.time and random.random() < 0.8) or (source.name == table and not number)
        }
        sent.update({name: batch.num_rows for name, batch in batches.items()})
        for name, batch in batches.items():
            window = query.input(name).window
            if isinstance(window, TimeWindow) and batch.num_rows:
                deadlines[1] = max(deadlines[1], max(batch["t"].to_pylist()) + window.microseconds)
        expected = alone.step(batches, watermark)
        assert rows_of(grid.step(batches, watermark, layouts, random)) == rows_of([expected.results])
        watermark = max(watermark, number * STEP - int(random.choice([STEP, 2 * STEP])))
        if layouts.before is not None and watermark >= deadlines[0]:
            layouts = replace(layouts, before=None)
        if layouts.before is None and random.random() < 0.6:
            layouts = ActiveLayouts(layouts.generation + 1, any_heavy(random, query, shares, table), layouts.heavy)
            deadlines = [deadlines[1], BEGINNING]
    assert grid.counted == +sent
