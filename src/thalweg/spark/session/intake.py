"""The rows of a micro-batch, taken in once for all queries: each shared condition is evaluated once for each row.

One job reads the micro-batch, counts its rows by stream and pane, and writes the rows that queries need to files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.spark.folder import make_private_folder
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.panes import Pane, Panes, together
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import Program
from thalweg.spark.session.shared_rows import (
    BITS,
    FIRST_SLOT,
    Slot,
    bits_of_calls,
    column_slots,
    judge_of,
    shared_rows,
    steps_of_calls,
    with_early_calls,
    words_of,
)
from thalweg.spark.session.sources import SharedStream, tasks_at_once
from thalweg.spark.session.views import Views
from thalweg.spark.session.waiting import NEVER
from thalweg.spark.session.worker.shared_predicates import Failed, PredicateCounts
from thalweg.spark.session.worker.take_in import REPORT, NamedPredicate, StreamIntake, TakeIn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNREAD = 1 << 40  # microseconds: the width of panes of a stream that no query reads


@dataclass(frozen=True)
class Intake:
    """What a micro-batch brought."""

    panes: Panes = field(default_factory=dict)
    latest: Mapping[str, int] = field(default_factory=dict)  # time of each stream
    without_time: int = 0  # rows that have no event time
    files: tuple[WaitingFile, ...] = ()  # of rows that queries need
    late: tuple[WaitingFile, ...] = ()  # of rows that came too late for some query
    failed: Mapping[str, Failed] = field(default_factory=dict)  # conjunctions that a Python predicate failed, by name
    predicates: Mapping[str, PredicateCounts] = field(default_factory=dict)  # by the column of a shared call

    @property
    def rows(self) -> int:
        """How many rows have a time, and a query that reads their stream."""
        return sum(pane.rows for ends in self.panes.values() for pane in ends.values())


def take_in(
    batch: DataFrame,
    program: Program,
    catalog: Catalog,
    folder: str,
    number: int,
    needed_after: Mapping[str, int],
    late_until: Mapping[str, int],
    known: Mapping[str, PredicateCounts],
) -> Intake:
    """Take in a micro-batch, in one job. Files are written to a folder of the micro-batch within `folder`.

    Of each stream, rows up to `needed_after` are needed by no query, and rows up to `late_until` are written aside,
    with all columns.
    `known` is what earlier micro-batches told of Python predicates.
    """
    streams = list(catalog.streams.values())
    own_folder = f"segments/{number}"
    shutil.rmtree(f"{folder}/{own_folder}", ignore_errors=True)  # of a try that did not end
    make_private_folder(Path(folder, own_folder))
    slots = column_slots(
        streams,
        {each.name: each.frame.columns if each.name in late_until else program.columns(each) for each in streams},
    )
    intakes = [
        _stream_intake(stream, program, catalog, slots, known, needed_after.get(stream.name, NEVER), late_until)
        for stream in streams
    ]
    with Views(batch.sparkSession) as views:

        def ask(rows: str, step: int) -> str:
            return views.add(with_early_calls(views.spark.sql(f"SELECT * FROM {rows}"), program, catalog, step))

        rows = views.spark.sql(shared_rows(views.add(batch), program, slots, ask))
        told = rows.coalesce(tasks_at_once(views.spark)).mapInArrow(
            TakeIn(f"{folder}/{own_folder}", tuple(intakes)), REPORT
        )
        reports = [json.loads(row.report) for row in told.collect()]
    return _together(reports, program, own_folder)


def _stream_intake(
    stream: SharedStream,
    program: Program,
    catalog: Catalog,
    slots: Sequence[Slot],
    known: Mapping[str, PredicateCounts],
    needed_after: int,
    late_until: Mapping[str, int],
) -> StreamIntake:
    """What workers do with the rows of a stream."""
    places = {slot[stream.name]: FIRST_SLOT + place for place, slot in enumerate(slots) if stream.name in slot}
    conditions = [condition.column for condition in program.conditions if condition.stream == stream.name]
    calls = [call for call in program.calls if call.stream == stream.name]
    asked = [call.column for call in calls]
    conjunctions = program.conjunctions_of(stream.name)
    early = bits_of_calls(program, stream.name)
    first_asked = FIRST_SLOT + len(slots) + words_of(program)
    steps = steps_of_calls(program)
    return StreamIntake(
        name=stream.name,
        width=program.pane(stream.name) or UNREAD,
        columns=tuple((places[name], name) for name in map(stream.stored_name, program.columns(stream))),
        conditions=tuple(
            (FIRST_SLOT + len(slots) + number // BITS, number % BITS, name) for number, name in enumerate(conditions)
        ),
        conjunctions=tuple(
            tuple(conditions.index(column) for column in conjunction.columns if column not in asked)
            for conjunction in conjunctions
        ),
        needed_after=needed_after,
        late_until=late_until.get(stream.name),
        late_columns=tuple((places[stream.stored_name(name)], name) for name in stream.frame.columns)
        if stream.name in late_until
        else (),
        predicates=tuple(
            NamedPredicate(
                call.column,
                judge_of(call, stream, catalog, places),
                known.get(call.column, PredicateCounts()),
                (first_asked + steps.index(early[call][0]), early[call][1]) if call in early else None,
            )
            for call in calls
        ),
        members=tuple(
            tuple(asked.index(column) for column in conjunction.columns if column in asked)
            for conjunction in conjunctions
        ),
    )


def _together(reports: Sequence[Mapping[str, Any]], program: Program, folder: str) -> Intake:
    """What all tasks have told, together."""
    panes: Panes = {}
    latest: dict[str, int] = {}
    files: dict[str, list[WaitingFile]] = {"needed": [], "late": []}
    for report in reports:
        stream = report["stream"]
        if report["latest"] is not None:
            latest[stream] = max(latest.get(stream, report["latest"]), report["latest"])
        width = program.pane(stream)
        if width is not None:
            names = [conjunction.name for conjunction in program.conjunctions_of(stream)]
            new = {end: Pane(width, rows, dict(zip(names, kept, strict=True))) for end, rows, *kept in report["panes"]}
            panes = together(panes, {stream: new})
        for kind, listed in files.items():
            if report[kind] is not None:
                about = report[kind]
                listed.append(
                    WaitingFile(stream, f"{folder}/{about['name']}", about["rows"], about["latest"], about["size"])
                )
    without_time = sum(report["without_time"] for report in reports)
    needed, late = tuple(files["needed"]), tuple(files["late"])
    return Intake(panes, latest, without_time, needed, late, *_of_predicates(reports, program))


def _of_predicates(
    reports: Sequence[Mapping[str, Any]], program: Program
) -> tuple[dict[str, Failed], dict[str, PredicateCounts]]:
    """What all tasks have told of Python predicates: conjunctions that failed, and counts."""
    failed: dict[str, Failed] = {}
    counts: dict[str, PredicateCounts] = {}
    for report in reports:
        conjunctions = program.conjunctions_of(report["stream"])
        for place, about in report["failed"].items():
            name, found = conjunctions[int(place)].name, Failed(**about)
            if name not in failed or found.time > failed[name].time:
                failed[name] = found
        calls = [call.column for call in program.calls if call.stream == report["stream"]]
        for column, about in zip(calls, report["predicates"], strict=True):
            counts[column] = counts.get(column, PredicateCounts()) + PredicateCounts(**about)
    return failed, counts
