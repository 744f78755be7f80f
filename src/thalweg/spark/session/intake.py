"""The rows of a micro-batch, taken in once for all queries: each shared condition is evaluated once for each row.

One job reads the micro-batch, counts its rows by stream and pane, and writes the rows that queries need to files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.conditions import backticked
from thalweg.spark.filters.predicates.function import function_judge
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.panes import Pane, Panes, together
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import Program, SharedCall, SharedCondition
from thalweg.spark.session.sources import STREAM, TIME, SharedStream, tasks_at_once
from thalweg.spark.session.views import Views, stored_schema
from thalweg.spark.session.worker.shared_predicates import Failed, PredicateCounts
from thalweg.spark.session.worker.take_in import REPORT, NamedPredicate, StreamIntake, TakeIn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.worker.judges import Judge

UNREAD = 1 << 40  # microseconds: the width of panes of a stream that no query reads
NEVER = 1 << 62  # microseconds: later than any event time


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

    Of each stream, rows up to `needed_after` are needed by no query, and rows up to `late_until` are written aside.
    `known` is what earlier micro-batches told of Python predicates.
    """
    streams = list(catalog.streams.values())
    own_folder = f"segments/{number}"
    shutil.rmtree(f"{folder}/{own_folder}", ignore_errors=True)  # of a try that did not end
    Path(folder, own_folder).mkdir(parents=True)
    asked = {call.column for call in program.calls}  # their answers come in the worker
    stored = {
        stream.name: [name for name in stored_schema(program, stream).names if name not in asked] for stream in streams
    }
    columns = [STREAM, TIME, *dict.fromkeys(name for names in stored.values() for name in names[1:])]
    intakes = []
    for stream in streams:
        calls = [call for call in program.calls if call.stream == stream.name]
        numbers = {call.column: number for number, call in enumerate(calls)}
        conjunctions = program.conjunctions_of(stream.name)
        intakes.append(
            StreamIntake(
                name=stream.name,
                width=program.pane(stream.name) or UNREAD,
                stored=tuple(columns.index(name) for name in stored[stream.name]),
                conjunctions=tuple(
                    tuple(columns.index(column) for column in conjunction.columns if column not in asked)
                    for conjunction in conjunctions
                ),
                needed_after=needed_after.get(stream.name, NEVER),
                late_until=late_until.get(stream.name),
                predicates=tuple(
                    NamedPredicate(
                        call.column, _judge(call, stream, catalog, columns), known.get(call.column, PredicateCounts())
                    )
                    for call in calls
                ),
                members=tuple(
                    tuple(numbers[column] for column in conjunction.columns if column in asked)
                    for conjunction in conjunctions
                ),
            )
        )
    with Views(batch.sparkSession) as views:
        rows = views.spark.sql(shared_rows(views.add(batch), program, columns))
        told = rows.coalesce(tasks_at_once(views.spark)).mapInArrow(
            TakeIn(f"{folder}/{own_folder}", tuple(intakes)), REPORT
        )
        reports = [json.loads(row.report) for row in told.collect()]
    return _together(reports, program, own_folder)


def _judge(call: SharedCall, stream: SharedStream, catalog: Catalog, columns: Sequence[str]) -> Judge:
    """A predicate as a worker runs it, on these columns."""
    predicate = catalog.predicates[call.call.predicate]
    places = [columns.index(stream.stored_name(name)) for name in call.call.columns]
    return function_judge(predicate.name, predicate.function, predicate.takes, places, (), negate=call.call.negated)


def shared_rows(view: str, program: Program, columns: Sequence[str]) -> str:
    """The text of a query for these columns; a condition's column is FALSE where the condition is NULL.

    A condition that implies another one is evaluated for the rows only for which the other one is true.
    """
    conditions = {each.column for each in program.conditions}
    text = f"(SELECT *, {_texts(program.conditions, program, 0)} FROM {view})" if conditions else view
    for level in range(1, program.levels):
        text = f"(SELECT *, {_texts(program.conditions, program, level)} FROM {text})"
    return f"SELECT {', '.join(map(backticked, columns))} FROM {text}"


def _texts(conditions: Iterable[SharedCondition], program: Program, level: int) -> str:
    texts = []
    for condition in conditions:
        weaker = program.weaker(condition)
        if program.level(condition) == level:
            first = f"{STREAM} = '{condition.stream}'" if weaker is None else backticked(weaker.column)
            texts.append(f"coalesce({first} AND ({condition.stored_sql}), FALSE) AS {backticked(condition.column)}")
    return ", ".join(texts)


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
