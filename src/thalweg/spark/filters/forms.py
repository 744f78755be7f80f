"""How a predicate can run: as a condition in Spark, as a join with a stored table, or as a judge in a Python worker.

A form says itself where it runs, which columns and conditions it needs, and which rows of a sample it drops.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.ordering.cost import order_cost
from thalweg.ordering.stopwatch import SINGLES, Stopwatch
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.spark.analysis.trees import prunes_by
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.worker.judges import TRUE, CodeJudge, Judge, PredicateError
from thalweg.spark.filters.worker.view import View

if TYPE_CHECKING:
    from thalweg.spark.filters.predicates.lookup import LookupPredicate

LOOKUP_SECONDS = 50e-9  # that a look into a broadcast table takes, roughly
UNTRIED_SECONDS = 1e-3  # that a Python predicate is thought to take a row if it could not be tried
TRIAL_SECONDS = 0.05  # that the trial of a Python predicate may take in all
FEWEST_TRIALS = 64  # rows below which nothing is concluded
FIRST_SLICE = 16


class Place(StrEnum):
    """Where a predicate runs."""

    SPARK = "Spark"
    JOIN = "join"
    PYTHON = "Python"


@dataclass(frozen=True)
class SampledRows:
    """Some rows of the input, with the outcomes of Spark's conditions on them."""

    columns: Mapping[str, pa.Array]
    codes: Integers  # a row each, a column for each condition: FALSE, TRUE, UNKNOWN, or -1 where it raised
    seconds: Floats  # a row, for each condition
    where_from: str  # which rows were sampled

    def __len__(self) -> int:
        return len(self.codes)

    def of_conditions(self, own: slice) -> SampledRows:
        """The same rows, with some of the conditions."""
        return SampledRows(self.columns, self.codes[:, own], self.seconds[own], self.where_from)


class Trial(NamedTuple):
    """The outcome of a predicate on the first of the sampled rows: which it drops, and seconds a row."""

    dropped: Booleans
    seconds: float


@dataclass(frozen=True)
class ConditionForm:
    """A condition that Spark evaluates."""

    condition: SparkCondition
    place: ClassVar[Literal[Place.SPARK]] = Place.SPARK
    columns: tuple[str, ...] = ()  # none to bring along

    @property
    def is_cheap(self) -> bool:
        """Whether a row takes nanoseconds."""
        return self.condition.facts.cheap

    @property
    def reaches_source(self) -> bool:
        """Whether Spark may hand the condition to a data source, which then skips rows or files."""
        return self.condition.facts.source_test and self.condition.facts.deterministic

    def prunes_by(self, partitions: Collection[int]) -> bool:
        """Whether Spark can prune partitions by the condition, given Catalyst's numbers of partition columns."""
        trees = [part.facts.tree for part in self.condition.parts]
        known = [tree for tree in trees if tree is not None]
        is_known = self.condition.facts.deterministic and len(known) == len(trees)
        return is_known and all(prunes_by(tree, partitions) for tree in known)

    @property
    def holds_place(self) -> bool:
        """Whether the condition has to stay where it is written."""
        return not self.condition.facts.deterministic and not self.calls_udf

    @property
    def calls_udf(self) -> bool:
        """Whether Spark calls a Python UDF in it, for all rows that come there, and whose errors nobody catches."""
        return self.condition.facts.calls_udf

    @property
    def is_harmless(self) -> bool:
        """Whether it may come ahead of a condition in which Spark calls a UDF: it raises nothing, and is no UDF."""
        return self.condition.facts.safe and self.condition.facts.deterministic

    @property
    def may_raise(self) -> bool:
        """Whether a row may raise."""
        return self.condition.may_raise

    @property
    def tests_null(self) -> bool:
        """Whether Spark may evaluate it behind the conditions that come after it."""
        return self.condition.facts.tests_null

    @property
    def sampled_conditions(self) -> tuple[SparkCondition, ...]:
        """The conditions that a sample has to evaluate."""
        return self.condition.parts

    def try_on(self, rows: SampledRows, member_order: Sequence[int] | None = None) -> Trial:
        """Read Spark's outcomes of the sampled rows; members of a disjunction in this order."""
        dropped = ~((rows.codes == TRUE) | (rows.codes == -1)).any(axis=1)
        order = range(len(self.condition.parts)) if member_order is None else member_order
        accepted = self.accepted(rows) if len(rows) else [0]
        return Trial(dropped, order_cost(accepted, order, rows.seconds))

    def accepted(self, rows: SampledRows) -> Integers:
        """For each row the mask of the members of a disjunction that are true: they decide the row."""
        masks: Integers = ((rows.codes == TRUE).astype(np.int64) << np.arange(rows.codes.shape[1])).sum(axis=1)
        return masks


@dataclass(frozen=True)
class LookupJoin:
    """A semi-join or anti-join of the input with a stored table."""

    lookup: LookupPredicate
    place: ClassVar[Literal[Place.JOIN]] = Place.JOIN
    is_cheap = False
    reaches_source = False
    holds_place = False
    calls_udf = False
    is_harmless = False
    may_raise = False
    tests_null = False
    sampled_conditions: tuple[SparkCondition, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a sample has to bring along."""
        return self.lookup.on

    def try_on(self, rows: SampledRows, member_order: Sequence[int] | None = None) -> Trial:
        """Look the sampled rows up, on the driver."""
        found = self.lookup.table.current.keys.contains([rows.columns[column] for column in self.lookup.on])
        kept = pc.invert(found) if self.lookup.negate else found
        dropped = ~kept.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - Arrow takes it by position
        return Trial(dropped, LOOKUP_SECONDS)


@dataclass(frozen=True)
class PythonForm:
    """A judge for a worker; it is made there, once it is known at which places its columns come."""

    columns: tuple[str, ...]
    codes: tuple[SparkCondition, ...]  # conditions in Spark whose outcomes it needs besides
    make: Callable[[Sequence[int], Sequence[int]], Judge]
    waits: bool = False  # for a service, which is not asked before the job runs
    place: ClassVar[Literal[Place.PYTHON]] = Place.PYTHON
    is_cheap = False
    reaches_source = False
    holds_place = False
    calls_udf = False
    is_harmless = False
    may_raise = False
    tests_null = False

    @property
    def sampled_conditions(self) -> tuple[SparkCondition, ...]:
        """The conditions that a sample has to evaluate."""
        return self.codes

    def try_on(self, rows: SampledRows, member_order: Sequence[int] | None = None) -> Trial:
        """Judge the first rows here, on the driver, as many as there is time for."""
        count, width = len(rows), len(self.columns)
        if self.waits:
            return Trial(np.zeros(count, np.bool_), UNTRIED_SECONDS)
        judge = self.make(range(width), range(width, width + len(self.codes)))
        values = [rows.columns[column] for column in self.columns]
        values += [pa.array(codes, mask=codes < 0) for codes in rows.codes.T]
        watch, parts, done, size = Stopwatch(), list[Booleans](), 0, 1
        start = time.perf_counter()
        while done < count and time.perf_counter() - start < TRIAL_SECONDS:
            now = min(size, count - done)
            view = View([column.slice(done, now) for column in values])
            before = time.perf_counter()
            try:
                verdict = judge.judge(view)
            except PredicateError:
                break  # the job itself will say so
            watch.note(now, time.perf_counter() - before)
            parts.append(~verdict.true if verdict.failed is None else ~(verdict.true | verdict.failed))
            done += now
            size = 1 if len(parts) < SINGLES else max(FIRST_SLICE, 2 * size)
        dropped = np.concatenate(parts) if parts else np.zeros(0, np.bool_)
        if dropped.size < min(FEWEST_TRIALS, count):  # too slow to tell: it counts as if it kept all rows
            dropped = np.zeros(count, np.bool_)
        # The conditions that Spark computes for it cost time in every row, whether the judge asks for them or not.
        seconds = watch.per_row + float(rows.seconds.sum())
        return Trial(dropped, UNTRIED_SECONDS if math.isnan(seconds) else seconds)


Form = ConditionForm | LookupJoin | PythonForm


def code_form(name: str, condition: SparkCondition) -> PythonForm:
    """A condition in Spark whose outcome a worker is told."""

    def make(columns: Sequence[int], codes: Sequence[int]) -> Judge:  # noqa: ARG001 - as all makers
        return CodeJudge(name, codes[0])

    return PythonForm((), (condition,), make)
