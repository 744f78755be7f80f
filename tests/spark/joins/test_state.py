"""Everything that a join stores says what it is and in which version, and other versions are refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock

import pyarrow as pa
import pytest

from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.mjoin.layouts import ActiveLayouts, HeavyValue
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import SkewStatistics
from thalweg.sealed import SavedStateError, seal
from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import LEDGER as LEDGER_ADDRESS
from thalweg.spark.joins.messages import MessageKind, TaskReport
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import KNOWLEDGE, JoinSpec
from thalweg.spark.joins.splitting import LayoutEntry, SplittingRecord
from thalweg.spark.joins.state import CELL, LEDGER, VERSION, CellState, LedgerState, StoredSegment

LAYOUTS = ActiveLayouts(2, (HeavyValue(0, 7, "A"),), before=())
CELL_STATE = CellState(
    token="version",  # noqa: S106 - no password
    watermark=5000,
    segments={3: StoredSegment("3-version", 99)},
    counts={"rows": {"A": 2}, "steps": 1},
    layouts=LAYOUTS,
    knowledge={"orders": {"A": ["B"]}},
    owner="address",
)
LEDGER_STATE = LedgerState(
    layout="grid",
    without_key_or_time={"A": 4},
    splitting=SplittingRecord((LayoutEntry.first(), LayoutEntry(4, "run", LAYOUTS)), SkewStatistics(LAYOUTS)),
)
Read = Callable[[bytes], CellState | LedgerState]
STATES: list[tuple[str, CellState | LedgerState, Read]] = [
    (CELL, CELL_STATE, CellState.from_bytes),
    (LEDGER, LEDGER_STATE, LedgerState.from_bytes),
]


@pytest.fixture
def spec(tmp_path: Path) -> JoinSpec:
    schema = pa.schema([("k", pa.int64()), ("t", pa.int64())])
    inputs = tuple(Input(name, schema, "t", TimeWindow(10)) for name in "AB")
    query = JoinQuery(inputs, (frozenset((name, "k") for name in "AB"),), select=(("A", "t", "a"),))
    layout = Layout(query, Shares((1,), {name: frozenset([0]) for name in "AB"}))
    return JoinSpec(JoinPlan("key", layout, str(tmp_path)))


@pytest.mark.parametrize(("kind", "state", "read"), STATES)
def test_a_state_comes_back_as_it_was(kind: str, state: CellState | LedgerState, read: Read) -> None:
    assert read(state.to_bytes()) == state
    assert kind.encode() in state.to_bytes()


@pytest.mark.parametrize(("kind", "state", "read"), STATES)
def test_other_states_are_refused(kind: str, state: CellState | LedgerState, read: Read) -> None:
    others = {
        "is no saved": b"{}",
        "this is a saved greeting": seal("greeting", VERSION, b"{}"),
        f"has version {VERSION + 1}": seal(kind, VERSION + 1, b"{}"),
        "damaged": state.to_bytes()[:-1],
    }
    for message, data in others.items():
        with pytest.raises(SavedStateError, match=f"{message}.*start the query with a new checkpoint"):
            read(data)


def test_a_checkpoint_of_an_early_version_is_refused(spec: JoinSpec) -> None:
    """An early version has segments, but no sealed value that names them."""
    from thalweg.spark.joins.operator import JoinProcessor

    handle, timers = Mock(), Mock()
    handle.getValueState.return_value.get.return_value = None
    handle.getMapState.return_value.exists.return_value = True
    timers.getCurrentWatermarkInMs.return_value = 0
    processor = JoinProcessor(spec)
    processor.init(handle)
    with pytest.raises(SavedStateError, match=r"early version of Thalweg.*start the query with a new checkpoint"):
        list(processor.handleExpiredTimer((spec.layout.labels[0],), timers, None))
    processor.close()


@pytest.mark.parametrize(
    ("window", "output", "message"),
    [
        (20, "append", None),
        (10, "append", None),
        (5, "append", None),
        (20, "changelog", "windows were .* and would be"),
    ],
)
def test_the_ledger_takes_over_other_windows(
    spec: JoinSpec, window: int, output: Literal["append", "changelog"], message: str | None
) -> None:
    """A changelog would have to tell which results have left the windows of before."""
    import pandas as pd

    from thalweg.spark.joins.operator import JoinProcessor

    query = replace(spec.plan.query, output=output)
    spec = replace(spec, plan=replace(spec.plan, layout=replace(spec.layout, query=query)))
    inputs = tuple(replace(each, window=TimeWindow(window)) for each in query.inputs)
    before = LedgerState(replace(spec.layout, query=replace(query, inputs=inputs)).text(), {})
    report = TaskReport(spec.layout.text(), "A", 0).to_bytes()
    handle, timers = Mock(), Mock()
    handle.getValueState.return_value.get.return_value = (before.to_bytes(),)
    timers.getCurrentWatermarkInMs.return_value = 0
    processor = JoinProcessor(spec)
    processor.init(handle)
    rows = pd.DataFrame({"kind": [MessageKind.TASK_REPORT.value], "input": ["A"], "payload": [report]})
    refused = pytest.raises(SavedStateError, match=message) if message else nullcontext()
    with refused:
        processor.handleInputRows((LEDGER_ADDRESS,), iter([rows]), timers)
        ((written,),) = handle.getValueState.return_value.update.call_args.args
        assert LedgerState.from_bytes(written).layout == spec.layout.text()
    processor.close()


def test_rows_that_were_sent_before_windows_became_longer_stay_longer() -> None:
    record = SplittingRecord((LayoutEntry.first(),), SkewStatistics(deadline=100))
    assert record.with_longer_windows(0) == record == record.with_longer_windows(-5)
    assert record.with_longer_windows(7).statistics.deadline == 107
    split = LEDGER_STATE.splitting
    assert split is not None
    with pytest.raises(SavedStateError, match="write windows= as before, or start with a new checkpoint"):
        split.with_longer_windows(7)


def test_the_latest_row_that_has_left_is_kept_from_step_to_step() -> None:
    """Another process may have stepped the cell before; of the state of an earlier version nothing is known."""
    from thalweg.mjoin import Statistics
    from thalweg.spark.joins.operator import latest_left

    assert latest_left({"A": 5, "B": 7}, Statistics(left={"A": 6})) == {"A": 6, "B": 7}
    assert latest_left({}, Statistics(left={"A": 6})) == {"A": 6}
    assert latest_left(None, Statistics(left={"A": 6})) is None


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda _: seal(KNOWLEDGE, 99, b"{}"), lambda _: b"{"])
def test_knowledge_that_cannot_be_read_is_no_knowledge(spec: JoinSpec, damage: Any) -> None:  # noqa: ANN401 - a function
    knowledge = spec.new_cell().knowledge()
    knowledge["measures"]["steps"] = 7.0
    spec.save(knowledge)
    assert spec.new_cell().knowledge() == knowledge
    folder = StateFolder(spec.plan.folder)
    ((name, data),) = folder.read().items()
    folder.write(name, damage(data))
    assert spec.new_cell().knowledge()["measures"]["steps"] == 0.0
