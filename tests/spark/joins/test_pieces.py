"""A micro-batch that is too large to be taken in at once comes in pieces, with the same results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.mjoin import CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.shares import choose_shares
from thalweg.spark.joins import arrivals as arrivals_module
from thalweg.spark.joins.arrivals import Arrivals
from thalweg.spark.joins.batch import join_at_once
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import SCHEMA as MESSAGES
from thalweg.spark.joins.messages import Message, MessageKind
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import JoinSpec

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])


def layout_of(window: TimeWindow | CountWindow) -> Layout:
    inputs = tuple(Input(name, SCHEMA, "t", window) for name in "ABC")
    equal = (frozenset((name, "k") for name in "ABC"),)
    query = JoinQuery(inputs, equal, select=tuple((name, "t", name) for name in "ABC"))
    shares = choose_shares({name: frozenset([0]) for name in "ABC"}, dict.fromkeys("ABC", 1.0), 1)
    return Layout(query, shares)


def messages_of_rows(batches: int) -> list[Message]:
    random, messages = np.random.default_rng(0), []
    for number in range(batches):
        columns = [random.integers(0, 9, 20), 5 * number + random.integers(0, 20, 20)]
        payload = pack(pa.record_batch(columns, schema=SCHEMA))
        messages.append(Message(MessageKind.ROWS, "ABC"[number % 3], payload))
    return messages


def test_pieces_give_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layout_of(TimeWindow(30))
    spec, label = JoinSpec(JoinPlan("key", layout, str(tmp_path))), layout.labels[0]
    table = pa.Table.from_batches([message.to(label) for message in messages_of_rows(12)], MESSAGES)
    found = []
    for most in (1 << 20, 1500, 1):
        monkeypatch.setattr(arrivals_module, "ARRIVING_BYTES", most)
        results = [unpack(packed) for packed in join_at_once(spec, label, table)]
        found.append(Counter(str(row) for batch in results for row in batch.to_pylist()))
    assert found[0]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("window", "pieces"), [(TimeWindow(30), 4), (CountWindow(2), 1)])
def test_pieces_are_bounded_unless_rows_wait(
    window: TimeWindow | CountWindow, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = messages_of_rows(12)
    monkeypatch.setattr(arrivals_module, "ARRIVING_BYTES", 3 * max(len(message.payload) for message in rows))
    arrivals = Arrivals(layout_of(window), 0, PLAIN, rows)
    found = list(arrivals.pieces())
    assert len(found) == pieces
    assert sum(batch.num_rows for piece in found for batch in piece.values()) == 12 * 20
    assert arrivals.layouts == PLAIN


def test_a_cell_without_rows_gets_one_piece_and_the_layouts() -> None:
    layouts = ActiveLayouts(3)
    told = Message(MessageKind.LAYOUTS, payload=json.dumps(layouts.to_json()).encode())
    arrivals = Arrivals(layout_of(TimeWindow(30)), 0, PLAIN, [Message(MessageKind.WAKE_UP), told])
    assert list(arrivals.pieces()) == [{}]
    assert arrivals.layouts == layouts
