"""Lowers a plan to Spark: from stages of predicates to a DataFrame, or to one Column.

Spark's optimizer moves conditions ahead of Python functions and joins wherever it can, which is usually right. A
condition that has to run behind a function or a join is made to depend on its outcome, so that it stays there.
Wherever possible a stage is one deterministic filter: then filters that come later still reach the data's source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.spark.filters.branching import branched
from thalweg.spark.filters.choose import runs_strictly
from thalweg.spark.filters.conditions import SparkCondition
from thalweg.spark.filters.forms import ConditionForm, LookupJoin, Place, PythonForm
from thalweg.spark.filters.plan import FilterPlan, Stage
from thalweg.spark.filters.remade_filters import refiltered, refiltered_in_python
from thalweg.spark.filters.steps import KeyJoin, Step, apply_steps
from thalweg.spark.filters.worker.filter_pass import pass_of
from thalweg.spark.filters.worker.spec import Answer, PassSpec, PolicySpec
from thalweg.spark.frames import answers_about, is_streaming
from thalweg.spark.identifiers import quoted
from thalweg.spark.jvm import active_jvm, keep_names_of_udfs
from thalweg.spark.operators import (
    all_of,
    always,
    both,
    cast,
    column_named,
    equal,
    expression,
    is_not_null,
    is_null,
    literal,
    never,
    when,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from thalweg.spark.filters.predicates.lookup import LookupPredicate
    from thalweg.spark.filters.query import FilterQuery
    from thalweg.spark.filters.stored_table import TableVersion
    from thalweg.spark.filters.worker.judges import Judge

TAG = "thalweg:"  # before the key of a run
PREFIX = "__thalweg_"  # of columns that exist only within a plan
NO_REASON = "~"  # behind all reasons, which begin with the predicate's number
NUMBER_LETTERS = 4  # of a reason: the number and a space


def lower(query: FilterQuery, plan: FilterPlan, frame: DataFrame) -> DataFrame:
    """The rows of a DataFrame that all predicates keep."""

    def lowered() -> DataFrame:
        return _Lowering(query, plan, frame).run()

    def conditions() -> list[Column] | None:
        return _Lowering(query, plan, frame).first_conditions()

    places, analysis = [stage.place for stage in plan.stages], query.analysis
    if plan.branchings:
        return lowered()
    same = (plan.order, tuple(sorted(plan.member_orders.items())), query.on_error)
    if analysis is not None and places == [Place.SPARK]:
        return refiltered(analysis, frame, same, f"{TAG}{query.key}", conditions, lowered)
    if places == [Place.PYTHON] or (analysis is not None and places == [Place.SPARK, Place.PYTHON]):
        function = PassFunction(query, plan, plan.stages[-1], Answer.KEEP)
        if function.takes_columns_alone and hasattr(frame, "_jdf") and not is_streaming(frame):
            answers = answers_about(frame) if analysis is None else analysis.answers
            return refiltered_in_python(answers, frame, (*same, function.columns), function, conditions, lowered)
    return lowered()


def lower_to_column(query: FilterQuery, plan: FilterPlan) -> Column:
    """The conjunction of all predicates as one condition, three-valued as SQL's, if all run in Python."""
    (stage,) = plan.stages
    return python_column(query, plan, stage, Answer.TRUTH)


class _Lowering:
    """A DataFrame on its way through the stages of a plan."""

    def __init__(self, query: FilterQuery, plan: FilterPlan, frame: DataFrame) -> None:
        self._query = query
        self._plan = plan
        self._frame = frame
        self._is_tagged = False
        self._steps: list[Step] = []  # filters and joins that Spark is to analyse at once
        self._waiting: list[Column] = []  # conditions that one filter is to have
        self._guard: Column | None = None  # whether earlier stages kept the row, where Spark would not wait for them
        self._reasons: list[str] = []  # columns that say why a Python predicate failed
        self._scratch: list[str] = []  # columns to drop at the end
        self._tables: dict[str, TableVersion] = {}  # as they were when they were first needed, by token
        self._strict_last = runs_strictly(query, plan.order) and not self._branched()
        self._unchecked = self._checks()

    def run(self) -> DataFrame:
        stages = list(self._plan.stages)
        known = self._known_by_source()
        if known:
            self._filter(all_of(known))
        while stages:
            stage, *rest = stages
            if stage.place is Place.SPARK:
                self._filter(self._conditions(stage))
                if is_streaming(self._frame):
                    # The current time is random there, as far as Spark knows, and from a filter with a function such
                    # conditions do not reach the source.
                    self._end_filter()
            elif stage.place is Place.JOIN:
                self._join(stage, rest)
            elif not rest or [later.place for later in rest] == [Place.SPARK]:
                self._filter_in_python(stage, rest)
                rest = []
            else:
                self._note_in_python(stage)
            stages = rest
        self._check()
        frame = self._filtered()
        return self._bring(frame.drop(*self._scratch) if self._scratch else frame)

    def first_conditions(self) -> list[Column] | None:
        """The conditions of a first stage in Spark; none if Python comes first. None if a filter of them is not all."""
        first = self._plan.stages[0]
        is_more = self._query.brings or self._unchecked or self._known_by_source()
        if is_more or self._query.policy.options["pinned"]:
            return None
        return [self._kept_by(number) for number in first.predicates] if first.place is Place.SPARK else []

    # ------------------------------------------------------------------------------------------- stages

    def _filter(self, condition: Column) -> None:
        """Keep the rows for which a condition is true."""
        self._waiting.append(condition if self._guard is None else when(self._guard, condition, never()))
        if self._query.policy.options["pinned"]:  # Spark takes what is deterministic in a filter ahead of what is not
            self._end_filter()

    def _end_filter(self) -> None:
        """Make one filter of the conditions so far; the first filter also says which run it belongs to."""
        if self._waiting:
            tags = [] if self._is_tagged else [tag(self._query.key)]
            self._steps.append(all_of([*self._waiting, *tags]))
            self._is_tagged, self._waiting = True, []

    def _filtered(self) -> DataFrame:
        """The DataFrame after the filters and joins so far."""
        self._end_filter()
        self._frame, self._steps = apply_steps(self._frame, self._steps), []
        return self._frame

    def _branched(self) -> set[int]:
        """The conditions that are in a branch for each class of rows."""
        return {
            number
            for branching in self._plan.branchings
            if branching.branches is not None and self._query.routes is not None
            for number in branching.conditions
        }

    def _known_by_source(self) -> list[Column]:
        """Tests for NULL that Spark would infer for the data's source from conditions that are not in its reach.

        These conditions stand behind a Python function or a join, or in a branch.
        """
        query, first = self._query, self._plan.stages[0]
        within_reach = set(first.predicates if first.place is Place.SPARK else ()) - self._branched()
        names = [
            name
            for number, form in enumerate(query.forms)
            if isinstance(form, ConditionForm) and number not in within_reach and not query.required[number]
            if form.condition.facts.deterministic
            for name in form.condition.facts.not_null
        ]
        return [is_not_null(column_named(quoted(name))) for name in dict.fromkeys(names)]

    def _conditions(self, stage: Stage) -> Column:
        """The conditions of a stage; conditions that have branches come last."""
        routes = self._query.routes
        for branching in self._plan.branchings:
            members = branching.conditions
            if branching.branches is not None and routes is not None and set(members) <= set(stage.predicates):
                first = [self._kept_by(number) for number in stage.predicates if number not in members]
                overall = [members.index(number) for number in stage.predicates if number in members]
                conditions = [self._kept_by(number) for number in members]
                return all_of([*first, branched(branching.branches, routes.types, conditions, overall)])
        return all_of([self._kept_by(number) for number in stage.predicates])

    def _join(self, stage: Stage, rest: Sequence[Stage]) -> None:
        """Join with the keys of a stored table, such that later stages can depend on whether a key was found."""
        (number,) = stage.predicates
        form = self._query.forms[number]
        assert isinstance(form, LookupJoin)  # noqa: S101 - by the stage's place
        lookup = form.lookup
        if not rest and not self._unchecked and number in self._query.brings:
            return  # to bring its columns is to look it up
        names = [f"{PREFIX}{number}_key{place}" for place in range(len(lookup.on))]
        # A column of its own tells whether a key was found: a condition on a key Spark would infer for both sides, and
        # evaluate ahead of the join.
        found_column = f"{PREFIX}{number}_found"
        keys = self._table_of(lookup).keys_frame(self._frame.sparkSession, found_column, names)
        known = all_of([is_not_null(column_named(name)) for name in lookup.on])
        nothing_waits = not rest and not self._unchecked and not self._reasons
        if nothing_waits or (rest and rest[0].place is Place.JOIN):  # the last join speaks for the joins before it
            if lookup.negate:
                self._filter(known)
            self._end_filter()
            self._steps.append(KeyJoin(keys, _same(lookup, names), "left_anti" if lookup.negate else "left_semi"))
            return
        self._scratch += [*names, found_column]
        found = column_named(found_column)
        if lookup.negate:
            self._frame = self._filtered().join(keys, _same(lookup, names), "left")
            self._guard = None
            self._filter(both(known, is_null(found)))
            self._guard = both(known, is_null(found))
        else:
            self._frame = self._filtered().join(keys, _same(lookup, names), "inner")
            self._guard = found

    def _filter_in_python(self, stage: Stage, rest: Sequence[Stage]) -> None:
        """Keep the rows that Python predicates, and conditions behind them, keep: all in one deterministic filter."""
        behind = [self._conditions(later) for later in rest]
        self._is_tagged = True  # by the function's name
        if rest and self._query.on_error == "raise":  # a condition behind it may still reject a row that fails
            reason = python_column(self._query, self._plan, stage, Answer.KEEP_OR_REASON, self._guard)
            last = self._raised([reason, *map(column_named, self._reasons)])
            kept = when(is_null(reason), never(), all_of([*behind, last]))
        else:
            kept = python_column(self._query, self._plan, stage, Answer.KEEP, self._guard)
            behind += [self._raised(list(map(column_named, self._reasons)))] if self._unchecked or self._reasons else []
            kept = when(kept, all_of(behind), never()) if behind else kept
        self._filter(kept)
        self._unchecked, self._reasons = [], []

    def _note_in_python(self, stage: Stage) -> None:
        """Keep the rows of Python predicates before joins or other Python predicates: failures wait in a column."""
        from pyspark.sql import functions as f

        if self._query.on_error != "raise":
            self._is_tagged = True
            self._filter(python_column(self._query, self._plan, stage, Answer.KEEP, self._guard))
            return
        name = f"{PREFIX}{stage.predicates[0]}_reason"
        reason = python_column(self._query, self._plan, stage, Answer.KEEP_OR_REASON, self._guard, once=True)
        if self._guard is not None:
            reason = f.when(self._guard, reason)
        self._frame = self._filtered().withColumn(name, reason)
        self._is_tagged = True
        self._guard = None
        self._filter(is_not_null(column_named(name)))
        self._guard = is_not_null(column_named(name))
        self._reasons.append(name)
        self._scratch.append(name)

    def _check(self) -> None:
        """Raise the errors that have waited, for rows that no predicate has rejected."""
        if self._unchecked or self._reasons:
            self._filter(self._raised(list(map(column_named, self._reasons))))
        elif not self._is_tagged and not self._waiting:
            self._steps.append(tag(self._query.key))

    def _bring(self, frame: DataFrame) -> DataFrame:
        """The kept rows with the columns of stored tables."""
        for number, predicate in self._query.brings.items():
            lookup: Any = predicate
            names = [f"{PREFIX}{number}_key{place}" for place in range(len(lookup.on))]
            brought = self._table_of(lookup).brought_frame(frame.sparkSession, names, list(lookup.brings.values()))
            frame = frame.join(brought, _same(lookup, names), "inner").drop(*names)
        return frame

    def _table_of(self, lookup: LookupPredicate) -> TableVersion:
        """The stored table: the same content for keys and columns, though a thread may refresh it meanwhile."""
        return self._tables.setdefault(lookup.table.token, lookup.table.current)

    # ------------------------------------------------------------------------------------------- errors

    def _condition(self, number: int) -> SparkCondition:
        form = self._query.forms[number]
        assert isinstance(form, ConditionForm)  # noqa: S101 - by the stage's place
        order = self._plan.member_orders.get(number)
        return form.condition if order is None else form.condition.with_members(order)

    def _kept_by(self, number: int) -> Column:
        """Whether a condition keeps a row, in the form that its place allows."""
        condition = self._condition(number)
        if self._query.on_error == "drop":
            return condition.true
        return condition.strict if self._strict_last and number == self._plan.order[-1] else condition.keeps

    def _checks(self) -> list[Column]:
        """Conditions that may raise, as written, for the rows that no condition has rejected and on which they do.

        Each depends on all other conditions, so that Spark cannot evaluate it ahead of them.
        """
        if self._query.on_error != "raise" or self._strict_last:
            return []
        numbers = [number for number, form in enumerate(self._query.forms) if form.place is Place.SPARK]
        checks = []
        for number in numbers:
            condition = self._condition(number)
            if condition.raised is not None:
                others = [self._condition(other).keeps for other in numbers if other != number]
                checks.append(when(condition.raised, all_of([*others, condition.strict]), always()))
        return checks

    def _raised(self, reasons: Sequence[Column]) -> Column:
        """Raises the failure of a row: of the first Python predicate as written, if any failed, else of a condition."""
        from pyspark.sql import functions as f

        checked = all_of(self._unchecked) if self._unchecked else always()
        if not reasons:
            return checked
        first = f.least(
            *(when(equal(reason, ""), literal(NO_REASON), reason) for reason in reasons), literal(NO_REASON)
        )
        failure = cast(f.raise_error(f.substring(first, NUMBER_LETTERS, 1 << 20)), "boolean")
        return when(equal(first, NO_REASON), checked, failure)


def tag(key: str) -> Column:
    """A condition that is always true, by which a plan tells which run it belongs to; the optimizer removes it.

    Where Python comes first, the function's name tells.
    """
    return expression(f"'{TAG}{key}' is not null")


def python_column(
    query: FilterQuery,
    plan: FilterPlan,
    stage: Stage,
    answer: Answer,
    guard: Column | None = None,
    *,
    once: bool = False,
) -> Column:
    """The predicates of a Python stage as one function of the columns that they need.

    `guard` is a condition on the outcome of a join. The function gets it and does nothing with it: but for that, Spark
    would evaluate the function ahead of the join. `once` is for a column that is used in several places: Spark would
    call a deterministic function again in each.
    """
    function = PassFunction(query, plan, stage, answer)
    arguments = [*function.arguments, *([] if guard is None else [guard])]
    return (function.udf().asNondeterministic() if once else function.udf())(*arguments)  # type: ignore[no-any-return]


class PassFunction:
    """The function of a Python stage, and its arguments: columns, outcomes of conditions, and columns of classes."""

    def __init__(self, query: FilterQuery, plan: FilterPlan, stage: Stage, answer: Answer) -> None:
        self._query = query
        self._stage = stage
        self._answer = answer
        self._numbers = sorted(stage.predicates)
        forms = [query.forms[number] for number in self._numbers]
        self._forms = [form for form in forms if isinstance(form, PythonForm)]
        names = [column for form in self._forms for column in form.columns]
        self.columns = tuple(dict.fromkeys([*names, *query.quarantine_columns]))
        self._codes = [code for form in self._forms for code in form.codes]
        self._attributes = plan.attributes if len(self._forms) > 1 else ()
        self._brought = [name for name in self._attributes if name not in self.columns]

    @property
    def takes_columns_alone(self) -> bool:
        """Whether all arguments are columns of the DataFrame, which their names tell."""
        return not self._codes and not self._brought and self._query.computed.keys().isdisjoint(self.columns)

    @property
    def return_type(self) -> DataType:
        """The type of the function's results in Spark."""
        return self._answer.spark_type

    @property
    def arguments(self) -> list[Column]:
        """The arguments of the function."""
        query = self._query
        return [
            *(query.column(name) for name in self.columns),
            *(code.code for code in self._codes),
            *(query.routes.brought(name) for name in self._brought if query.routes is not None),
        ]

    def udf(self) -> Any:  # noqa: ANN401 - a UDF
        """The function as a UDF."""
        return _udf(self.runner())

    def runner(self) -> PassRunner:
        """The function with all that a worker has to know."""
        query, names = self._query, list(self.columns)
        places = {id(code): len(names) + place for place, code in enumerate(self._codes)}
        makers = [
            (form.make, [names.index(column) for column in form.columns], [places[id(code)] for code in form.codes])
            for form in self._forms
        ]
        everything = [*names, *("" for _ in self._codes), *self._brought]
        spec = PassSpec(
            key=f"{query.key}.{'-'.join(map(str, self._numbers))}",
            signature=query.signature_of(self._numbers),
            judges=JudgeMaker(makers),
            columns=self.columns,
            policy=_policy_of_stage(query, self._stage),
            folder=query.folder.url,
            names=tuple(query.names[number] for number in self._numbers),
            numbers=tuple(self._numbers),
            on_error=query.on_error,
            quarantine=query.quarantine,
            answer=self._answer,
            attributes={name: everything.index(name) for name in self._attributes},
        )
        return PassRunner(spec, len(query.predicates))


@dataclass(frozen=True)
class PassRunner:
    """The function that Spark calls with Arrow batches. It is pickled by reference, which is faster than a closure."""

    spec: PassSpec
    predicates: int  # of the whole query

    @property
    def name(self) -> str:
        """The name that plans, and Spark's own page, show of the function."""
        return f"thalweg where: {len(self.spec.names)} of {self.predicates} predicates, thalweg_{self.spec.key}"

    @property
    def return_type(self) -> DataType:
        """The type of the function's results in Spark."""
        return self.spec.answer.spark_type

    def __call__(self, batches: Iterator[Any]) -> Iterator[pa.Array]:
        """Judge the rows of each batch."""
        return pass_of(self.spec).run(batch if isinstance(batch, tuple) else (batch,) for batch in batches)


def _policy_of_stage(query: FilterQuery, stage: Stage) -> PolicySpec:
    """The policy for the predicates of one stage, which are numbered anew there."""
    numbers = sorted(stage.predicates)
    place = {number: at for at, number in enumerate(numbers)}
    options: dict[str, Any] = dict(query.policy.options)
    options["after"] = {
        place[number]: [place[other] for other in others if other in place]
        for number, others in options["after"].items()
        if number in place
    }
    options["pinned"] = [place[number] for number in options["pinned"] if number in place]
    options["order"] = [place[number] for number in stage.predicates]
    if options.get("costs") is not None:
        options["costs"] = [options["costs"][number] for number in numbers]
    return replace(query.policy, filters=len(numbers), options=options, detector=query.detector)


class JudgeMaker:
    """Makes the judges of a stage, in the worker."""

    def __init__(self, makers: Sequence[tuple[Any, Sequence[int], Sequence[int]]]) -> None:
        self._makers = makers

    def __call__(self) -> list[Judge]:  # noqa: D102 - the class says it
        return [make(columns, codes) for make, columns, codes in self._makers]


def _udf(runner: PassRunner) -> Any:  # noqa: ANN401 - a UDF
    """A UDF of Spark that calls the runner; Spark reads from annotations how to call it."""
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.utils import is_remote

    if not is_remote():
        keep_names_of_udfs(active_jvm())

    def run(batches: Iterator[Any]) -> Iterator[pa.Array]:
        return runner(batches)

    run.__name__ = runner.name
    run.__annotations__ = {"batches": Iterator[tuple[pa.Array, ...]], "return": Iterator[pa.Array]}
    return arrow_udf(runner.return_type)(run)  # type: ignore[call-overload]


def _same(lookup: LookupPredicate, names: Sequence[str]) -> Column:
    """Whether a row has a key, whose parts have these names."""
    return all_of([equal(column_named(on), column_named(name)) for on, name in zip(lookup.on, names, strict=True)])
