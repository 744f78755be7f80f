"""Saved state that is damaged, or made by somebody else with a right digest, is refused by a `SavedStateError`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.fuzz.inputs import any_bytes, changed_bytes, changed_values, refuses_clearly, try_inputs

from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.mjoin.layouts import ActiveLayouts, HeavyValue
from thalweg.mjoin.segments import pack_segment, unpack_segment
from thalweg.ordering import Profile
from thalweg.sealed import SavedStateError, seal, unseal
from thalweg.spark.filters.worker.report import WorkerReport
from thalweg.spark.joins.idle import StreamTime
from thalweg.spark.joins.state import CellState, LedgerState, StoredSegment
from thalweg.spark.session.panes import Pane
from thalweg.spark.session.position import QueryPosition, SessionPosition, WaitingFile
from thalweg.tables.keys import KeySet

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
QUERY = JoinQuery(
    (Input("A", SCHEMA, "t", TimeWindow(100)), Input("B", SCHEMA, "t", TimeWindow(100))),
    (frozenset([("A", "k"), ("B", "k")]),),
    select=(("A", "t", "a"), ("B", "t", "b")),
)


@dataclass(frozen=True)
class Saved:
    """A kind of saved state: good bytes of it, and the function that reads them."""

    good: bytes
    load: Callable[[bytes], object]

    @property
    def header(self) -> tuple[str, int]:
        """Its kind and version."""
        kind, _, version = self.good.partition(b"\n")[0].decode().removeprefix("thalweg ").rpartition(" ")
        return kind, int(version)


def profile() -> Profile:
    known = Profile(2, 8)
    known.insert(np.array([1, 2, 3]), np.array([[1.0, 2.0]] * 3), 5.0)
    return known


CELL = CellState(
    token="v1",  # noqa: S106 - the name of a version
    watermark=7,
    segments={3: StoredSegment("3-v1", 99)},
    counts={"A": 3},
    layouts=ActiveLayouts(2, (HeavyValue(0, 17, "A"),), before=()),
    knowledge={"orders": {"A": ["B"]}},
    owner="thalweg-1 00",
    timer=8,
    stream_times={"A": StreamTime(1, 2, "run")},
)
POSITION = SessionPosition(
    batch=3,
    latest={"A": 7},
    queries={"q-1": QueryPosition("q", delivered=2, schedule={"plan": 1})},
    files=(WaitingFile("A", "segments/3/0f.parquet", 9, 7, 100),),
    panes={"A": {10: Pane(5, 9, {"all": 9})}},
)
REPORT = WorkerReport("run", "signature", ["a", "b"], [1, 0], profile(), 3, 1, [3, 3], [1, 1], [0, 0], [0.1, 0.2])
SEGMENT = Saved(
    pack_segment(QUERY, "A", pa.record_batch({"k": [1], "t": [2]}, schema=SCHEMA)),
    lambda data: unpack_segment(QUERY, data),
)
KINDS = [
    Saved(profile().to_bytes(), Profile.from_bytes),
    Saved(REPORT.to_bytes(), WorkerReport.from_bytes),
    Saved(CELL.to_bytes(), CellState.from_bytes),
    Saved(LedgerState("2", {"A": 1}).to_bytes(), LedgerState.from_bytes),
    Saved(POSITION.to_bytes(), SessionPosition.from_bytes),
    Saved(KeySet(pa.table({"k": [1, 2], "s": ["a", "b"]})).to_bytes(), KeySet.from_bytes),
    SEGMENT,
]
saved_kinds = pytest.mark.parametrize("saved", KINDS, ids=lambda saved: saved.header[0].replace(" ", "-"))


@saved_kinds
def test_good_state_is_read(saved: Saved) -> None:
    saved.load(saved.good)


@saved_kinds
def test_a_newer_version_is_refused(saved: Saved) -> None:
    kind, version = saved.header
    newer = seal(kind, version + 1, *unseal(kind, version, saved.good))
    with pytest.raises(SavedStateError, match=f"has version {version + 1}, and this Thalweg reads version {version}"):
        saved.load(newer)


@saved_kinds
def test_damaged_bytes_are_refused(saved: Saved) -> None:
    def check(damaged: bytes) -> None:
        if damaged != saved.good:
            with pytest.raises(SavedStateError):
                saved.load(damaged)

    try_inputs(changed_bytes(saved.good), check)


@saved_kinds
def test_parts_that_do_not_fit_are_refused(saved: Saved) -> None:
    """The digest is right, but the parts are not: nobody but Thalweg should write them, and somebody did."""
    good = unseal(*saved.header, saved.good)

    def make(random: Random) -> list[bytes]:
        parts, place = list(good), random.randint(0, len(good))
        changed = changed_bytes(good[place])(random) if place < len(good) else any_bytes(random, 9)
        parts[place : place + random.randint(0, 1)] = [changed]
        return parts

    def check(parts: list[bytes]) -> None:
        refuses_clearly(lambda: saved.load(seal(*saved.header, *parts)), SavedStateError)

    try_inputs(make, check)


@pytest.mark.parametrize("saved", KINDS[:5], ids=lambda saved: saved.header[0].replace(" ", "-"))
def test_fields_that_do_not_fit_are_refused(saved: Saved) -> None:
    text, *others = unseal(*saved.header, saved.good)

    def check(fields: Any) -> None:  # noqa: ANN401 - any value that JSON has
        refuses_clearly(lambda: saved.load(seal(*saved.header, json.dumps(fields).encode(), *others)), SavedStateError)

    try_inputs(changed_values(json.loads(text)), check)
