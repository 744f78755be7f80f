"""The rows of a micro-batch, taken in once for all queries: each shared condition is evaluated once for each row.

One job reads the micro-batch, counts its rows by stream and pane, and writes the rows that queries need to files.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.worker.judges import Judge, NotJudge
from thalweg.spark.folder import make_private_folder
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.guards import Guard, answered_weaker, guards_of
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.panes import Pane, Panes, together
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import Program, SharedCall, SharedCondition
from thalweg.spark.session.sources import STREAM, SharedStream, tasks_at_once
from thalweg.spark.session.views import Views
from thalweg.spark.session.waiting import NEVER
from thalweg.spark.session.worker.shared_predicates import Failed, PredicateCounts
from thalweg.spark.session.worker.take_in import REPORT, TIME, NamedPredicate, StreamIntake, TakeIn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNREAD = 1 << 40  # microseconds: the width of panes of a stream that no query reads
BITS = 62  # conditions in a whole number
FIRST_SLOT = 2  # behind stream and time

Slot = dict[str, str]  # the name of a column of each stream, as it is among the rows of all streams


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
        rows = views.spark.sql(shared_rows(views.add(batch), program, slots))
        told = rows.coalesce(tasks_at_once(views.spark)).mapInArrow(
            TakeIn(f"{folder}/{own_folder}", tuple(intakes)), REPORT
        )
        reports = [json.loads(row.report) for row in told.collect()]
    return _together(reports, program, own_folder)


def column_slots(streams: Sequence[SharedStream], columns: Mapping[str, Sequence[str]]) -> list[Slot]:
    """Columns of the same type, at most one of each stream, together: rows of many streams need few columns."""
    found: dict[tuple[str, int], Slot] = {}
    for stream in streams:
        before: Counter[str] = Counter()
        for name in columns[stream.name]:
            kind = stream.frame.schema[name].dataType.json()
            found.setdefault((kind, before[kind]), {})[stream.name] = stream.stored_name(name)
            before[kind] += 1
    return list(found.values())


def shared_rows(view: str, program: Program, slots: Sequence[Slot]) -> str:
    """The text of a query for the rows of all streams: the slots, and then conditions as the bits of whole numbers.

    A row has values in the columns of its own stream only, so that `coalesce` finds them. A condition that implies
    another one is evaluated for the rows only for which the other one is true, and a costly condition for those that
    its guard leaves to it: it is evaluated in a later projection, which finds the bits of the conditions before it.
    """
    by_stream: dict[str, list[SharedCondition]] = {}
    for condition in program.conditions:
        by_stream.setdefault(condition.stream, []).append(condition)
    answers = {stream: _Answers(conditions, program) for stream, conditions in by_stream.items()}
    words = range(-(-max(map(len, by_stream.values()), default=0) // BITS))
    rows, columns = view, [_case({stream: each.unguarded(word) for stream, each in answers.items()}) for word in words]
    for step in range(1, max((each.steps for each in answers.values()), default=0) + 1):
        names = [f"answers_{step}_{word}" for word in words]
        named = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=True))
        rows = f"(SELECT *, {named} FROM {rows})"
        columns = []
        for word, name in enumerate(names):
            cases = {stream: each.guarded(word, step, names) for stream, each in answers.items()}
            columns.append(f"{name} + {_case(cases, otherwise='0L')}" if any(cases.values()) else name)
    slot_columns = [f"coalesce({', '.join(map(backticked, slot.values()))})" for slot in slots]
    named_columns = [f"{column} AS `{place}`" for place, column in enumerate([*slot_columns, *columns])]
    return f"SELECT {', '.join([STREAM, TIME, *named_columns])} FROM {rows}"


def _case(texts: Mapping[str, str | None], otherwise: str | None = None) -> str:
    """The value of the text of a row's stream."""
    cases = [f"WHEN '{stream}' THEN {text}" for stream, text in texts.items() if text is not None]
    return f"CASE {STREAM} {' '.join(cases)}{'' if otherwise is None else f' ELSE {otherwise}'} END"


class _Answers:
    """The texts of the conditions of one stream: a bit of a whole number for each, the first one the lowest."""

    def __init__(self, conditions: Sequence[SharedCondition], program: Program) -> None:
        self._places = {condition: divmod(place, BITS) for place, condition in enumerate(conditions)}
        self._guards = guards_of(program, conditions[0].stream)
        self._weaker = {condition: answered_weaker(condition, program, self._guards) for condition in conditions}

    @property
    def steps(self) -> int:
        return max((guard.step for guard in self._guards.values()), default=0)

    def unguarded(self, word: int) -> str | None:
        """The bits of the conditions that are evaluated for every row; None for a word behind the last condition."""
        conditions = [condition for condition, (own, _) in self._places.items() if own == word]
        if not conditions:
            return None
        evaluated = [condition for condition in conditions if condition not in self._guards]

        def text(condition: SharedCondition) -> str:
            stronger = [text(other) for other in evaluated if self._weaker[other] == condition]
            return f"if({condition.stored_sql}, {' + '.join([f'{self._bit(condition)}L', *stronger])}, 0L)"

        found = [text(condition) for condition in evaluated if self._weaker[condition] not in evaluated]
        return " + ".join(found) or "0L"

    def guarded(self, word: int, step: int, names: Sequence[str]) -> str | None:
        """The bits of the conditions of a step; the words with the bits of earlier steps have these names."""
        found = [
            f"if({self._guard(guard, names)}, if({condition.stored_sql}, {self._bit(condition)}L, 0L), 0L)"
            for condition, guard in self._guards.items()
            if guard.step == step and self._places[condition][0] == word
        ]
        return " + ".join(found) or None

    def _bit(self, condition: SharedCondition) -> int:
        return 1 << self._places[condition][1]

    def _guard(self, guard: Guard, names: Sequence[str]) -> str:
        """Whether all conditions of an alternative are true. Alternatives of one condition need one test a word."""
        single: Counter[int] = Counter()
        several = []
        for alternative in guard.alternatives:
            masks: Counter[int] = Counter()
            for condition in alternative:
                masks[self._places[condition][0]] += self._bit(condition)
            if len(alternative) == 1:
                single.update(masks)
            else:
                several.append(
                    " AND ".join(f"({names[word]} & {mask}L) = {mask}L" for word, mask in sorted(masks.items()))
                )
        return " OR ".join([*(f"({names[word]} & {mask}L) <> 0L" for word, mask in sorted(single.items())), *several])


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
                call.column, _judge(call, stream, catalog, places), known.get(call.column, PredicateCounts())
            )
            for call in calls
        ),
        members=tuple(
            tuple(asked.index(column) for column in conjunction.columns if column in asked)
            for conjunction in conjunctions
        ),
    )


def _judge(call: SharedCall, stream: SharedStream, catalog: Catalog, places: Mapping[str, int]) -> Judge:
    """A predicate as a worker runs it, on the columns at these places."""
    predicate = catalog.predicates[call.call.predicate]
    judge = predicate.judge_maker([places[stream.stored_name(name)] for name in call.call.columns], ())
    return NotJudge(predicate.name, judge) if call.call.negated else judge


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
