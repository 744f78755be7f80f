"""In which order the costly conditions of a stream are tested: by measured times and joint drop rates, for all queries.

Some rows of a micro-batch are tried with every condition and Python predicate, as `tw.where` tries them. The greedy
order of `tw.where` is then found over the conjunctions of all queries: each row counts once for each conjunction that
its cheap conditions leave undecided. Predicates that come before a condition in it are asked early, if that pays for
one more crossing of rows to Python and back; otherwise they come last. An order is taken only if it is surely better on
these rows, and saves more than Spark takes to compile its text. Results do not depend on it: guards say only for which
rows a condition is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from thalweg.ordering.static_greedy import greedy_order
from thalweg.ordering.types import Booleans, Floats
from thalweg.spark.filters.choose import CROSSING_SECONDS
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.sample import take_sample
from thalweg.spark.filters.worker.judges import TRUE, Judge, NotJudge
from thalweg.spark.identifiers import backticked
from thalweg.spark.interruptions import refuse_interruption
from thalweg.spark.session.guards import guards_of
from thalweg.spark.session.program import Program, Shared, SharedCall, SharedCondition
from thalweg.spark.session.sources import STREAM, SharedStream
from thalweg.spark.session.worker.early_calls import MOST_CALLS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.predicates.function import FunctionPredicate

LEAST_ROWS = 1000  # of a stream in a micro-batch: with fewer there is little to gain, and little to learn from
MOST_CONDITIONS = 60  # costly conditions of a stream: a drop mask is a whole number
GAIN = 1.1  # times that the cost of the present order has to be that of another
SURE = 3.0  # standard errors by which the gain has to differ from zero
COMPILE_SECONDS = 0.3  # that Spark takes for a new text, roughly
HORIZON = 20  # micro-batches within which a new order has to pay for that
STAGE_SECONDS = 0.04  # that it takes to plan and start another function of Python in a micro-batch, roughly
LONGEST_PAUSE = 64  # micro-batches between two samples; pauses grow from one while the order stays


@dataclass(frozen=True)
class MeasuredOrder:
    """The order of the costly conditions of a stream, and what was measured when it was looked at last."""

    order: tuple[Shared, ...]  # with the early calls of Python predicates
    rows: int  # that were tried
    seconds: float  # of a row in this order, for all queries
    seconds_as_written: float  # of a row in the order of the queries
    seconds_of: Mapping[str, float]  # each condition, by its column
    passed: Mapping[str, float]  # the share of rows for which each condition is true, by its column
    batch: int  # in which it was taken


@dataclass(frozen=True, eq=False)
class TriedRows:
    """Rows with the answers of all conditions on a stream, a column for each, and the seconds of a condition.

    Calls of Python predicates are among them if they may be made early.
    """

    is_true: Mapping[Shared, Booleans]
    seconds: Mapping[Shared, float]
    crossing: float = CROSSING_SECONDS  # of a row, if there are early calls

    @property
    def count(self) -> int:
        """How many rows were tried."""
        return len(next(iter(self.is_true.values())))

    def costs(self, program: Program, stream: str) -> Floats:
        """The seconds that costly conditions, and Python predicates, take for each row."""
        guards = guards_of(program, stream)
        late = {each.column: each for each in self.is_true if isinstance(each, SharedCall) and each not in guards}
        total = np.zeros(self.count)
        for condition, seconds in self.seconds.items():
            if condition.is_cheap or condition.column in late:
                continue
            evaluated = np.ones(self.count, np.bool_)
            if condition in guards:
                alternatives = [self._all(each) for each in guards[condition].alternatives]
                evaluated = np.logical_or.reduce(alternatives)
            total += seconds * evaluated
        if any(isinstance(condition, SharedCall) for condition in guards):
            total += self.crossing
        return total + self._costs_of_late(late, program, stream)

    def _costs_of_late(self, late: Mapping[str, Shared], program: Program, stream: str) -> Floats:
        """The seconds of predicates that come last, by rank, for the rows that conditions leave undecided."""
        members = {each.column: each for each in self.is_true}
        conjunctions = [each.columns for each in program.conjunctions_of(stream)]
        alive = [
            self._all([members[column] for column in columns if column in members and column not in late])
            for columns in conjunctions
        ]
        total = np.zeros(self.count)
        for call in sorted(
            late.values(), key=lambda each: self.seconds[each] / max((~self.is_true[each]).mean(), 1e-9)
        ):
            own = [place for place, columns in enumerate(conjunctions) if call.column in columns]
            total += self.seconds[call] * np.logical_or.reduce([alive[place] for place in own])
            for place in own:
                alive[place] = alive[place] & self.is_true[call]
        return total

    def candidates(self, program: Program, stream: str) -> list[tuple[str, ...]]:
        """Orders to choose from: that of conditions alone, and with the predicates that come before conditions."""
        conditions = self.greedy(program, stream)
        together = self.greedy(program, stream, with_calls=True)
        calls = {each.column for each in self.is_true if isinstance(each, SharedCall)}
        last = max((place for place, column in enumerate(together) if column not in calls), default=-1)
        early = together[: last + 1]
        return [conditions, early] if calls & set(early) else [conditions]

    def greedy(self, program: Program, stream: str, *, with_calls: bool = False) -> tuple[str, ...]:
        """The columns of costly conditions in the greedy order over all conjunctions, those of several costly ones.

        A row is a tuple for each conjunction that its cheap conditions leave undecided, and a condition of several
        conjunctions is evaluated once for them: its cost is divided among the tuples of a row.
        """
        conjunctions = [
            tuple(
                each for each in members if each in self.is_true and (with_calls or isinstance(each, SharedCondition))
            )
            for members in conjunctions_of_costly(program, stream)
        ]
        costly = list(dict.fromkeys(each for members in conjunctions for each in members if not each.is_cheap))
        masks, evaluated, tuples = [], np.zeros((len(costly), self.count), np.bool_), np.zeros(len(costly))
        for members in conjunctions:
            left = self._all([each for each in members if each.is_cheap])
            mask = np.zeros(self.count, np.int64)
            for number, condition in enumerate(costly):
                if condition in members:
                    mask |= np.where(self.is_true[condition], 0, 1 << number)
                    evaluated[number] |= left
                    tuples[number] += np.count_nonzero(left)
            masks.append(mask[left])
        shares = evaluated.sum(axis=1) / np.maximum(tuples, 1.0)
        costs = np.array([self.seconds[condition] for condition in costly]) * np.maximum(shares, 1e-9)
        return tuple(costly[number].column for number in greedy_order(np.concatenate(masks), costs))

    def _all(self, conditions: Sequence[Shared] | frozenset[Shared]) -> Booleans:
        found = np.ones(self.count, np.bool_)
        for condition in conditions:
            found &= self.is_true[condition]
        return found


class ConditionOrders:
    """The orders of the costly conditions of all streams, looked at from time to time while a session runs."""

    def __init__(
        self, streams: Mapping[str, SharedStream], predicates: Mapping[str, FunctionPredicate] = MappingProxyType({})
    ) -> None:
        self.measured: dict[str, MeasuredOrder] = {}
        self._streams = streams
        self._predicates = predicates
        self._conditions: dict[str, frozenset[str]] = {}  # of each stream, when it was looked at last
        self._pauses: dict[str, tuple[int, int]] = {}  # of each stream: the length, and the micro-batches that are left

    def due(self, program: Program, rows: Mapping[str, int]) -> list[str]:
        """The streams to look at now; `rows` came of each stream in the last micro-batch."""
        found = []
        for stream in self._streams:
            if not conjunctions_of_costly(program, stream):
                self.measured.pop(stream, None)
                self._conditions.pop(stream, None)
                continue
            length, left = self._pauses.get(stream, (1, 0))
            is_known = self._conditions.get(stream) == _columns(program, stream)
            if is_known and left > 0:
                self._pauses[stream] = (length, left - 1)
            elif rows.get(stream, 0) >= LEAST_ROWS:
                found.append(stream)
        return found

    def look(
        self, batch: DataFrame, number: int, program: Program, stream: str, rows: int, all_rows: int = 0
    ) -> Program:
        """The program with the order of a stream's costly conditions that some rows of a micro-batch call for.

        `rows` came of the stream in the last micro-batch, and `all_rows` of all streams: early calls are one more
        function of Python, to which the rows of all streams are sent.
        """
        tried = self._try_rows(batch, program, stream)
        if tried is None:
            self._pause(program, stream, is_new=False)
            return program
        tried = replace(tried, crossing=(CROSSING_SECONDS * max(all_rows, rows) + STAGE_SECONDS) / max(rows, 1))
        others = [
            replace(program, orders={**program.orders, stream: order}) for order in tried.candidates(program, stream)
        ]
        present, costs = tried.costs(program, stream), [tried.costs(other, stream) for other in others]
        new, other = min(zip(costs, others, strict=True), key=lambda each: float(each[0].mean()))
        is_new = is_surely_better(present, new, rows) and guards_of(program, stream) != guards_of(other, stream)
        self._pause(program, stream, is_new=is_new)
        chosen = other if is_new else program
        before = self.measured.get(stream)
        self.measured[stream] = MeasuredOrder(
            tuple(condition for condition in in_order(chosen, stream) if not condition.is_cheap),
            tried.count,
            float((new if is_new else present).mean()),
            float(tried.costs(replace(program, orders={}), stream).mean()),
            {condition.column: seconds for condition, seconds in tried.seconds.items()},
            {condition.column: float(mask.mean()) for condition, mask in tried.is_true.items()},
            number if is_new or before is None else before.batch,
        )
        return chosen

    def _pause(self, program: Program, stream: str, *, is_new: bool) -> None:
        was_known = self._conditions.get(stream) == _columns(program, stream)
        length = 1 if is_new or not was_known else min(2 * self._pauses.get(stream, (1, 0))[0], LONGEST_PAUSE)
        self._pauses[stream] = (length, length)
        self._conditions[stream] = _columns(program, stream)

    def _try_rows(self, batch: DataFrame, program: Program, stream: str) -> TriedRows | None:
        """Some rows with the answers and times of all conditions and calls; None if they cannot be had."""
        from pyspark.sql import functions as f

        source = self._streams[stream]
        conditions = [each for each in program.conditions if each.stream == stream]
        calls = self._calls_that_may_be_early(program, stream)
        stored = {source.stored_name(name): None for call in calls for name in call.call.columns}
        facts = source.facts([each.sql for each in conditions])
        frame = batch.where(f.col(STREAM) == stream)
        written = [
            SparkCondition(f.expr(condition.stored_sql), known)
            for condition, known in zip(conditions, facts, strict=True)
        ]
        try:
            columns = {name: f.col(backticked(name)) for name in stored}
            sample = take_sample(frame, written, columns, size=1)  # without a look at how large the micro-batch is
            trials = {call: self._form(call, source).try_on(sample.of_conditions(slice(0))) for call in calls}
        except Exception as error:  # noqa: BLE001 - without a sample, the order stays
            refuse_interruption(error)
            return None
        if not len(sample.codes):
            return None
        is_true: dict[Shared, Booleans] = {
            condition: sample.codes[:, place] == TRUE for place, condition in enumerate(conditions)
        }
        seconds: dict[Shared, float] = dict(zip(conditions, sample.seconds.tolist(), strict=True))
        for call, trial in trials.items():
            is_true[call], seconds[call] = ~trial.dropped, trial.seconds
        tried = min(map(len, is_true.values()))  # a slow predicate is tried on the first rows only
        return TriedRows({condition: answers[:tried] for condition, answers in is_true.items()}, seconds)

    def _form(self, call: SharedCall, stream: SharedStream) -> PythonForm:
        """A call as `tw.where` tries it."""
        predicate = self._predicates[call.call.predicate]
        make = predicate.judge_maker
        if call.call.negated:
            make = partial(_negated, predicate.name, make)
        return PythonForm(tuple(map(stream.stored_name, call.call.columns)), (), make)

    def _calls_that_may_be_early(self, program: Program, stream: str) -> list[SharedCall]:
        """The calls beside costly conditions, but those that wait for services, which are not asked once more."""
        members = {each for conjunction in conjunctions_of_costly(program, stream) for each in conjunction}
        calls = [each for each in program.calls if each in members]
        return [call for call in calls if self._predicates[call.call.predicate].waiting is None][:MOST_CALLS]


def _negated(
    name: str, make: Callable[[Sequence[int], Sequence[int]], Judge], columns: Sequence[int], codes: Sequence[int]
) -> Judge:
    return NotJudge(name, make(columns, codes))


def in_order(program: Program, stream: str) -> list[Shared]:
    """The conditions on a stream, and early calls, in the order in which they are tested."""
    guards = guards_of(program, stream)
    places = {column: place for place, column in enumerate(program.orders.get(stream, ()))}
    return sorted(
        (each for each in program.members_of(stream).values() if isinstance(each, SharedCondition) or each in guards),
        key=lambda each: (guards[each].step if each in guards else 0, places.get(each.column, len(places))),
    )


def is_surely_better(present: Floats, new: Floats, rows: int) -> bool:
    """Whether an order costs less than the present order, by its cost for some of as many rows in a micro-batch.

    >>> present, new = np.array([1e-3] * 50), np.array([1e-3] * 10 + [1e-6] * 40)
    >>> is_surely_better(present, new, rows=5000), is_surely_better(present, new, rows=1)
    (True, False)
    """
    saved = present - new
    error = float(saved.std()) / max(len(saved), 1) ** 0.5
    mean = float(saved.mean())
    return (
        mean > SURE * error
        and float(present.mean()) > GAIN * float(new.mean())
        and mean * rows * HORIZON > COMPILE_SECONDS
    )


def conjunctions_of_costly(program: Program, stream: str) -> list[tuple[Shared, ...]]:
    """The conjunctions on a stream with a costly condition, and another one or a Python predicate.

    None if there are too many conditions.
    """
    members: dict[str, Shared] = {each.column: each for each in program.shared if each.stream == stream}
    if sum(not each.is_cheap for each in members.values()) > MOST_CONDITIONS:
        return []
    found = []
    for conjunction in program.conjunctions_of(stream):
        own = tuple(members[column] for column in conjunction.columns if column in members)
        costly = [each for each in own if not each.is_cheap]
        if len(costly) > 1 and any(isinstance(each, SharedCondition) for each in costly):
            found.append(own)
    return found


def _columns(program: Program, stream: str) -> frozenset[str]:
    return frozenset(each.column for each in program.shared if each.stream == stream)
