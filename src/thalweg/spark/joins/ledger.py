"""The ledger of a join: what all of its cells together know after a micro-batch.

It counts the rows that no cell gets, refuses a layout unlike that of the state, and decides which frequent keys to
split next. A function from state and reports to state: `operator.py` reads and writes the state.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from thalweg.mjoin import JoinQuery, TimeWindow
from thalweg.sealed import SavedStateError
from thalweg.spark.joins.messages import TaskReport
from thalweg.spark.joins.packing import task_property
from thalweg.spark.joins.spec import JoinSpec
from thalweg.spark.joins.splitting import SplittingRecord
from thalweg.spark.joins.state import LedgerState


def keep_ledger(
    spec: JoinSpec, before: LedgerState | None, reports: Sequence[TaskReport], watermark: int
) -> LedgerState:
    """The state after a micro-batch, of which all tasks have reported; `watermark` in microseconds."""
    before = before or LedgerState(reports[0].layout, {})
    for report in reports:
        _check_layout(before.layout, report.layout, spec.plan.query)
    growth = _window_growth(before.layout, spec.plan.query)
    counts = Counter(before.without_key_or_time)
    for report in reports:
        counts += Counter({report.input: report.without_key_or_time})
    splitting = before.splitting and before.splitting.with_longer_windows(growth)
    return LedgerState(spec.layout.text(), dict(counts), _split(spec, splitting, reports, watermark))


def _split(
    spec: JoinSpec, record: SplittingRecord | None, reports: Sequence[TaskReport], watermark: int
) -> SplittingRecord | None:
    """The record of frequent keys after a micro-batch."""
    splitting = spec.plan.splitting
    if splitting is None:
        if record and record.is_split:
            raise SavedStateError(
                "frequent keys are split in this checkpoint, which needs a folder that the driver and all workers "
                "share: write state='...', or start with a new checkpoint"
            )
        return None
    batch = int(task_property("streaming.sql.batchId"))
    record = record or SplittingRecord.new(splitting, batch)
    return record.after(
        splitting,
        task_property("sql.streaming.queryId"),
        batch,
        {report.entry for report in reports},
        [report.skew for report in reports if report.skew],
        watermark,
    )


def _check_layout(before: str, now: str, query: JoinQuery) -> None:
    """Refuse another layout than that of the state, as far as an earlier version has written it down."""
    values_before, values = json.loads(before), json.loads(now)
    changed = [name for name, value in values_before.items() if value != values.get(name)]
    if changed == ["windows"] and query.may_change_windows and _are_by_time(query, values_before["windows"]):
        return  # cells refuse windows that need rows which have left
    if changed:
        said = "; ".join(f"{name} were {values_before[name]} and would be {values.get(name)}" for name in changed)
        moved = " Rows would be in other cells, and Spark can move no state." if "shares" in changed else ""
        raise SavedStateError(
            f"the checkpoint holds the state of another join: {said}.{moved} Write the same cells=, rates=, on=, "
            f"windows= and output= as before, or start with a new checkpoint"
        )


def _are_by_time(query: JoinQuery, windows: Mapping[str, str]) -> bool:
    """Whether the windows of the query are as before, or by time as before."""
    return all(
        str(each.window) == windows[each.name]
        or (isinstance(each.window, TimeWindow) and TimeWindow.is_text(windows[each.name]))
        for each in query.inputs
    )


def _window_growth(before: str, query: JoinQuery) -> int:
    """By how many microseconds windows are longer than those of a layout, at most; 0 if none is."""
    windows = json.loads(before)["windows"]
    return max(
        each.window.microseconds - int(windows[each.name].partition(" ")[0])
        if isinstance(each.window, TimeWindow) and TimeWindow.is_text(windows[each.name])
        else 0
        for each in query.inputs
    )
