"""The stateful operator of a join: for each cell, the windows in Spark's state store and the results of new rows.

State is the rows of the windows, as segments, and one value that names them and this version of the state. No name is
ever used twice, not even by a task that is done again. A worker keeps the cells it has stepped, ready to be probed.
Spark gives the next step of a cell to any worker: one that has the same version goes on with it, one that has an older
version adds and removes the segments that have come and gone since, and one that has none reads them all. So a task
that is retried, moved or repeated after a restart sees just what was committed.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from thalweg.mjoin import Cell, StateError, Statistics, Step
from thalweg.mjoin.catch_up import catch_up
from thalweg.mjoin.pack import pack, unpack, unpack_all
from thalweg.mjoin.window import FOREVER
from thalweg.spark.late import keep_late
from thalweg.spark.packing import GREETING, LEDGER, Layout, task_property
from thalweg.spark.state import StateFolder

if TYPE_CHECKING:
    import pandas as pd

HELD_SECONDS = 300.0  # a cell that a worker has not stepped for so long is with others, or its query has ended
MOST_SWITCHES = 5  # of a cell that are reported
ARRIVING_BYTES = 64 << 20  # of new rows that a cell takes in at once; a larger micro-batch is taken in piece by piece
MICROSECONDS = 1000  # in a millisecond, Spark's unit of watermarks

ABOUT = StructType(
    [
        StructField("token", StringType()),
        StructField("watermark", LongType()),  # milliseconds, 0 for none yet
        StructField("segments", StringType()),  # JSON: names and bytes, by number
        StructField("counts", StringType()),  # JSON
        StructField("knowledge", StringType()),  # JSON: no part of what is right, but what is fast
    ]
)
NAME = StructType([StructField("name", StringType())])
SEGMENT = StructType([StructField("segment", BinaryType())])


@dataclass(frozen=True)
class JoinSpec:
    """What workers need to know of a join."""

    key: str
    layout: Layout
    options: Mapping[str, Any]  # of cells: planner, policy, drift
    folder: str  # where to report
    late: str | None = None  # where to keep late rows
    tables: Mapping[str, bytes] = field(default_factory=dict)  # inputs that are sent with the query, packed

    def new_cell(self) -> Cell:
        """A cell without rows, that knows what some cell of the query has learnt before."""
        cell = Cell(self.layout.query, **self.options)
        try:
            saved = StateFolder(self.folder).read([self.learned])
        except OSError:
            saved = {}
        if saved:
            cell.learn(json.loads(saved[self.learned])["knowledge"])
        return cell

    @property
    def learned(self) -> str:
        """The file of what was learnt last."""
        return f"{self.layout.digest}.learned-join"

    def table_rows(self, cell: int) -> dict[str, pa.RecordBatch]:
        """What a cell has of the tables that came with the query."""
        found = {}
        for name, packed in self.tables.items():
            for first, rows in self.layout.split(name, unpack(packed)):
                if cell in self.layout.copies(name, first):
                    found[name] = rows
        return found

    def arrivals(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[dict[str, pa.RecordBatch]]:
        """Packed rows, put together by input, so many that they can be taken in at once; at least one such piece.

        With windows by count all rows wait in the cell anyway, so there they are one piece.
        """
        waiting, size, most = list[tuple[int, bytes]](), 0, inf if self.layout.query.counts else ARRIVING_BYTES
        for one in rows:
            if one[0] != GREETING:
                if waiting and size + len(one[1]) > most:
                    yield self._unpacked(waiting)
                    waiting, size = [], 0
                waiting.append(one)
                size += len(one[1])
        yield self._unpacked(waiting)

    def _unpacked(self, rows: Iterable[tuple[int, bytes]]) -> dict[str, pa.RecordBatch]:
        by_input: dict[int, list[bytes]] = {}
        for number, payload in rows:
            by_input.setdefault(number, []).append(payload)
        inputs = self.layout.query.inputs
        return {inputs[one].name: unpack_all(payloads, inputs[one].schema) for one, payloads in by_input.items()}


class WindowTooLargeError(MemoryError):
    """A cell whose windows are more than a worker can hold."""

    def __init__(self, cell: int, rows: Mapping[str, int]) -> None:
        taken = ", ".join(f"{name} {number:,}" for name, number in rows.items()) or "none"
        super().__init__(
            f"cell {cell} does not fit into the memory of a worker (new rows taken in until then: {taken}). Give it "
            f"less: more cells=, shorter windows=, fewer columns in select=, fewer rows a micro-batch "
            f"(maxFilesPerTrigger, maxBytesPerTrigger, maxOffsetsPerTrigger); or more: spark.executor.pyspark.memory, "
            f"fewer cores an executor"
        )


@dataclass
class Held:
    """A cell that a worker keeps, and which version of the state it is."""

    token: str
    cell: Cell
    segments: dict[int, tuple[str, int]]  # name and bytes, by number
    used: float = 0.0  # when it was last


class About(NamedTuple):
    """What the state says of itself."""

    token: str
    watermark: int
    segments: str
    counts: str
    knowledge: str


_held: dict[tuple[str, str, int], Held] = {}


class JoinProcessor(StatefulProcessor):
    """Steps cells."""

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark for each task."""
        self._handle = handle
        self._about = handle.getValueState("about", ABOUT)
        self._segments = handle.getMapState("segments", NAME, SEGMENT)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of one
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Take in the packed rows of a cell, and give its packed results."""
        packed = (each for frame in rows for each in zip(frame["input"], map(bytes, frame["payload"]), strict=True))
        if key[0] == LEDGER:
            self._keep_ledger(payload for _, payload in packed)
            return iter(())
        return self._step(key[0], self.spec.arrivals(packed), timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of one
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
        expiredTimerInfo: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Let rows of a cell expire that gets no new ones."""
        return self._step(key[0], iter([{}]), timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Called by Spark when a task ends."""

    def _step(
        self, label: int, arriving: Iterator[dict[str, pa.RecordBatch]], watermark: int
    ) -> Iterator[pd.DataFrame]:
        """Take in new rows piece by piece, and give results part by part: so memory is that of the windows and a bound.

        All is committed by Spark, or nothing is: a step that fails half-way leaves neither results nor state, and the
        cell is no longer held.
        """
        cell_number, taken = self.spec.layout.cell_of[label], Counter[str]()
        try:
            yield from self._stepped(label, arriving, watermark, taken)
        except MemoryError:
            raise WindowTooLargeError(cell_number, taken) from None

    def _stepped(
        self, label: int, arriving: Iterator[dict[str, pa.RecordBatch]], watermark: int, taken: Counter[str]
    ) -> Iterator[pd.DataFrame]:
        found = self._about.get()
        about = About(*found) if found else None
        cell_number = self.spec.layout.cell_of[label]
        held_as = (self.spec.key, task_property("sql.streaming.queryId"), label)
        start = time.perf_counter()
        held, how = self._bring(_held.pop(held_as, None), about)
        held.token = uuid.uuid4().hex
        seconds = {"read": time.perf_counter() - start, "join": 0.0, "write": 0.0}
        late: list[Mapping[str, pa.RecordBatch]] = []
        counts: dict[str, Any] = {"steps": 1, "cells": {how: 1}}
        statistics = Statistics()
        for number, arrivals in enumerate(arriving):
            if about is None and not number:
                arrivals |= self.spec.table_rows(cell_number)  # noqa: PLW2901 - nobody else has it
            taken.update({name: rows.num_rows for name, rows in arrivals.items()})
            start = time.perf_counter()
            for part in held.cell.parts(arrivals, _microseconds(watermark)):
                seconds["join"] += time.perf_counter() - start
                if part.results.num_rows:
                    yield _frame(pack(part.results))
                start = time.perf_counter()
                self._write(held, part)
                seconds["write"] += time.perf_counter() - start
                late += [part.late] if self.spec.late is not None else []
                start, statistics = time.perf_counter(), part.statistics
            counts = added_up([counts, self._counted(cell_number, arrivals, statistics)])
        if self.spec.late is not None:
            self._keep_late(self.spec.late, cell_number, late)
        counts = added_up([json.loads(about.counts) if about else {}, counts, {"seconds": seconds}])
        knowledge = json.dumps(held.cell.knowledge())
        self._about.update(About(held.token, watermark, json.dumps(held.segments), json.dumps(counts), knowledge))
        if about is not None and about.watermark < watermark:
            self._handle.deleteTimer(about.watermark + 1)
        if held.segments:  # something to expire: come back when the watermark has moved, whether there is data or not
            self._handle.registerTimer(watermark + 1)
        self._report(cell_number, counts, held, statistics)
        held.used = time.monotonic()
        _held[held_as] = held
        for name, one in list(_held.items()):
            if held.used - one.used > HELD_SECONDS:
                del _held[name]

    def _bring(self, held: Held | None, about: About | None) -> tuple[Held, str]:
        """The cell as the state has it, and how it came to be so."""
        if about is None:
            return Held("", self.spec.new_cell(), {}), "made"
        if held is not None and held.token == about.token:
            return held, "cached"
        segments = {int(number): (name, size) for number, (name, size) in json.loads(about.segments).items()}
        watermark = _microseconds(about.watermark)
        query = self.spec.layout.query
        behind = held is not None and not query.counts
        present = {number for number, one in segments.items() if behind and held and held.segments.get(number) == one}
        # One after the other: all at once may be more than a message can hold.
        missing = {
            number: bytes(cast(tuple[bytes], self._segments.getValue((name,)))[0])
            for number, (name, _) in segments.items()
            if number not in present
        }
        if held is not None and behind:
            catch_up(held.cell, present, missing, watermark)
            return Held(about.token, held.cell, segments), "caught up"
        cell = Cell.load(query, missing, watermark, **self.spec.options)
        cell.learn(json.loads(about.knowledge))
        return Held(about.token, cell, segments), "loaded"

    def _write(self, held: Held, step: Step) -> None:
        for number in step.removed:
            name, _ = held.segments.pop(number)
            self._segments.removeKey((name,))
        for number, segment in step.added.items():
            name = f"{number}-{held.token}"
            self._segments.updateValue((name,), (segment,))
            held.segments[number] = name, len(segment)

    def _counted(self, cell: int, arrivals: Mapping[str, pa.RecordBatch], statistics: Statistics) -> dict[str, Any]:
        """What came and what it gave; a row that is in several cells counts in one."""
        shares = self.spec.layout.shares
        return {
            "results": statistics.results,
            "rows": {name: rows.num_rows for name, rows in arrivals.items() if shares.is_first(name, cell)},
            "late": {name: rows for name, rows in statistics.late.items() if shares.is_first(name, cell)},
        }

    def _keep_late(self, folder: str, cell: int, several: Iterable[Mapping[str, pa.RecordBatch]]) -> None:
        """Keep late rows in one file a stream and micro-batch, whatever the pieces they came in."""
        by_input: dict[str, list[pa.RecordBatch]] = {}
        for late in several:
            for name, rows in late.items():
                if self.spec.layout.shares.is_first(name, cell):
                    by_input.setdefault(name, []).append(rows)
        joined = {name: pa.concat_batches(batches) for name, batches in by_input.items()}
        keep_late(folder, self.spec.layout.query, joined, _batch_name(cell))

    def _report(self, cell: int, counts: dict[str, Any], held: Held, statistics: Statistics) -> None:
        report = {
            "cell": cell,
            "at": time.time(),
            "counts": counts,
            "state": {"segments": len(held.segments), "bytes": sum(size for _, size in held.segments.values())},
            "statistics": statistics.to_dict(),
            "switches": [asdict(one) for one in held.cell.switches[-MOST_SWITCHES:]],
        }
        _write_report(self.spec, f"cell-{cell}", report)
        if statistics.switches or counts["steps"] == 1:
            write_quietly(self.spec.folder, self.spec.learned, {"knowledge": held.cell.knowledge()})

    def _keep_ledger(self, payloads: Iterable[bytes]) -> None:
        """Count rows without key or time, and refuse a layout that is not the state's."""
        about = self._about.get()
        counts = json.loads(About(*about).counts) if about else {}
        for entry in map(json.loads, payloads):
            before = counts.setdefault("layout", entry["layout"])
            if before != entry["layout"]:
                raise StateError(
                    f"the checkpoint holds the state of another layout. It was {before} and would be "
                    f"{entry['layout']}: write the same cells=, rates=, on=, windows= and output= as before, or start "
                    f"with a new checkpoint"
                )
            new = {"without_key_or_time": {entry["input"]: entry["without_key_or_time"]}}
            counts = added_up([counts, new]) | {"layout": before}
        self._about.update(About(uuid.uuid4().hex, 0, "{}", json.dumps(counts), "{}"))
        _write_report(self.spec, "ledger", {"at": time.time(), "counts": counts})


def added_up(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of one kind summed, also those within counts.

    >>> added_up([{"rows": {"A": 1}, "steps": 1}, {"rows": {"A": 2, "B": 5}, "steps": 1}])
    {'rows': {'A': 3, 'B': 5}, 'steps': 2}
    """
    total: dict[str, Any] = {}
    for one in several:
        for name, value in one.items():
            if isinstance(value, Mapping):
                total[name] = dict(Counter(total.get(name, {})) + Counter(value))
            elif isinstance(value, int | float):
                total[name] = total.get(name, 0) + value
    return total


def join_at_once(spec: JoinSpec, label: int, packed: pa.Table) -> Iterator[bytes]:
    """The packed results of a cell in a batch job: all rows are there, nothing expires and nothing is late."""
    cell_number, taken = spec.layout.cell_of[label], Counter[str]()
    try:
        yield from _joined_at_once(spec, cell_number, packed, taken)
    except MemoryError:
        raise WindowTooLargeError(cell_number, taken) from None


def _joined_at_once(spec: JoinSpec, cell_number: int, packed: pa.Table, taken: Counter[str]) -> Iterator[bytes]:
    rows = zip(packed["input"].to_pylist(), packed["payload"].to_pylist(), strict=True)
    cell, results, statistics = spec.new_cell(), 0, Statistics()
    for arrivals in spec.arrivals(rows):
        taken.update({name: batch.num_rows for name, batch in arrivals.items()})
        for part in cell.parts(arrivals, None):
            if part.results.num_rows:
                yield pack(part.results)
            statistics = part.statistics
        results += statistics.results
    first = {name: number for name, number in taken.items() if spec.layout.shares.is_first(name, cell_number)}
    counts = {"steps": 1, "results": results, "rows": first}
    report = {"cell": cell_number, "at": time.time(), "counts": counts, "statistics": statistics.to_dict()}
    _write_report(spec, f"cell-{cell_number}", report)


def _write_report(spec: JoinSpec, name: str, report: Mapping[str, Any]) -> None:
    write_quietly(spec.folder, f"{spec.key}-{name}.json", report)


def write_quietly(folder: str, name: str, content: Mapping[str, Any]) -> None:
    """Write what is good to know; where that cannot be, it is no reason to fail."""
    with contextlib.suppress(OSError):
        StateFolder(folder).write(name, json.dumps(content).encode())


def _microseconds(watermark: int) -> int:
    """A watermark in the unit of cells; Spark says 0 as long as there is none."""
    return watermark * MICROSECONDS if watermark > 0 else -FOREVER


def _frame(payload: bytes) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"payload": [payload]})


def _batch_name(cell: int) -> str:
    """What the work of a cell is called whenever it is done again."""
    return f"{task_property('sql.streaming.queryId')}-batch-{task_property('streaming.sql.batchId')}-{cell:05d}"
