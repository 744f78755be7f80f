"""Two workers that step a cell by turns, each catching up with the other, give the results of a single worker."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow
from thalweg.mjoin.catch_up import catch_up

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("t", pa.int64())])
NAMES = ("A", "B", "C")


def query_of(output: Literal["append", "changelog"]) -> JoinQuery:
    return JoinQuery(
        inputs=tuple(
            Input(name, SCHEMA, "t", TimeWindow(window)) for name, window in zip(NAMES, (30, 60, 45), strict=True)
        ),
        equalities=(frozenset([("A", "k"), ("B", "k")]), frozenset([("B", "s"), ("C", "s")])),
        select=tuple((name, "t", name) for name in NAMES),
        output=output,
    )


def rows(random: np.random.Generator, at: int) -> pa.RecordBatch:
    size = int(random.integers(0, 12))
    columns = [random.integers(0, 3, size), random.integers(0, 3, size).astype(str), at + random.integers(0, 10, size)]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)


@pytest.mark.parametrize("output", ["append", "changelog"])
@settings(max_examples=10)
@given(
    seed=st.integers(0, 10**6),
    turns=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=8, max_size=20),
)
@example(
    seed=0, turns=[*[(0, False)] * 5, (0, True), (0, True), (0, False)]
)  # rows that a lost step let expire are back
def test_turns(output: Literal["append", "changelog"], seed: int, turns: list[tuple[int, bool]]) -> None:
    query, random = query_of(output), np.random.default_rng(seed)
    alone = Cell(query)
    workers: dict[int, tuple[Cell, set[tuple[int, bytes]]]] = {}  # with the segments that they have
    state: dict[int, bytes] = {}
    before, number = None, 0
    arrivals = {name: rows(random, 0) for name in NAMES}
    for worker, fails in turns:
        watermark = number * 10 - 5 if number else None
        if worker in workers:
            cell, had = workers[worker]
            present = {segment for segment, data in state.items() if (segment, data) in had}
            catch_up(
                cell, present, {segment: data for segment, data in state.items() if segment not in present}, before
            )
        else:
            cell = Cell.load(query, state, before)
        step = cell.step(arrivals, watermark)
        after = {segment: data for segment, data in state.items() if segment not in step.removed} | dict(step.added)
        workers[worker] = cell, set(after.items())
        if fails:  # Spark has lost the step after all: another worker, or the same, does it again
            continue
        expected = alone.step(arrivals, watermark)
        assert Counter(map(str, step.results.to_pylist())) == Counter(map(str, expected.results.to_pylist()))
        state, before, number = after, watermark, number + 1
        arrivals = {name: rows(random, number * 10) for name in NAMES}
