"""From rows to messages by cell, and back: the two ends of a join's operator, as functions for `mapInArrow`.

Before the shuffle each task gathers its rows, finds their cells and sends each cell a few large binaries; after the
join binaries become columns again. In between Spark moves and stores bytes, and converts no row. A task also reports to
the ledger how many rows it has sent, and by which layouts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.mjoin import BEGINNING
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.place import without_null
from thalweg.mjoin.query import TimeWindow
from thalweg.mjoin.skew import SkewReport, frequent_values
from thalweg.spark.joins.garbage import exclude_modules
from thalweg.spark.joins.layout import Layout, as_shown, as_stored
from thalweg.spark.joins.messages import LEDGER, Message, MessageKind, TaskReport
from thalweg.spark.joins.splitting import LayoutEntry, Splitting

PAYLOAD = "payload binary"
FIRST_BATCH = "0"
GATHERED_BYTES = 32 << 20  # that a task holds before it sends them on

Batches = Iterator[pa.RecordBatch]


def packer(
    layout: Layout,
    name: str,
    key: str,
    splitting: Splitting | None = None,
    *,
    layouts: ActiveLayouts = PLAIN,
    tells_times: bool = False,
) -> Callable[[Batches], Batches]:
    """A function that makes messages of the rows of an input; it may also tell all cells their latest time.

    Without splitting, `layouts` are those of a whole batch job.
    """

    def run(batches: Batches) -> Batches:
        exclude_modules("packs rows")
        task = PackingTask(layout, name, splitting, layouts)
        columns = layout.received_columns(name)
        for batch in _gathered(batches):
            yield from task.send_rows(batch.rename_columns(columns))
        yield from task.wake_cells()
        if tells_times:
            yield from task.tell_time()
        yield from task.send_report()

    run.__name__ = f"thalweg join: rows of {name}, thalweg_{key}"
    return run


def version_teller(
    layout: Layout, name: str, key: str, splitting: Splitting | None = None
) -> Callable[[Batches], Batches]:
    """A function that tells all cells of new versions of a table, from the paths of their files."""

    def run(batches: Batches) -> Batches:
        task = PackingTask(layout, name, splitting)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from task.tell_version(path)
        yield from task.wake_cells()
        yield from task.send_report()

    run.__name__ = f"thalweg join: versions of {name}, thalweg_{key}"
    return run


class PackingTask:
    """A task that sends the rows of an input to their cells, and counts them for the ledger."""

    def __init__(self, layout: Layout, name: str, splitting: Splitting | None, layouts: ActiveLayouts = PLAIN) -> None:
        self._layout, self._name, self._splitting = layout, name, splitting
        self._batch_number = task_property("streaming.sql.batchId")
        self._entry: LayoutEntry | None = replace(LayoutEntry.first(), layouts=layouts)
        if splitting:
            self._entry = splitting.read_entry(task_property("sql.streaming.queryId"), int(self._batch_number or 0))
        self._without_key_or_time = 0
        self._latest: int | None = None  # the latest time of rows
        self._skew = SkewReport(name)

    def send_rows(self, batch: pa.RecordBatch) -> Batches:
        """Rows to their cells; to all cells where it is not known by which layouts they have to be sent."""
        self._latest = latest_time(self._layout, self._name, batch, self._latest)
        rows = without_null(batch, self._layout.required_columns(self._name))
        self._without_key_or_time += batch.num_rows - rows.num_rows
        if not rows.num_rows:
            return
        if self._splitting:
            self._skew = self._skew.add(skew_of(self._layout, self._name, rows))
        if self._entry is None:
            message = Message(MessageKind.UNPLACED_ROWS, self._name, pack(rows))
            yield from (message.to(label) for label in self._layout.labels)
            return
        for cells, part in self._layout.split(self._name, rows, self._entry.layouts):
            message = Message(MessageKind.ROWS, self._name, pack(part))
            yield from (message.to(self._layout.labels[cell]) for cell in cells)

    def wake_cells(self) -> Batches:
        """Make sure that all cells exist, and that they know the active layouts once a value has been split."""
        if self._entry is not None and self._entry.layouts != PLAIN:
            message = Message(MessageKind.LAYOUTS, payload=json.dumps(self._entry.layouts.to_json()).encode())
        elif self._batch_number == FIRST_BATCH:
            message = Message(MessageKind.WAKE_UP)
        else:
            return
        yield from (message.to(label) for label in self._layout.labels)

    def tell_time(self) -> Batches:
        """Tell all cells the latest time of the rows that were sent."""
        if self._latest is not None:
            message = Message(MessageKind.LATEST_TIME, self._name, str(self._latest).encode())
            yield from (message.to(label) for label in self._layout.labels)

    def tell_version(self, path: str) -> Batches:
        """Tell all cells of a new version of a table."""
        message = Message(MessageKind.TABLE_VERSION, self._name, path.rpartition("/")[2].encode())
        yield from (message.to(label) for label in self._layout.labels)

    def send_report(self) -> Batches:
        """Report to the ledger on the rows that were sent."""
        entry, skew = (self._entry, self._skew) if self._splitting else (None, None)
        report = TaskReport(self._layout.text(), self._name, self._without_key_or_time, entry, skew)
        yield Message(MessageKind.TASK_REPORT, self._name, report.to_bytes()).to(LEDGER)


def skew_of(layout: Layout, name: str, rows: pa.RecordBatch) -> SkewReport:
    """How many rows there are, how long they stay, and which values are frequent among them."""
    window, deadline = layout.query.input(name).window, BEGINNING
    latest = latest_time(layout, name, rows)
    if latest is not None and isinstance(window, TimeWindow):
        deadline = latest + window.microseconds
    frequent = {number: frequent_values(hashed) for number, hashed in layout.hashes(name, rows).items()}
    return SkewReport(name, rows.num_rows, deadline, frequent)


def latest_time(layout: Layout, name: str, rows: pa.RecordBatch, before: int | None = None) -> int | None:
    """The latest time of rows of an input and of rows before them; None if there is none."""
    source = layout.query.input(name)
    if source.time is None:
        return None
    times = as_stored(rows.select([source.time]), pa.schema([source.schema.field(source.time)]))
    return max((time for time in (pc.max(times[0]).as_py(), before) if time is not None), default=None)


def unpacker(shown: pa.Schema, key: str) -> Callable[[Batches], Batches]:
    """A function that makes columns of these names and types from packed results."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for payload in batch.column("payload"):
                results = unpack(payload.as_buffer())
                columns = [as_shown(column, field.type) for column, field in zip(results.columns, shown, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=shown)

    run.__name__ = f"thalweg join: results, thalweg_{key}"
    return run


def task_property(name: str) -> str:
    """A property of the running task, which Spark sets for each micro-batch; empty where there is none."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.getLocalProperty(name) if context else None) or ""


def _gathered(batches: Batches) -> Batches:
    """Batches put together, so that cells get few large pieces; none where there is no row."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += batch.nbytes
        if size > GATHERED_BYTES:
            yield _as_one_batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _as_one_batch(waiting)


def _as_one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
