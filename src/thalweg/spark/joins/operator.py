"""The stateful operator of a join: for each cell, the windows in Spark's state store and the results of new rows.

State is the rows of the windows, as segments, and one value that names them and this version of the state. No name is
ever used twice, not even by a task that is done again. Worker processes hold the cells they have stepped, ready to be
probed. Spark gives the next step of a cell to any worker: one that holds the same version goes on with it, or asks the
one that does; else one that holds an older version adds and removes the segments that have come and gone since, and one
that holds none reads them all. So a task that is retried, moved or repeated after a restart sees just what was
committed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from thalweg.mjoin import Cell, StateError, Statistics, Step
from thalweg.mjoin.catch_up import catch_up
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.marks import counted_here, unmarked
from thalweg.mjoin.pack import pack
from thalweg.mjoin.window import FOREVER
from thalweg.spark.joins.held import HOLDER, Held, Name
from thalweg.spark.joins.late import keep_late
from thalweg.spark.joins.packing import LEDGER, task_property
from thalweg.spark.joins.spec import JoinSpec, WindowTooLargeError, added_up
from thalweg.spark.joins.splitting import Record

if TYPE_CHECKING:
    import pandas as pd

MOST_SWITCHES = 5  # of a cell that are reported
LIVING = "living"  # among the counts of a cell, the layouts by which rows were last sent, if these are not plain
MICROSECONDS = 1000  # in a millisecond, Spark's unit of watermarks

ABOUT = StructType(
    [
        StructField("token", StringType()),
        StructField("watermark", LongType()),  # milliseconds, 0 for none yet
        StructField("segments", StringType()),  # JSON: names and bytes, by number; of the ledger, its record
        StructField("counts", StringType()),  # JSON
        StructField("knowledge", StringType()),  # JSON: no part of what is right, but what is fast
        StructField("holder", StringType()),  # the process that holds this version
    ]
)
NAME = StructType([StructField("name", StringType())])
SEGMENT = StructType([StructField("segment", BinaryType())])


class About(NamedTuple):
    """What the state says of itself."""

    token: str
    watermark: int
    segments: str
    counts: str
    knowledge: str
    holder: str


@dataclass
class Done:
    """What a step has done so far."""

    counts: dict[str, Any]
    seconds: dict[str, float]
    late: list[dict[str, pa.RecordBatch]] = field(default_factory=list)  # rows to keep
    statistics: Statistics = field(default_factory=Statistics)  # of the last part

    def add(self, counts: Mapping[str, Any]) -> None:
        """Count something."""
        self.counts = added_up([self.counts, counts])


class JoinProcessor(StatefulProcessor):
    """Steps cells."""

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark for each task."""
        HOLDER.begin_task()
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
        watermark = timerValues.getCurrentWatermarkInMs()
        if key[0] == LEDGER:
            self._keep_ledger((payload for _, payload in packed), watermark)
            return iter(())
        return self._step(key[0], packed, watermark)

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - a tuple of one
        timerValues: Any,  # noqa: ANN401, N803 - Spark's
        expiredTimerInfo: Any,  # noqa: ANN401, N803 - Spark's
    ) -> Iterator[pd.DataFrame]:
        """Let rows of a cell expire that gets no new ones."""
        return self._step(key[0], iter(()), timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Called by Spark when a task ends."""
        HOLDER.end_task()

    def _step(self, label: int, packed: Iterator[tuple[int, bytes]], watermark: int) -> Iterator[pd.DataFrame]:
        """Take in new rows piece by piece, and give results part by part: so memory is that of the windows and a bound.

        All is committed by Spark, or nothing is: a step that fails half-way leaves neither results nor state, and the
        cell is no longer held.
        """
        cell_number, taken = self.spec.layout.cell_of[label], Counter[str]()
        try:
            yield from self._stepped(label, packed, watermark, taken)
        except MemoryError:
            raise WindowTooLargeError(cell_number, taken) from None

    def _stepped(
        self, label: int, packed: Iterator[tuple[int, bytes]], watermark: int, taken: Counter[str]
    ) -> Iterator[pd.DataFrame]:
        found = self._about.get()
        about = About(*found) if found else None
        cell_number = self.spec.layout.cell_of[label]
        name = self.spec.key, task_property("sql.streaming.queryId"), label
        start = time.perf_counter()
        held, how = self._bring(name, about)
        held.token = uuid.uuid4().hex
        seconds = {"read": time.perf_counter() - start, "join": 0.0, "write": 0.0}
        done = Done({"steps": 1, "cells": {how: 1}}, seconds)
        before = json.loads(about.counts) if about else {}
        layouts = ActiveLayouts.from_json(json.loads(before[LIVING])) if LIVING in before else PLAIN  # of the last rows
        greetings: list[bytes] = []
        with HOLDER.stepping(held):
            for number, arrivals in enumerate(self.spec.arrivals(packed, cell_number, layouts, greetings)):
                if about is None and not number:
                    arrivals |= self.spec.table_rows(cell_number)  # noqa: PLW2901 - nobody else has it
                taken.update({name: rows.num_rows for name, rows in arrivals.items()})
                yield from self._take_in(held, cell_number, arrivals, watermark, done)
        if self.spec.late is not None:
            self._keep_late(self.spec.late, cell_number, done.late)
        counts = added_up([before, done.counts, {"seconds": done.seconds}])
        told = max(greetings, default=b"").decode() or before.get(LIVING)
        counts |= {LIVING: told} if told else {}
        texts = json.dumps(held.segments), json.dumps(counts), json.dumps(held.cell.knowledge())
        self._about.update(About(held.token, watermark, *texts, held.holder))
        if about is not None and about.watermark < watermark:
            self._handle.deleteTimer(about.watermark + 1)
        if held.segments:  # something to expire: come back when the watermark has moved, whether there is data or not
            self._handle.registerTimer(watermark + 1)
        self._report(cell_number, counts, held, done.statistics)
        HOLDER.keep(name, held)

    def _take_in(
        self, held: Held, cell: int, arrivals: Mapping[str, pa.RecordBatch], watermark: int, done: Done
    ) -> Iterator[pd.DataFrame]:
        """Let a cell take in rows, give the results, and write what changes in the state."""
        shares = self.spec.layout.shares
        start = time.perf_counter()
        for part in held.cell.parts(arrivals, _microseconds(watermark)):
            done.seconds["join"] += time.perf_counter() - start
            if part.results.num_rows:
                yield _frame(pack(part.results))
            start = time.perf_counter()
            self._write(held, part)
            done.seconds["write"] += time.perf_counter() - start
            late = self._own(cell, part.late)
            done.late += [late] if self.spec.late is not None else []
            done.add({"late": {name: rows.num_rows for name, rows in late.items()}})
            start, done.statistics = time.perf_counter(), part.statistics
        first = {name: rows for name, rows in arrivals.items() if shares.is_first(name, cell)}
        counted = {name: int(np.count_nonzero(counted_here(rows))) for name, rows in first.items()}
        done.add({"results": done.statistics.results, "rows": counted})

    def _bring(self, name: Name, about: About | None) -> tuple[Held, str]:
        """The cell as the state has it, and how it came to be so."""
        held, here = HOLDER.take(name), HOLDER.address
        if about is None:
            return Held("", self.spec.new_cell(), {}, here), "made"
        if held is not None and held.token == about.token:
            return held, "at hand"
        segments = {int(number): (name, size) for number, (name, size) in json.loads(about.segments).items()}
        asked = HOLDER.ask(about.holder, name, about.token)
        if asked is not None:
            return Held(about.token, asked, segments, about.holder), "asked for"
        watermark = _microseconds(about.watermark)
        query = self.spec.layout.query
        behind = held.cell if held is not None and not query.has_count_windows else None
        present = {number for number, one in segments.items() if held and behind and held.segments.get(number) == one}
        # One after the other: all at once may be more than a message can hold.
        missing = {
            number: bytes(cast(tuple[bytes], self._segments.getValue((name,)))[0])
            for number, (name, _) in segments.items()
            if number not in present
        }
        if isinstance(behind, Cell):
            catch_up(behind, present, missing, watermark)
            return Held(about.token, behind, segments, here), "caught up"
        cell = Cell.load(query, missing, watermark, **self.spec.options)
        cell.learn(json.loads(about.knowledge))
        return Held(about.token, cell, segments, here), "loaded"

    def _write(self, held: Held, step: Step) -> None:
        for number in step.removed:
            name, _ = held.segments.pop(number)
            self._segments.removeKey((name,))
        for number, segment in step.added.items():
            name = f"{number}-{held.token}"
            self._segments.updateValue((name,), (segment,))
            held.segments[number] = name, len(segment)

    def _own(self, cell: int, late: Mapping[str, pa.RecordBatch]) -> dict[str, pa.RecordBatch]:
        """Late rows that no other cell counts, without their marks."""
        shares = self.spec.layout.shares
        own = {
            name: unmarked(rows.filter(pa.array(counted_here(rows))))
            for name, rows in late.items()
            if shares.is_first(name, cell)
        }
        return {name: rows for name, rows in own.items() if rows.num_rows}

    def _keep_late(self, folder: str, cell: int, several: Iterable[Mapping[str, pa.RecordBatch]]) -> None:
        """Keep late rows in one file a stream and micro-batch, whatever the pieces they came in."""
        by_input: dict[str, list[pa.RecordBatch]] = {}
        for late in several:
            for name, rows in late.items():
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
        self.spec.report(f"cell-{cell}", report)
        if statistics.switches or counts["steps"] == 1:
            self.spec.save(held.cell.knowledge())

    def _keep_ledger(self, payloads: Iterable[bytes], watermark: int) -> None:
        """Count rows without key or time, refuse a layout that is not the state's, and decide what to split next."""
        found = self._about.get()
        about = About(*found) if found else None
        counts = json.loads(about.counts) if about else {}
        told = [json.loads(one) for one in payloads]
        for entry in told:
            before = counts.setdefault("layout", entry["layout"])
            if before != entry["layout"]:
                raise StateError(
                    f"the checkpoint holds the state of another layout. It was {before} and would be "
                    f"{entry['layout']}: write the same cells=, rates=, on=, windows= and output= as before, or start "
                    f"with a new checkpoint"
                )
            new = {"without_key_or_time": {entry["input"]: entry["without_key_or_time"]}}
            counts = added_up([counts, new]) | {"layout": before}
        saved = json.loads(about.segments) if about else {}
        record = self._split(Record.from_json(saved) if saved else None, told, watermark)
        kept = json.dumps(record.to_json() if record else {})
        self._about.update(About(uuid.uuid4().hex, 0, kept, json.dumps(counts), "{}", ""))
        report = {
            "at": time.time(),
            "counts": counts,
            "split": record.describe(self.spec.layout.shares) if record else None,
        }
        self.spec.report("ledger", report)

    def _split(self, record: Record | None, told: list[dict[str, Any]], watermark: int) -> Record | None:
        """What is known of frequent keys after a micro-batch."""
        splitting = self.spec.splitting
        if splitting is None:
            if record and record.is_split:
                raise StateError(
                    "frequent keys are split in this checkpoint, which needs a folder that the driver and all workers "
                    "share: write state='...', or start with a new checkpoint"
                )
            return None
        batch = int(task_property("streaming.sql.batchId"))
        record = record or Record.new(splitting, batch)
        return record.after(splitting, task_property("sql.streaming.queryId"), batch, told, _microseconds(watermark))


def _microseconds(watermark: int) -> int:
    """A watermark in the unit of cells; Spark says 0 as long as there is none."""
    return watermark * MICROSECONDS if watermark > 0 else -FOREVER


def _frame(payload: bytes) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"payload": [payload]})


def _batch_name(cell: int) -> str:
    """What the work of a cell is called whenever it is done again."""
    return f"{task_property('sql.streaming.queryId')}-batch-{task_property('streaming.sql.batchId')}-{cell:05d}"
