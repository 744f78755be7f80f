"""A process that owned a cell ends while it steps the cell for another one: the rows are taken in again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.joins.harness import FakeState, step_cell

from thalweg.mjoin import CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.pack import pack
from thalweg.mjoin.query import JoinKind
from thalweg.mjoin.shares import Shares
from thalweg.spark.joins import arrivals as arrivals_module
from thalweg.spark.joins import operator
from thalweg.spark.joins.cell_owner import CellOwner, NewRows, OwnedCell
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import Message, MessageKind
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import JoinSpec
from thalweg.spark.joins.state import CellState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes find each other on Linux only")

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
BATCHES = 4
PIECES = 3  # of a micro-batch
MILLISECOND = 1000  # microseconds


class EndingOwner(CellOwner):
    """A process that ends when it is given rows for the n-th time: the connection is closed without an answer."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def _take_in(self, owned: OwnedCell, rows: NewRows, connection: Any) -> None:  # noqa: ANN401 - of other types
        if not self.steps:
            raise ConnectionError
        self.steps -= 1
        super()._take_in(owned, rows, connection)


def spec_of(folder: Path, kind: JoinKind, window: TimeWindow | CountWindow) -> JoinSpec:
    inputs = tuple(Input(name, SCHEMA, "t", window) for name in "AB")
    select = tuple((name, "t", name) for name in ("AB" if kind in {"inner", "outer"} else "A"))
    preserved = ("A",) if kind != "inner" else ()
    query = JoinQuery(inputs, (frozenset((name, "k") for name in "AB"),), select=select, kind=kind, preserved=preserved)
    layout = Layout(query, Shares((1,), {name: frozenset([0]) for name in "AB"}))
    return JoinSpec(JoinPlan("key", layout, str(folder)))


def messages(batch: int) -> list[Message]:
    """Rows of both inputs, every third of which matches nothing; the last rows of a micro-batch are late."""
    found = []
    for piece in range(PIECES):
        for name in "AB":
            times = [10 * batch + piece, 10 * batch + 2 * piece, 10 * batch - 25 * piece]
            keys = [piece, batch % 2, 100 * (ord(name) + piece)]
            columns = [keys, [MILLISECOND * (time + 100) for time in times]]
            found.append(Message(MessageKind.ROWS, name, pack(pa.record_batch(columns, schema=SCHEMA))))
    return found


def results(
    spec: JoinSpec, owner_ends_after: int | None, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Counter[str]], CellState]:
    """The results of each micro-batch, and the last state, if another process has the cell and ends."""
    state, found = FakeState(), []
    there, here = EndingOwner(1 << 30), CellOwner()
    for batch in range(BATCHES):
        monkeypatch.setattr(operator, "CELL_OWNER", there if batch == 0 or owner_ends_after is None else here)
        if batch == 1 and owner_ends_after is not None:
            there.steps = owner_ends_after
        watermark = max(0, 100 + 10 * (batch - 1))
        found.append(Counter(map(str, step_cell(spec, state, batch, messages(batch), watermark))))
    assert state.value is not None
    return found, CellState.from_bytes(state.value[0])


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        ("inner", TimeWindow(20 * MILLISECOND)),
        ("outer", TimeWindow(20 * MILLISECOND)),
        ("semi", TimeWindow(20 * MILLISECOND)),
        ("anti", TimeWindow(20 * MILLISECOND)),
        ("inner", CountWindow(2)),
    ],
)
def test_rows_are_taken_in_again_if_the_owner_of_the_cell_ends(
    kind: JoinKind, window: TimeWindow | CountWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "ARRIVING_BYTES", 1)  # a message is a piece
    expected, last = results(spec_of(tmp_path / "alone", kind, window), None, monkeypatch)
    assert any(expected)
    ended = set[int]()
    for steps in range(2 * PIECES):  # of a micro-batch
        found, state = results(spec_of(tmp_path / str(steps), kind, window), steps, monkeypatch)
        assert found == expected
        assert state.counts["rows"] == last.counts["rows"]
        assert state.counts["results"] == last.counts["results"]
        assert state.counts.get("late") == last.counts.get("late")
        assert state.left == last.left
        ended.add(state.counts["cells"].get("owner ended", 0))
    assert 1 in ended
