"""A micro-batch that is too large to be taken in at once comes in pieces, with the same results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.mjoin import CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.shares import choose_shares
from thalweg.spark.joins import spec as join_spec
from thalweg.spark.joins.batch import join_at_once
from thalweg.spark.joins.packing import GREETING, Layout
from thalweg.spark.joins.spec import JoinSpec

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])


def spec_of(window: TimeWindow | CountWindow, folder: Path) -> JoinSpec:
    inputs = tuple(Input(name, SCHEMA, "t", window) for name in "ABC")
    equal = (frozenset((name, "k") for name in "ABC"),)
    query = JoinQuery(inputs, equal, select=tuple((name, "t", name) for name in "ABC"))
    shares = choose_shares({name: frozenset([0]) for name in "ABC"}, dict.fromkeys("ABC", 1.0), 1)
    return JoinSpec("key", Layout(query, shares), {}, str(folder))


def packed(batches: int) -> list[tuple[int, bytes]]:
    random, found = np.random.default_rng(0), []
    for number in range(batches):
        columns = [random.integers(0, 9, 20), 5 * number + random.integers(0, 20, 20)]
        found.append((number % 3, pack(pa.record_batch(columns, schema=SCHEMA))))
    return found


def test_pieces_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, rows = spec_of(TimeWindow(30), tmp_path), packed(12)
    table = pa.table({"input": [number for number, _ in rows], "payload": [payload for _, payload in rows]})
    label, found = spec.layout.labels[0], []
    for most in (1 << 20, 1500, 1):
        monkeypatch.setattr(join_spec, "ARRIVING_BYTES", most)
        results = [unpack(one) for one in join_at_once(spec, label, table)]
        found.append(Counter(str(row) for one in results for row in one.to_pylist()))
    assert found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("window", "pieces"), [(TimeWindow(30), 4), (CountWindow(2), 1)])
def test_pieces_are_bounded_unless_rows_wait(
    window: TimeWindow | CountWindow, pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = packed(12)
    monkeypatch.setattr(join_spec, "ARRIVING_BYTES", 3 * max(len(payload) for _, payload in rows))
    greetings = list[bytes]()
    found = list(spec_of(window, tmp_path).arrivals([(GREETING, b"hello"), *rows], 0, PLAIN, greetings))
    assert greetings == [b"hello"]
    assert len(found) == pieces
    assert sum(batch.num_rows for one in found for batch in one.values()) == 12 * 20
    assert list(spec_of(window, tmp_path).arrivals([], 0, PLAIN, [])) == [{}]
