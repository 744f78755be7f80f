"""In which order the costly conditions of a stream are tested: by measured times and joint drop rates, for all queries.

Some rows of a micro-batch are tried with every condition, as `tw.where` tries them. The greedy order of `tw.where` is
then found over the conjunctions of all queries: each row counts once for each conjunction that its cheap conditions
leave undecided. An order is taken only if it is surely better on these rows, and saves more than Spark takes to compile
its text. Results do not depend on it: guards say only for which rows a condition is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from thalweg.ordering.static_greedy import greedy_order
from thalweg.ordering.types import Booleans, Floats
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.sample import take_sample
from thalweg.spark.filters.worker.judges import TRUE
from thalweg.spark.interruptions import refuse_interruption
from thalweg.spark.session.guards import guards_of
from thalweg.spark.session.program import Program, SharedCondition
from thalweg.spark.session.sources import STREAM, SharedStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_ROWS = 1000  # of a stream in a micro-batch: with fewer there is little to gain, and little to learn from
MOST_CONDITIONS = 60  # costly conditions of a stream: a drop mask is a whole number
GAIN = 1.1  # times that the cost of the present order has to be that of another
SURE = 3.0  # standard errors by which the gain has to differ from zero
COMPILE_SECONDS = 0.3  # that Spark takes for a new text, roughly
HORIZON = 20  # micro-batches within which a new order has to pay for that
LONGEST_PAUSE = 64  # micro-batches between two samples; pauses grow from one while the order stays


@dataclass(frozen=True)
class MeasuredOrder:
    """The order of the costly conditions of a stream, and what was measured when it was looked at last."""

    order: tuple[SharedCondition, ...]
    rows: int  # that were tried
    seconds: float  # of a row in this order, for all queries
    seconds_as_written: float  # of a row in the order of the queries
    seconds_of: Mapping[str, float]  # each condition, by its column
    passed: Mapping[str, float]  # the share of rows for which each condition is true, by its column
    batch: int  # in which it was taken


@dataclass(frozen=True, eq=False)
class TriedRows:
    """Rows with the answers of all conditions on a stream, a column for each, and the seconds of a condition."""

    is_true: Mapping[SharedCondition, Booleans]
    seconds: Mapping[SharedCondition, float]

    @property
    def count(self) -> int:
        """How many rows were tried."""
        return len(next(iter(self.is_true.values())))

    def costs(self, program: Program, stream: str) -> Floats:
        """The seconds that the costly conditions of a program take for each row."""
        guards = guards_of(program, stream)
        total = np.zeros(self.count)
        for condition, seconds in self.seconds.items():
            if condition.is_cheap:
                continue
            evaluated = np.ones(self.count, np.bool_)
            if condition in guards:
                alternatives = [self._all(each) for each in guards[condition].alternatives]
                evaluated = np.logical_or.reduce(alternatives)
            total += seconds * evaluated
        return total

    def greedy(self, program: Program, stream: str) -> tuple[str, ...]:
        """The columns of costly conditions in the greedy order over all conjunctions, those of several costly ones.

        A row is a tuple for each conjunction that its cheap conditions leave undecided, and a condition of several
        conjunctions is evaluated once for them: its cost is divided among the tuples of a row.
        """
        conjunctions = conjunctions_of_costly(program, stream)
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

    def _all(self, conditions: Sequence[SharedCondition] | frozenset[SharedCondition]) -> Booleans:
        found = np.ones(self.count, np.bool_)
        for condition in conditions:
            found &= self.is_true[condition]
        return found


class ConditionOrders:
    """The orders of the costly conditions of all streams, looked at from time to time while a session runs."""

    def __init__(self, streams: Mapping[str, SharedStream]) -> None:
        self.measured: dict[str, MeasuredOrder] = {}
        self._streams = streams
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

    def look(self, batch: DataFrame, number: int, program: Program, stream: str, rows: int) -> Program:
        """The program with the order of a stream's costly conditions that some rows of a micro-batch call for."""
        tried = self._try_rows(batch, program, stream)
        if tried is None:
            self._pause(program, stream, is_new=False)
            return program
        other = replace(program, orders={**program.orders, stream: tried.greedy(program, stream)})
        present, new = tried.costs(program, stream), tried.costs(other, stream)
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
        """Some rows with the answers and times of all conditions; None if they cannot be had."""
        from pyspark.sql import functions as f

        conditions = [each for each in program.conditions if each.stream == stream]
        facts = self._streams[stream].facts([each.sql for each in conditions])
        frame = batch.where(f.col(STREAM) == stream)
        written = [
            SparkCondition(f.expr(condition.stored_sql), known)
            for condition, known in zip(conditions, facts, strict=True)
        ]
        try:
            sample = take_sample(frame, written, {}, size=1)  # without a look at how large the micro-batch is
        except Exception as error:  # noqa: BLE001 - without a sample, the order stays
            refuse_interruption(error)
            return None
        if not len(sample.codes):
            return None
        return TriedRows(
            {condition: sample.codes[:, place] == TRUE for place, condition in enumerate(conditions)},
            dict(zip(conditions, sample.seconds.tolist(), strict=True)),
        )


def in_order(program: Program, stream: str) -> list[SharedCondition]:
    """The conditions on a stream in the order in which they are tested."""
    guards = guards_of(program, stream)
    places = {column: place for place, column in enumerate(program.orders.get(stream, ()))}
    conditions = [condition for condition in program.conditions if condition.stream == stream]
    return sorted(
        conditions,
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


def conjunctions_of_costly(program: Program, stream: str) -> list[tuple[SharedCondition, ...]]:
    """The conjunctions on a stream with at least two costly conditions; none if there are too many conditions."""
    conditions = {condition.column: condition for condition in program.conditions if condition.stream == stream}
    if sum(not condition.is_cheap for condition in conditions.values()) > MOST_CONDITIONS:
        return []
    found = []
    for conjunction in program.conjunctions_of(stream):
        members = tuple(conditions[column] for column in conjunction.columns if column in conditions)
        if sum(not condition.is_cheap for condition in members) > 1:
            found.append(members)
    return found


def _columns(program: Program, stream: str) -> frozenset[str]:
    return frozenset(condition.column for condition in program.conditions if condition.stream == stream)
