"""A step gives its results in parts of bounded size, which together are its results."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest

from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow, result_parts

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64()), ("text", pa.string())])


def query_of(output: Literal["append", "changelog"]) -> JoinQuery:
    return JoinQuery(
        tuple(Input(name, SCHEMA, "t", TimeWindow(30)) for name in "ABC"),
        (frozenset((name, "k") for name in "ABC"),),
        select=(("A", "t", "a"), ("B", "text", "b"), ("C", "t", "c")),
        output=output,
    )


def rows(random: np.random.Generator, at: int) -> pa.RecordBatch:
    size = int(random.integers(0, 16))
    texts = [str(number) * 20 for number in random.integers(0, 10, size)]
    return pa.record_batch([random.integers(0, 4, size), at + random.integers(0, 10, size), texts], schema=SCHEMA)


@pytest.mark.parametrize("output", ["append", "changelog"])
@pytest.mark.parametrize("part_bytes", [1, 3_000])
def test_parts_are_bounded_and_all_of_it(
    output: Literal["append", "changelog"], part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, query = np.random.default_rng(0), query_of(output)
    steps = [{name: rows(random, 10 * step) for name in "ABC"} for step in range(8)]
    whole = [Cell(query)]
    expected = [whole[0].step(arrivals, 10 * step - 10) for step, arrivals in enumerate(steps)]
    monkeypatch.setattr(result_parts, "PART_BYTES", part_bytes)
    monkeypatch.setattr(result_parts, "FIRST_PART", 7)
    cell, most, state = Cell(query), 0, dict[int, bytes]()
    for step, arrivals in enumerate(steps):
        parts = list(cell.parts(arrivals, 10 * step - 10))
        assert not any(part.added or part.removed or part.late for part in parts[:-1])
        found = Counter(str(row) for part in parts for row in part.results.to_pylist())
        assert found == Counter(map(str, expected[step].results.to_pylist()))
        assert parts[-1].statistics.results == expected[step].results.num_rows == found.total()
        most = max(most, *(part.results.num_rows for part in parts[bool(not step) :]), 0)
        state = {number: data for number, data in state.items() if number not in parts[-1].removed} | dict(
            parts[-1].added
        )
    assert most <= max(part_bytes // 30, 7)  # a result has at least 30 bytes
    again = Cell.load(query, state, 60)
    assert again.step({}, 70).results.num_rows == whole[0].step({}, 70).results.num_rows
