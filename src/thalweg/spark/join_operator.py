"""The stateful operator of a join: for each cell, the windows in Spark's state store and the results of new rows.

State is the rows of the windows, as segments by number, and one value: a token that names this version of it. A worker
keeps the cells it has stepped, ready to be probed; it uses one only if its token is the state's, and rebuilds it from the
segments otherwise. So a task that is retried, moved or repeated after a restart sees just what was committed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from thalweg.kernels import compile_kernels
from thalweg.mjoin import Cell, StateError, Step
from thalweg.mjoin.pack import pack, pieces, unpack_all
from thalweg.spark.late import keep_late
from thalweg.spark.packing import LEDGER, Layout
from thalweg.spark.state import StateFolder

if TYPE_CHECKING:
    import pandas as pd

MICROSECONDS = 1000  # in a millisecond, Spark's unit of watermarks

ABOUT = StructType(
    [
        StructField("token", StringType()),
        StructField("watermark", LongType()),  # milliseconds, 0 for none yet
        StructField("counts", StringType()),  # JSON
    ]
)
NUMBER = StructType([StructField("number", LongType())])
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
        """A cell without rows, that begins with what others have learnt."""
        compile_kernels()
        return Cell(self.layout.query, **self.options)

    def table_rows(self, cell: int) -> dict[str, pa.RecordBatch]:
        """What a cell has of the tables that came with the query."""
        from thalweg.mjoin.pack import unpack

        found = {}
        for name, packed in self.tables.items():
            for first, rows in self.layout.split(name, unpack(packed)):
                if cell in self.layout.copies(name, first):
                    found[name] = rows
        return found

    def arrivals(self, rows: Iterable[tuple[int, bytes]]) -> dict[str, pa.RecordBatch]:
        """Packed rows, put together by input."""
        by_input: dict[int, list[bytes]] = {}
        for number, payload in rows:
            by_input.setdefault(number, []).append(payload)
        inputs = self.layout.query.inputs
        return {inputs[one].name: unpack_all(payloads, inputs[one].schema) for one, payloads in by_input.items()}


@dataclass
class Held:
    """A cell that a worker keeps, and which version of the state it is."""

    token: str
    cell: Cell
    sizes: dict[int, int]  # bytes of each segment


_held: dict[tuple[str, str, int], Held] = {}


class JoinProcessor(StatefulProcessor):
    """Steps cells."""

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark for each task."""
        self._handle = handle
        self._about = handle.getValueState("about", ABOUT)
        self._segments = handle.getMapState("segments", NUMBER, SEGMENT)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of one
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Take in the packed rows of a cell, and give its packed results."""
        packed = [each for frame in rows for each in zip(frame["input"], map(bytes, frame["payload"]), strict=True)]
        if key[0] == LEDGER:
            self._keep_ledger([payload for _, payload in packed])
            return iter(())
        return self._step(key[0], self.spec.arrivals(packed), timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of one
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
        expiredTimerInfo: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Let rows of a cell expire that gets no new ones."""
        return self._step(key[0], {}, timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Called by Spark when a task ends."""

    def _step(self, label: int, arrivals: dict[str, pa.RecordBatch], watermark: int) -> Iterator[pd.DataFrame]:
        about = self._about.get()
        cell_number = self.spec.layout.cell_of[label]
        held_as = (self.spec.key, _property("sql.streaming.queryId"), label)
        held = _held.pop(held_as, None)
        cached = held is not None and about is not None and held.token == about[0]
        if held is None or not cached:
            held = self._load(about)
        if about is None:
            arrivals = arrivals | self.spec.table_rows(cell_number)
        step = held.cell.step(arrivals, watermark * MICROSECONDS if watermark > 0 else None)
        held.token = uuid.uuid4().hex
        self._write(held, step)
        counts = self._count(cell_number, json.loads(about[2]) if about else {}, arrivals, step)
        counts["cached" if cached else "loaded"] = counts.get("cached" if cached else "loaded", 0) + 1
        self._about.update((held.token, watermark, json.dumps(counts)))
        if about is not None and about[1] < watermark:
            self._handle.deleteTimer(about[1] + 1)
        if held.sizes:  # something to expire: come back as soon as the watermark has moved, whether there is data or not
            self._handle.registerTimer(watermark + 1)
        self._report(cell_number, counts, held, step)
        for piece in pieces(step.results):
            yield _frame(pack(piece))
        _held[held_as] = held

    def _load(self, about: tuple[str, int, str] | None) -> Held:
        """A cell from the state store, segment by segment: all at once may be more than a message can hold."""
        if about is None:
            return Held("", self.spec.new_cell(), {})
        numbers = [number for (number,) in self._segments.keys()]  # noqa: SIM118 - no dict
        segments = {number: bytes(self._segments.getValue((number,))[0]) for number in numbers}
        compile_kernels()
        watermark = about[1] * MICROSECONDS or None
        cell = Cell.load(self.spec.layout.query, segments, watermark, **self.spec.options)
        return Held(about[0], cell, {number: len(segment) for number, segment in segments.items()})

    def _write(self, held: Held, step: Step) -> None:
        for number in step.removed:
            if held.sizes.pop(number, None) is not None:
                self._segments.removeKey((number,))
        for number, segment in step.added.items():
            self._segments.updateValue((number,), (segment,))
            held.sizes[number] = len(segment)

    def _count(
        self, cell: int, counts: dict[str, Any], arrivals: Mapping[str, pa.RecordBatch], step: Step
    ) -> dict[str, Any]:
        """What has come and gone since the query was first started; a row that is in several cells counts in one."""
        shares = self.spec.layout.shares
        late = {name: rows for name, rows in step.late.items() if rows.num_rows and shares.is_first(name, cell)}
        if late and self.spec.late is not None:
            keep_late(self.spec.late, self.spec.layout.query, late, _batch_name(cell))
        new = {
            "steps": 1,
            "results": step.results.num_rows,
            "rows": {name: rows.num_rows for name, rows in arrivals.items() if shares.is_first(name, cell)},
            "late": {name: rows.num_rows for name, rows in late.items()},
        }
        return added_up([counts, new])

    def _report(self, cell: int, counts: dict[str, Any], held: Held, step: Step) -> None:
        report = {
            "cell": cell,
            "at": time.time(),
            "counts": counts,
            "state": {"segments": len(held.sizes), "bytes": sum(held.sizes.values())},
            "statistics": step.statistics.to_dict(),
        }
        _write_report(self.spec, f"cell-{cell}", report)

    def _keep_ledger(self, payloads: Iterable[bytes]) -> None:
        """Count rows without key or time, and refuse a layout that is not the state's."""
        about = self._about.get()
        counts = json.loads(about[2]) if about else {}
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
        self._about.update((uuid.uuid4().hex, 0, json.dumps(counts)))
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
            elif isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total


def join_at_once(spec: JoinSpec, label: int, packed: pa.Table) -> Iterator[bytes]:
    """The packed results of a cell in a batch job: all rows are there, nothing expires and nothing is late."""
    rows = zip(packed["input"].to_pylist(), packed["payload"].to_pylist(), strict=True)
    arrivals = spec.arrivals(rows)
    cell_number = spec.layout.cell_of[label]
    cell = spec.new_cell()
    step = cell.step(arrivals, None)
    shares = spec.layout.shares
    counts = {
        "steps": 1,
        "results": step.results.num_rows,
        "rows": {name: batch.num_rows for name, batch in arrivals.items() if shares.is_first(name, cell_number)},
    }
    report = {"cell": cell_number, "at": time.time(), "counts": counts, "statistics": step.statistics.to_dict()}
    _write_report(spec, f"cell-{cell_number}", report)
    for piece in pieces(step.results):
        yield pack(piece)


def _write_report(spec: JoinSpec, name: str, report: Mapping[str, Any]) -> None:
    try:
        StateFolder(spec.folder).write(f"{spec.key}-{name}.json", json.dumps(report).encode())
    except OSError:  # where to report is gone: that is no reason to fail
        return


def _frame(payload: bytes) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"payload": [payload]})


def _property(name: str) -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.getLocalProperty(name) if context else None) or ""


def _batch_name(cell: int) -> str:
    """What the work of a cell is called whenever it is done again."""
    return f"{_property('sql.streaming.queryId')}-batch-{_property('streaming.sql.batchId')}-{cell:05d}"
