"""The index finds the matches that a loop over all rows finds, by kernels and by NumPy, while its ring goes round."""

from __future__ import annotations

import json
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.mjoin import index as index_module
from thalweg.mjoin.index import Index, ProbeKeys, joined


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 9))
def test_matches_are_those_of_a_loop(seed: int, by_kernels: bool, block: int) -> None:  # noqa: FBT001 - drawn
    random = np.random.default_rng(seed)
    with (
        patch.object(index_module, "compiled", lambda _group: by_kernels),
        patch.object(index_module, "BLOCK", block),
        patch.object(index_module, "FIRST_BLOCK", 1),
    ):
        index, start, end = Index(16), 0, 0
        rows: dict[int, tuple[int, int, int]] = {}
        for _ in range(6):
            size = int(random.integers(0, 9))
            start = max(start, end + size - 16)  # the ring is full: the oldest have to go
            keys, times = random.integers(-2, 3, size), random.integers(0, 20, size)
            deadlines = times + random.integers(1, 20, size)
            index.insert(end, keys, times, deadlines)
            columns = (keys.tolist(), times.tolist(), deadlines.tolist())
            rows |= dict(enumerate(zip(*columns, strict=True), start=end))
            end += size
        wanted = ProbeKeys(random.integers(-3, 4, 12), random.integers(0, 30, 12), random.integers(0, 30, 12))
        floor = int(random.integers(-5, 25))
        expected = [
            (place, row, max(latest, time), min(before, deadline))
            for place, (key, latest, before) in enumerate(zip(*(each.tolist() for each in wanted), strict=True))
            for row, (other, time, deadline) in rows.items()
            if row >= start and key == other and max(latest, floor) < deadline and time < before
        ]
        found = joined(index.matches(wanted, index.newest(wanted.keys), start, floor))
        assert sorted(zip(*(each.tolist() for each in found), strict=True)) == sorted(expected)
        first = index.first(wanted, start, floor)
        newest = {place: row for place, row, *_ in expected}  # the last of each, which is the newest
        assert {place: row for place, row in enumerate(first.tolist()) if row >= start} == newest
        resumed = joined(index.matches(wanted, first, start, floor))
        assert sorted(zip(*(each.tolist() for each in resumed), strict=True)) == sorted(expected)
        assert index.visited >= len(expected)


SCRIPT = """
import json, sys
import numpy as np
import pyarrow as pa
from thalweg.kernels import compile_kernels, compiled
from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow

if sys.argv[1] == "compiled":
    compile_kernels("mjoin")
random = np.random.default_rng(0)
schema = pa.schema([("key", pa.int64()), ("at", pa.int64())])
names = ("A", "B", "C")
query = JoinQuery(
    tuple(Input(name, schema, "at", TimeWindow(300)) for name in names),
    (frozenset((name, "key") for name in names),),
    select=tuple((name, "at", name) for name in names),
)
cell = Cell(query)
answers = []
for step in range(9):
    times = {name: random.integers(100 * step, 100 * step + 100, 200) for name in names}
    batches = {name: pa.record_batch([random.integers(0, 300, 200), at], schema=schema) for name, at in times.items()}
    done = cell.step(batches, 100 * step - 100)
    rows = sorted(zip(*(column.to_pylist() for column in done.results.columns)))
    answers.append([rows, done.statistics.to_dict()])
print(json.dumps([compiled("mjoin"), "numba" in sys.modules, answers]))
"""


def answers(mode: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.thorough
def test_numpy_and_compiled_kernels_agree() -> None:
    plain, compiled = answers("plain"), answers("compiled")
    assert plain[:2] == [False, False]  # a short-lived worker never even imports Numba
    assert compiled[:2] == [True, True]
    assert plain[2] == compiled[2]
