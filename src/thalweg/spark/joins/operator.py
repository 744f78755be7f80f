"""The stateful operator of a join: for each cell, the windows in Spark's state store and the results of new rows.

The state of a cell is the rows of its windows, as segments, and a value that names the segments and this version of
the state. No name is ever used twice, not even by a task that is repeated. Worker processes own the cells that they
have stepped, ready to be probed. Spark gives the next step of a cell to any worker: a worker that owns the same version
goes on with it, or asks the owner; else a worker that owns an older version adds and removes the segments that have
come and gone since, and a worker that has none reads them all. So a task that is retried, moved or repeated after a
restart sees exactly the state that was committed.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from thalweg.mjoin import BEGINNING, Cell, Statistics, Step
from thalweg.mjoin.catch_up import catch_up
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.marks import counted_here, unmarked
from thalweg.mjoin.pack import pack
from thalweg.mjoin.segments import NEW_CHECKPOINT
from thalweg.sealed import SavedStateError
from thalweg.spark.joins.arrivals import Arrivals
from thalweg.spark.joins.cell_owner import CELL_OWNER, CellId, OwnedCell, OwnerEndedError
from thalweg.spark.joins.garbage import exclude_modules
from thalweg.spark.joins.idle import StreamTime
from thalweg.spark.joins.ledger import keep_ledger
from thalweg.spark.joins.messages import LEDGER, Message, MessageKind, TaskReport
from thalweg.spark.joins.packing import task_property
from thalweg.spark.joins.results import as_frame
from thalweg.spark.joins.spec import JoinSpec, WindowTooLargeError, sum_counts
from thalweg.spark.joins.state import CellState, LedgerState, StoredSegment, TableInCell

if TYPE_CHECKING:
    import pandas as pd

MOST_SWITCHES = 5  # of a cell that are reported
MICROSECONDS = 1000  # in a millisecond, Spark's unit of watermarks

SEALED = StructType([StructField("sealed", BinaryType())])
NAME = StructType([StructField("name", StringType())])
SEGMENT = StructType([StructField("segment", BinaryType())])


@dataclass
class StepProgress:
    """The counts, times and late rows of a cell's step so far."""

    counts: dict[str, Any] = field(default_factory=lambda: {"steps": 1})
    seconds: dict[str, float] = field(default_factory=lambda: {"read": 0.0, "join": 0.0, "write": 0.0})
    taken: Counter[str] = field(default_factory=Counter)  # new rows by input
    late: list[dict[str, pa.RecordBatch]] = field(default_factory=list)  # rows to keep
    statistics: Statistics = field(default_factory=Statistics)  # of the last part
    watermark: int = 0  # of the rows that were taken in last; as in the state, 0 as long as there is none
    left: Mapping[str, int] | None = field(default_factory=dict)  # the latest times of rows that have left, if known
    knowledge: Mapping[str, Any] = field(default_factory=dict)  # of the cell by then

    def count(self, counts: Mapping[str, Any]) -> None:
        """Add to the counts."""
        self.counts = sum_counts([self.counts, counts])


class JoinProcessor(StatefulProcessor):
    """Steps cells, and keeps the ledger."""

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark for each task."""
        exclude_modules("joins")
        CELL_OWNER.begin_task()
        self._handle = handle
        self._value = handle.getValueState("sealed", SEALED)
        self._segments = handle.getMapState("segments", NAME, SEGMENT)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of the cell
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Take in the messages to a cell or to the ledger, and give the packed results of the cell."""
        messages = (
            Message(MessageKind(kind), name, bytes(payload))
            for frame in rows
            for kind, name, payload in zip(frame["kind"], frame["input"], frame["payload"], strict=True)
        )
        if key[0] == LEDGER:
            self._keep_ledger([TaskReport.from_bytes(message.payload) for message in messages], timerValues)
            return iter(())
        return self._step(key[0], messages, timerValues)

    def _keep_ledger(self, reports: Sequence[TaskReport], timer_values: Any) -> None:  # noqa: ANN401 - Spark's
        """Take the reports of all tasks of the micro-batch into the state of the ledger."""
        value = self._value.get()
        before = LedgerState.from_bytes(bytes(value[0])) if value else None
        state = keep_ledger(self.spec, before, reports, _microseconds(self._watermark(timer_values)))
        self._value.update((state.to_bytes(),))
        split = state.splitting.describe(self.spec.layout.shares) if state.splitting else None
        counts = {"without_key_or_time": state.without_key_or_time}
        self.spec.report("ledger", {"at": time.time(), "counts": counts, "split": split})

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of the cell
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
        expiredTimerInfo: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Let rows expire in a cell that gets no new rows."""
        return self._step(key[0], iter(()), timerValues)

    def _watermark(self, timer_values: Any) -> int:  # noqa: ANN401 - Spark's
        """The watermark of the join in milliseconds; 0 as long as there is none."""
        watermark: int = timer_values.getCurrentWatermarkInMs()
        return watermark + self.spec.layout.watermark_shift if watermark > 0 else 0

    def close(self) -> None:
        """Called by Spark when a task ends."""
        CELL_OWNER.end_task()

    def _step(self, label: int, messages: Iterable[Message], timer_values: Any) -> Iterator[pd.DataFrame]:  # noqa: ANN401 - Spark's
        """Take in new rows piece by piece, and give results part by part: so memory is that of the windows and a bound.

        All is committed by Spark, or nothing is: a step that fails half-way leaves neither results nor state, and the
        cell is no longer owned.
        """
        progress = StepProgress()
        try:
            yield from self._step_cell(label, messages, timer_values, progress)
        except MemoryError:
            raise WindowTooLargeError(self.spec.layout.cell_of[label], progress.taken) from None

    def _step_cell(
        self,
        label: int,
        messages: Iterable[Message],
        timer_values: Any,  # noqa: ANN401 - Spark's
        progress: StepProgress,
    ) -> Iterator[pd.DataFrame]:
        cell_number = self.spec.layout.cell_of[label]
        cell_id = CellId(self.spec.plan.key, task_property("sql.streaming.queryId"), label)
        before = self._read_cell_state()
        if before:
            progress.watermark, progress.left, progress.knowledge = before.watermark, before.left, before.knowledge
        watermark, idle_rule, times = self._watermark(timer_values), self.spec.plan.idle_rule, dict[str, StreamTime]()
        now, run = timer_values.getCurrentProcessingTimeInMs(), task_property("spark.jobGroup.id")
        if idle_rule:
            times = idle_rule.at_start(before.stream_times if before else {}, now, run)
            watermark = max(watermark, idle_rule.watermark(times), before.watermark if before else 0)
        owned = self._make_ready(cell_id, before, progress)
        messages, versions = self._newest_versions(messages)
        tables = self.spec.first_tables(cell_number) if before is None else {}
        tables |= self.spec.changed_tables(cell_number, versions)
        arrivals = Arrivals(self.spec.layout, cell_number, before.layouts if before else PLAIN, messages)
        for rows in arrivals.pieces():
            yield from self._take_in(owned, cell_number, rows, tables, watermark, progress)
            tables = {}
        self._save_late_rows(cell_number, progress.late)
        state = CellState(
            token=owned.token,
            watermark=watermark,
            segments=owned.segments,
            counts=sum_counts([before.counts if before else {}, progress.counts, {"seconds": progress.seconds}]),
            layouts=arrivals.layouts,
            knowledge=progress.knowledge,
            owner=owned.owner,
            timer=max(timer_values.getCurrentWatermarkInMs(), 0) + 1,
            stream_times=idle_rule.after(times, arrivals.latest_times, now, run) if idle_rule else {},
            tables={**(before.tables if before else {}), **self._tables_in_cell(versions)},
            left=progress.left,
        )
        self._value.update((state.to_bytes(),))
        self._set_timer(before, state)
        idle = idle_rule.idle_streams(times) if idle_rule else []
        self._report(cell_number, state, owned, progress.statistics, idle)
        CELL_OWNER.keep(cell_id, owned)

    def _newest_versions(self, messages: Iterable[Message]) -> tuple[Iterable[Message], dict[str, str]]:
        """All messages but those on versions of tables, and the newest version of each table that has any, by its file.

        All rows of a micro-batch meet the same version: so where tables may change, messages wait for the last message.
        """
        if not self.spec.plan.versions:
            return messages, {}
        others, versions = list[Message](), dict[str, str]()
        for message in messages:
            if message.kind == MessageKind.TABLE_VERSION:
                versions[message.input] = max(message.payload.decode(), versions.get(message.input, ""))
            else:
                others.append(message)
        return others, versions

    def _tables_in_cell(self, versions: Mapping[str, str]) -> dict[str, TableInCell]:
        """New versions of tables as the state keeps them."""
        batch = int(task_property("streaming.sql.batchId")) if versions else 0
        return {name: TableInCell(file, batch) for name, file in versions.items()}

    def _read_cell_state(self) -> CellState | None:
        """The state of this cell; None if it is new."""
        value = self._value.get()
        if value:
            return CellState.from_bytes(bytes(value[0]))
        if self._segments.exists():  # but no value names them
            raise SavedStateError(
                f"the checkpoint holds the state of an early version of Thalweg, which cannot be read; {NEW_CHECKPOINT}"
            )
        return None

    def _make_ready(self, cell_id: CellId, state: CellState | None, progress: StepProgress) -> OwnedCell:
        """The cell as the state has it, with the token of the version that this step makes."""
        start = time.perf_counter()
        owned, source = self._find_cell(cell_id, state)
        progress.seconds["read"] += time.perf_counter() - start
        progress.count({"cells": {source: 1}})
        owned.token = uuid.uuid4().hex
        return owned

    def _find_cell(self, cell_id: CellId, state: CellState | None) -> tuple[OwnedCell, str]:
        """The cell as the state has it, and where it came from."""
        owned, here = CELL_OWNER.take(cell_id), CELL_OWNER.address
        if state is None:
            return OwnedCell("", self.spec.new_cell(), {}, here), "new"
        if owned is not None and owned.token == state.token:
            return owned, "at hand"
        segments = dict(state.segments)
        remote = CELL_OWNER.request(state.owner, cell_id, state.token)
        if remote is not None:
            return OwnedCell(state.token, remote, segments, state.owner), "remote"
        watermark, query = _microseconds(state.watermark), self.spec.plan.query
        if owned is not None and isinstance(owned.cell, Cell) and not query.has_count_windows:
            present = {number for number, segment in segments.items() if owned.segments.get(number) == segment}
            catch_up(owned.cell, present, self._read_segments(segments, present), watermark)
            return OwnedCell(state.token, owned.cell, segments, here), "caught up"
        cell = self._load(segments, state.watermark, state.left, state.knowledge)
        return OwnedCell(state.token, cell, segments, here), "loaded"

    def _load(
        self,
        segments: Mapping[int, StoredSegment],
        watermark: int,
        left: Mapping[str, int] | None,
        knowledge: Mapping[str, Any],
    ) -> Cell:
        """A cell from its state."""
        content = self._read_segments(segments, set())
        cell = Cell.load(self.spec.plan.query, content, _microseconds(watermark), left, **self.spec.plan.options)
        cell.learn(knowledge)
        return cell

    def _read_segments(self, segments: Mapping[int, StoredSegment], present: set[int]) -> dict[int, bytes]:
        """The segments that are not present, one after the other: all at once may be more than a message can hold."""
        return {
            number: bytes(cast(tuple[bytes], self._segments.getValue((segment.name,)))[0])
            for number, segment in segments.items()
            if number not in present
        }

    def _take_in(
        self,
        owned: OwnedCell,
        cell: int,
        arrivals: Mapping[str, pa.RecordBatch],
        tables: Mapping[str, pa.RecordBatch],
        watermark: int,
        progress: StepProgress,
    ) -> Iterator[pd.DataFrame]:
        """Let a cell take in rows and tables, give the results, and write the segments that change."""
        progress.taken.update({name: rows.num_rows for name, rows in (*arrivals.items(), *tables.items())})
        start = time.perf_counter()
        for part in self._parts(owned, arrivals, tables, watermark, progress):
            progress.seconds["join"] += time.perf_counter() - start
            if part.results.num_rows:
                yield self._frame(part.results)
            start = time.perf_counter()
            self._write_segments(owned, part)
            progress.seconds["write"] += time.perf_counter() - start
            self._count_late_rows(cell, part, progress)
            start, progress.statistics = time.perf_counter(), part.statistics
        self._count_rows(cell, {**arrivals, **tables}, progress)
        progress.watermark, progress.knowledge = watermark, owned.cell.knowledge()
        progress.left = latest_left(progress.left, progress.statistics)

    def _parts(
        self,
        owned: OwnedCell,
        arrivals: Mapping[str, pa.RecordBatch],
        tables: Mapping[str, pa.RecordBatch],
        watermark: int,
        progress: StepProgress,
    ) -> Iterator[Step]:
        """Let a cell take in rows; if the process that owns it ends meanwhile, the cell is made anew in this process.

        Its segments are in the state, as all rows that were taken in before have left them.
        """
        try:
            with CELL_OWNER.stepping(owned):
                yield from owned.cell.parts(arrivals, _microseconds(watermark), tables)
        except OwnerEndedError:
            owned.cell = self._load(owned.segments, progress.watermark, progress.left, progress.knowledge)
            owned.owner = CELL_OWNER.address
            progress.count({"cells": {"owner ended": 1}})
            with CELL_OWNER.stepping(owned):
                yield from owned.cell.parts(arrivals, _microseconds(watermark), tables)

    def _frame(self, results: pa.RecordBatch) -> pd.DataFrame:
        """Results as Spark takes them."""
        import pandas as pd

        if self.spec.shown is not None:
            return as_frame(results, self.spec.shown)
        return pd.DataFrame({"payload": [pack(results)]})

    def _write_segments(self, owned: OwnedCell, step: Step) -> None:
        for number in step.removed:
            self._segments.removeKey((owned.segments.pop(number).name,))
        for number, data in step.added.items():
            segment = StoredSegment(f"{number}-{owned.token}", len(data))
            self._segments.updateValue((segment.name,), (data,))
            owned.segments[number] = segment

    def _count_rows(self, cell: int, arrivals: Mapping[str, pa.RecordBatch], progress: StepProgress) -> None:
        """Count results, and the rows that no other cell counts."""
        rows = {
            name: int(np.count_nonzero(counted_here(batch)))
            for name, batch in arrivals.items()
            if self.spec.layout.shares.is_first(name, cell)
        }
        progress.count({"results": progress.statistics.results, "rows": rows})

    def _count_late_rows(self, cell: int, step: Step, progress: StepProgress) -> None:
        """Count the late rows that no other cell counts, and put them aside if they are to be kept."""
        own = {
            name: unmarked(rows.filter(pa.array(counted_here(rows))))
            for name, rows in step.late.items()
            if self.spec.layout.shares.is_first(name, cell)
        }
        late = {name: rows for name, rows in own.items() if rows.num_rows}
        if late:
            progress.count({"late": {name: rows.num_rows for name, rows in late.items()}})
            if self.spec.plan.late is not None:
                progress.late.append(late)

    def _save_late_rows(self, cell: int, several: Iterable[Mapping[str, pa.RecordBatch]]) -> None:
        """Keep late rows in one file a stream and micro-batch, in however many pieces they came."""
        if self.spec.plan.late is None:
            return
        by_input: dict[str, list[pa.RecordBatch]] = {}
        for late in several:
            for name, rows in late.items():
                by_input.setdefault(name, []).append(rows)
        late_rows = {name: pa.concat_batches(batches) for name, batches in by_input.items()}
        self.spec.plan.late.save(late_rows, _file_name(cell))

    def _set_timer(self, before: CellState | None, state: CellState) -> None:
        """Have rows expire when the watermark of Spark has moved, whether there is data or not."""
        timer_before, timer = (_timer(each) for each in (before or state, state))
        if timer_before < timer:
            self._handle.deleteTimer(timer_before)
        if state.segments:
            self._handle.registerTimer(timer)

    def _report(
        self, cell: int, state: CellState, owned: OwnedCell, statistics: Statistics, idle: Sequence[str]
    ) -> None:
        report = {
            "cell": cell,
            "at": time.time(),
            "counts": state.counts,
            "state": {
                "segments": len(state.segments),
                "bytes": sum(segment.bytes for segment in state.segments.values()),
            },
            "statistics": statistics.to_dict(),
            "tables": {name: table._asdict() for name, table in state.tables.items()},
            "idle": list(idle),
            "switches": [asdict(switch) for switch in owned.cell.switches[-MOST_SWITCHES:]],
        }
        self.spec.report(f"cell-{cell}", report)
        if statistics.switches or state.counts["steps"] == 1:
            self.spec.save(state.knowledge)


def latest_left(before: Mapping[str, int] | None, statistics: Statistics) -> dict[str, int] | None:
    """The latest times of rows that have left, by input, also in other processes; None if it is not known."""
    if before is None:  # the state of an earlier version
        return None
    names = {*before, *statistics.left}
    return {name: max(each[name] for each in (before, statistics.left) if name in each) for name in names}


def _timer(state: CellState) -> int:
    """When a cell is woken; an early version did not write that down."""
    return state.watermark + 1 if state.timer is None else state.timer


def _microseconds(watermark: int) -> int:
    """A watermark in the unit of cells; Spark says 0 as long as there is none."""
    return watermark * MICROSECONDS if watermark > 0 else BEGINNING


def _file_name(cell: int) -> str:
    """The name of a cell's file of a micro-batch, the same whenever the micro-batch is repeated."""
    return f"{task_property('sql.streaming.queryId')}-batch-{task_property('streaming.sql.batchId')}-{cell:05d}"
