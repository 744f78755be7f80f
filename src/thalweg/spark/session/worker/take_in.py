"""Takes in the rows of a micro-batch, in a worker: counts them by pane, and writes those that queries need to files.

A file counts only once the driver has been told of it: what a task wrote that failed or ran twice is never looked at.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.filters.worker.judges import Judge
from thalweg.spark.session.worker.early_calls import DECIDED, PASSES
from thalweg.spark.session.worker.grouped_file import GroupedFile
from thalweg.spark.session.worker.shared_predicates import EarlyAnswer, PredicateCounts, SharedPredicates

REPORT = "report string"  # what the driver is told: a line of JSON for each stream of which rows came
TIME = "time"  # the column of a row's time
ROWS_A_GROUP = 100_000  # of a Parquet file


@dataclass(frozen=True)
class StreamIntake:
    """What to do with the rows of one stream."""

    name: str
    width: int  # of a pane, in microseconds
    columns: tuple[tuple[int, str], ...]  # that are written: places and names
    conditions: tuple[tuple[int, int, str], ...]  # places of whole numbers, bits in them, and names
    conjunctions: tuple[tuple[int, ...], ...]  # numbers of the conditions that must all be true
    needed_after: int  # a time: no query needs earlier rows
    late_until: int | None = None  # a time: earlier rows are written aside, if there is one
    late_columns: tuple[tuple[int, str], ...] = ()  # that are written aside: places and names
    predicates: tuple[NamedPredicate, ...] = ()
    members: tuple[tuple[int, ...], ...] = ()  # of each conjunction, the numbers of its predicates


@dataclass(frozen=True)
class NamedPredicate:
    """A Python predicate, the column of its answers, what is known of it, and where early answers are."""

    column: str
    judge: Judge
    counts: PredicateCounts
    early: tuple[int, int] | None = None  # place of the whole number with early answers, and the first of its bits


@dataclass(frozen=True)
class TakeIn:
    """Takes in rows that begin with the name of their stream and their time in microseconds."""

    folder: str
    streams: tuple[StreamIntake, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count and write all rows, and tell what there was."""
        intakes = {stream.name: _StreamRows(stream, self.folder) for stream in self.streams}
        try:
            for batch in batches:
                names = pc.unique(batch.column(0)).to_pylist()
                for name in names:
                    own = batch if len(names) == 1 else batch.filter(pc.equal(batch.column(0), name))
                    intakes[name].add(own)
        finally:
            for intake in intakes.values():
                intake.close()
        reports = [json.dumps(intake.report()) for intake in intakes.values() if intake.has_rows]
        yield pa.RecordBatch.from_pydict({"report": pa.array(reports, pa.string())})


class _StreamRows:
    """The rows of one stream in one task."""

    def __init__(self, stream: StreamIntake, folder: str) -> None:
        self._stream = stream
        self._needed = _RowFile(folder)
        self._late = _RowFile(folder)
        self._predicates = SharedPredicates(
            [predicate.judge for predicate in stream.predicates],
            stream.members,
            [predicate.counts for predicate in stream.predicates],
        )
        self._panes: dict[int, np.ndarray] = {}  # by end: all rows, and then those of each conjunction
        self._latest: int | None = None
        self._without_time = 0

    @property
    def has_rows(self) -> bool:
        return self._latest is not None or self._without_time > 0

    def add(self, batch: pa.RecordBatch) -> None:
        stream = self._stream
        if batch.column(1).null_count:
            timed = batch.filter(pc.is_valid(batch.column(1)))
            self._without_time += batch.num_rows - timed.num_rows
            batch = timed
        if not batch.num_rows:
            return
        times = batch.column(1).to_numpy()
        latest = int(times.max())
        self._latest = latest if self._latest is None else max(self._latest, latest)
        bits = {place: batch.column(place).to_numpy() for place in {place for place, _, _ in stream.conditions}}
        is_true = [(bits[place] >> bit & 1).astype(np.bool_) for place, bit, _ in stream.conditions]
        kept = [_all_true(is_true, numbers, len(times)) for numbers in stream.conjunctions]
        stored = pa.RecordBatch.from_arrays(
            [batch.column(1), *(batch.column(place) for place, _ in stream.columns), *map(pa.array, is_true)],
            names=[TIME, *(name for _, name in stream.columns), *(name for _, _, name in stream.conditions)],
        )
        if stream.predicates:
            stored = self._decide(batch, stored, times, kept)
        self._count(times, kept)
        is_needed = np.zeros(len(times), bool)
        for mask in kept:
            is_needed |= mask
        is_needed &= times > stream.needed_after
        self._needed.add(stored, is_needed, times)
        if stream.late_until is not None:
            columns = [batch.column(place) for place, _ in stream.late_columns]
            whole = pa.RecordBatch.from_arrays(columns, names=[name for _, name in stream.late_columns])
            self._late.add(whole, times <= stream.late_until, times)

    def _decide(
        self, batch: pa.RecordBatch, stored: pa.RecordBatch, times: np.ndarray, kept: list[np.ndarray]
    ) -> pa.RecordBatch:
        """The stored columns with the answers of predicates; rows that they reject are not kept any more."""
        is_needed = times > self._stream.needed_after
        undecided = [mask & is_needed for mask in kept]
        early = [_early_answer(batch, predicate.early) for predicate in self._stream.predicates]
        answers = self._predicates.decide(batch.columns, times, undecided, early)
        for place, members in enumerate(self._stream.members):
            if members:  # rows that no query needs are not asked for: they count as rejected
                kept[place][:] = undecided[place]
        for predicate, answer in zip(self._stream.predicates, answers, strict=True):
            stored = stored.append_column(predicate.column, pa.array(answer))
        return stored

    def _count(self, times: np.ndarray, kept: Sequence[np.ndarray]) -> None:
        ends, places = np.unique(-(-times // self._stream.width), return_inverse=True)
        counts = np.empty((len(ends), len(kept) + 1), np.int64)
        counts[:, 0] = np.bincount(places, minlength=len(ends))
        for number, mask in enumerate(kept, 1):
            counts[:, number] = np.bincount(places[mask], minlength=len(ends))
        for end, row in zip((ends * self._stream.width).tolist(), counts, strict=True):
            self._panes[end] = self._panes[end] + row if end in self._panes else row

    def close(self) -> None:
        self._needed.close()
        self._late.close()

    def report(self) -> dict[str, Any]:
        return {
            "stream": self._stream.name,
            "latest": self._latest,
            "without_time": self._without_time,
            "panes": [[end, *counts.tolist()] for end, counts in self._panes.items()],
            "needed": self._needed.report(),
            "late": self._late.report(),
            "failed": {place: asdict(failed) for place, failed in self._predicates.failed.items()},
            "predicates": [asdict(counts) for counts in self._predicates.counts],
        }


class _RowFile:
    """A file of rows, of which the driver has to know how many there are, their latest time and their size."""

    def __init__(self, folder: str) -> None:
        self._name = f"{uuid.uuid4().hex}.parquet"
        self._file = GroupedFile(f"{folder}/{self._name}", "snappy", ROWS_A_GROUP)
        self._latest = 0
        self._size = 0  # bytes in memory

    def add(self, batch: pa.RecordBatch, mask: np.ndarray, times: np.ndarray) -> None:
        count = int(np.count_nonzero(mask))
        if not count:
            return
        latest = int(times.max(where=mask, initial=times[mask.argmax()]))
        self._latest = max(self._latest, latest) if self._file.rows else latest
        rows = batch if count == len(mask) else batch.filter(pa.array(mask))
        self._size += rows.nbytes
        self._file.add(pa.Table.from_batches([rows]))

    def close(self) -> None:
        self._file.close()

    def report(self) -> dict[str, Any] | None:
        """The file's name, its rows, the latest time among them, and their bytes in memory."""
        if not self._file.rows:
            return None
        return {"name": self._name, "rows": self._file.rows, "latest": self._latest, "size": self._size}


def _early_answer(batch: pa.RecordBatch, early: tuple[int, int] | None) -> EarlyAnswer | None:
    """For which rows a predicate was true, and for which it was asked and did not fail."""
    if early is None:
        return None
    place, bit = early
    word = batch.column(place).to_numpy()
    return EarlyAnswer(*((word >> bit + own & 1).astype(np.bool_) for own in (PASSES, DECIDED)))


def _all_true(is_true: Sequence[np.ndarray], numbers: Sequence[int], count: int) -> np.ndarray:
    return np.logical_and.reduce([is_true[number] for number in numbers]) if numbers else np.ones(count, bool)
