"""The query: the predicates of a `tw.where` or `tw.stream` on a DataFrame, checked, as one frozen value.

Input is checked here, before any Spark job starts, and every error says what to write instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal, get_args

from thalweg.drift import DETECTORS, Detector, NoDetector
from thalweg.ordering import POLICIES, Policy
from thalweg.ordering.precedence import MAX_FILTERS, required_before
from thalweg.ordering.types import Integers
from thalweg.registry import find, hint
from thalweg.sealed import short_digest
from thalweg.spark import runs
from thalweg.spark.filters.forms import Form, Place, code_form
from thalweg.spark.filters.predicates.base import Analysis, Predicate, as_predicate, column_names, is_udf
from thalweg.spark.filters.predicates.compound import conjuncts
from thalweg.spark.filters.predicates.function import parameter_names
from thalweg.spark.filters.routes import AUTO, RouteBy, Routes, check_route_by, routes_of
from thalweg.spark.filters.split.split import Split, split
from thalweg.spark.filters.worker.quarantine import QuarantineSpec
from thalweg.spark.filters.worker.spec import PolicySpec
from thalweg.spark.folder import StateFolder, folder_for
from thalweg.spark.frames import schema_of
from thalweg.spark.identifiers import quoted
from thalweg.spark.operators import column_named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from thalweg.spark.analysis.catalyst import CatalystAnalysis

OnError = Literal["raise", "drop", "quarantine"]

PRIOR = 1.0  # tuple that each predicate is thought to drop besides the profile's, see decision 0029


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """How predicates are to run, as `tw.where`, `tw.stream` and `tw.condition` take it."""

    policy: str | Policy | type[Policy] = "a-greedy"
    drift: str | Detector = "glr"
    route_by: RouteBy = None
    on_error: OnError = "raise"
    quarantine: str | os.PathLike[str] | None = None
    quarantine_columns: str | Sequence[str] = ()
    state: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(OnError):
            raise ValueError(f"on_error is one of {', '.join(get_args(OnError))}, not {self.on_error!r}")
        if (self.on_error == "quarantine") != (self.quarantine is not None):
            raise ValueError("on_error='quarantine' and quarantine='folder or table' go together")
        if self.state is not None and not isinstance(self.state, str | os.PathLike):
            raise TypeError(f"state is the path or URL of a folder, not {self.state!r}")
        check_route_by(self.route_by)


@dataclass(frozen=True, kw_only=True, eq=False)
class FilterQuery:
    """The predicates and options of a user, and how each predicate can run on the DataFrame."""

    key: str
    predicates: tuple[Predicate, ...]
    names: tuple[str, ...]  # of the predicates, all different
    forms: tuple[Form, ...]
    policy: PolicySpec  # over all predicates
    detector: Detector | None
    on_error: OnError
    quarantine: QuarantineSpec | None
    quarantine_columns: tuple[str, ...]
    folder: StateFolder
    routes: Routes | None  # the columns that may tell classes of rows apart
    notes: tuple[str, ...] = ()  # fallbacks: nothing is silent
    analysis: CatalystAnalysis | None = None  # of all conditions, on a batch of a classic session

    @cached_property
    def required(self) -> Integers:
        """For each predicate, the mask of the predicates that must run before it."""
        return required_before(len(self.forms), self.policy.options["after"], self.policy.options["pinned"])

    @cached_property
    def brings(self) -> dict[int, Predicate]:
        """The lookups that bring columns to the kept rows."""
        return {number: predicate for number, predicate in enumerate(self.predicates) if predicate.brings}

    def signature_of(self, numbers: Sequence[int]) -> str:
        """A text that is the same for the same predicates in a later run."""
        return short_digest([self.predicates[number].signature for number in numbers])

    @cached_property
    def computed(self) -> dict[str, Column]:
        """Expressions that Spark computes for Python predicates, by name."""
        return computed_by(self.predicates)

    def column(self, name: str) -> Column:
        """A column that Python predicates take, as Spark finds it."""
        return self.computed[name] if name in self.computed else column_named(name)

    @property
    def runs_in_python(self) -> bool:
        """Whether a predicate runs in Python workers."""
        return any(form.place is Place.PYTHON for form in self.forms)

    @property
    def has_choice(self) -> bool:
        """Whether there is an order to choose: of several predicates, or of the members of one group in Python."""
        grouped = any(len(part.members) > 1 for predicate in self.predicates for part in predicate.parts)
        return len(self.predicates) > 1 or (grouped and self.runs_in_python)


def ask(frame: DataFrame | None, written: Sequence[Any], options: FilterOptions, *, may_join: bool) -> FilterQuery:
    """Check the user's predicates, and find out how each can run; some checks need a DataFrame."""
    found = _split(frame, _predicates(frame, written))
    predicates = list(found.predicates)
    names = _distinct_names(predicates)
    quarantine_columns = (
        column_names(options.quarantine_columns, "quarantine_columns") if options.quarantine_columns else ()
    )
    if frame is not None:
        _check_columns(frame, predicates, quarantine_columns)
    _check_brought(frame, predicates)
    for predicate in predicates:
        for part in predicate.parts:
            part.check_can_be_sent()
    key = runs.new_key()
    folder = folder_for(key, options.state)
    kind, policy_options = _policy_of(options.policy)
    # A join has one order for all rows. Where the user names columns that tell classes apart, lookups run in Python.
    may_join = may_join and (options.route_by is None or options.route_by == AUTO)
    analysis = Analysis(frame, predicates, kind, folder.url, may_join=may_join, conditions=found.conditions)
    forms = [predicate.form(analysis) for predicate in predicates]
    policy_options |= _constraints(predicates, names, forms)
    if options.on_error == "quarantine":
        predicates, names, forms = _with_errors_in_python(predicates, names, forms)
        if "costs" in policy_options:
            policy_options["costs"] += [predicate.cost for predicate in predicates[len(policy_options["costs"]) :]]
    computed = computed_by(predicates)
    in_python = [column for form in forms if form.place is Place.PYTHON for column in form.columns]
    plain = [column for column in in_python if column not in computed]
    query = FilterQuery(
        key=key,
        predicates=tuple(predicates),
        names=tuple(names),
        forms=tuple(forms),
        policy=PolicySpec(kind, len(forms), policy_options),
        detector=_detector_of(options.drift),
        on_error=options.on_error,
        quarantine=_quarantine(
            frame, options, key, predicates, {name: computed.get(name) for name in [*in_python, *quarantine_columns]}
        ),
        quarantine_columns=quarantine_columns,
        folder=folder,
        routes=None if frame is None else routes_of(frame, options.route_by, plain, kind, len(forms)),
        notes=(*found.notes, *_notes(options, forms)),
        analysis=found.analysis,
    )
    if options.on_error == "quarantine":
        _check_python_is_last(query)
    return query


def _predicates(frame: DataFrame | None, written: Sequence[Any]) -> list[Predicate]:
    if not written:
        raise ValueError("tw.where needs at least one predicate: tw.where(df, 'amount > 100', ...)")
    if len(written) > MAX_FILTERS:
        raise ValueError(
            f"tw.where orders up to {MAX_FILTERS} predicates, not {len(written)}: put some of them together, as in "
            f"tw.expr('a > 1 AND b > 1'), or write a second tw.where"
        )
    for each in written:
        if frame is not None and is_udf(each):
            _check_parameters(frame, each)
    return [as_predicate(each) for each in written]


def _check_parameters(frame: DataFrame, udf: Any) -> None:  # noqa: ANN401 - a UDF
    """Refuse a UDF that stands without arguments if there are no columns that its parameters name."""
    name = getattr(udf, "__name__", "udf")
    columns = {column.name.lower() for column in schema_of(frame).fields}
    for parameter in parameter_names(udf.func, f"{name}('column')"):
        if parameter.lower() not in columns:
            raise ValueError(
                f"the DataFrame has no column {parameter!r}, a parameter of the UDF {name}: write {name}('column')"
            )


def computed_by(predicates: Sequence[Predicate]) -> dict[str, Column]:
    """The expressions that Spark computes for predicates, by name."""
    return {
        name: column for predicate in predicates for part in predicate.parts for name, column in part.computed.items()
    }


def _split(frame: DataFrame | None, predicates: list[Predicate]) -> Split:
    """The predicates after their conditions were split."""
    if frame is None:
        return Split(tuple(conjunct for predicate in predicates for conjunct in conjuncts(predicate)))
    return split(frame, predicates)


def _distinct_names(predicates: Sequence[Predicate]) -> list[str]:
    """The predicates' names; a name that is taken gets a number behind it."""
    taken: Counter[str] = Counter()
    names = []
    for predicate in predicates:
        taken[predicate.name] += 1
        count = taken[predicate.name]
        names.append(predicate.name if count == 1 else f"{predicate.name} ({count})")
    return names


def _policy_of(choice: str | Policy | type[Policy]) -> tuple[type[Policy], dict[str, Any]]:
    """The class of a policy, and the options of a policy that was made already."""
    if isinstance(choice, Policy):
        profile, sampler = choice.profile, choice.sampler
        return type(choice), {
            "window": profile.window,
            "max_age": profile.max_age,
            "p": sampler.full_probability,
            "adaptive_p": sampler.adaptive,
            "alpha": choice.state.alpha,
            "prior": choice.state.prior,
        }
    if isinstance(choice, type) and issubclass(choice, Policy):
        return choice, {"prior": PRIOR}
    if isinstance(choice, str):
        return find(choice, POLICIES, "policy"), {"prior": PRIOR}
    names = ", ".join(policy.name for policy in POLICIES)
    raise TypeError(f"policy is a name, a policy or its class, not {choice!r}; names: {names}")


def _detector_of(choice: str | Detector) -> Detector | None:
    """A detector by name or as it is; None for none."""
    found = find(choice, DETECTORS, "detector").for_few_tuples() if isinstance(choice, str) else choice
    if not isinstance(found, Detector):
        names = ", ".join(each.name for each in DETECTORS)
        raise TypeError(f"drift is a detector or its name, not {choice!r}; names: {names}")
    return None if isinstance(found, NoDetector) else found


def _constraints(predicates: Sequence[Predicate], names: Sequence[str], forms: Sequence[Form]) -> dict[str, Any]:
    """Which predicates hold their place or run after others, and their costs if these were given."""
    after: dict[int, list[int]] = {}
    for number, predicate in enumerate(predicates):
        for other in predicate.after:
            after.setdefault(number, []).append(_number_of(other, predicate, predicates, names))
    _refuse_cycle(after, names)
    for number, form in enumerate(forms):
        if form.calls_udf:  # it stays behind all before it, and only what raises nothing may come ahead of it
            after.setdefault(number, []).extend(range(number))
            for later in range(number + 1, len(forms)):
                if not forms[later].is_harmless:
                    after.setdefault(later, []).append(number)
    pinned = [
        number
        for number, (predicate, form) in enumerate(zip(predicates, forms, strict=True))
        if predicate.holds_place or form.holds_place
    ]
    costs = [predicate.cost for predicate in predicates]
    if None not in costs:
        return {"after": after, "pinned": pinned, "costs": costs}
    if any(cost is not None for cost in costs):
        without = ", ".join(repr(name) for name, cost in zip(names, costs, strict=True) if cost is None)
        raise ValueError(
            f"a cost is given for some predicates but not for {without}: give it for all, in the same unit, or for "
            f"none: then time is measured"
        )
    return {"after": after, "pinned": pinned}


def _number_of(wanted: Predicate | str, by: Predicate, predicates: Sequence[Predicate], names: Sequence[str]) -> int:
    """Which of the predicates is meant: the very object, or the first with the name."""
    if isinstance(wanted, Predicate) and wanted in predicates:
        return predicates.index(wanted)
    name = wanted.name if isinstance(wanted, Predicate) else wanted
    if name not in names:
        raise ValueError(
            f"predicate {by.name!r} is to run after {name!r}, which is not in the query{hint(name, names)}"
        )
    return names.index(name)


def _refuse_cycle(after: dict[int, list[int]], names: Sequence[str]) -> None:
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        path = " after ".join(repr(names[number]) for number in reversed(error.args[1]))
        raise ValueError(f"predicates wait for one another in a circle, {path}: take an after= off") from None


def _check_columns(frame: DataFrame, predicates: Sequence[Predicate], others: Sequence[str]) -> None:
    """Refuse predicates on columns that are not there or have no fitting type."""
    from pyspark.errors import AnalysisException

    wanted = [(part, column) for predicate in predicates for part in predicate.parts for column in part.columns]
    names = list(dict.fromkeys([column for _, column in wanted] + list(others)))
    if not names:
        return
    try:
        types = types_of(frame, names)
    except AnalysisException:
        for part, column in wanted:
            _check_column(frame, f"predicate {part.name!r}", column)
        for column in others:
            _check_column(frame, "quarantine_columns", column)
        raise
    for predicate in predicates:
        for part in predicate.parts:
            try:
                part.check_types([types[column] for column in part.columns])
            except (TypeError, ValueError) as error:
                text = str(error)
                said = text if text.startswith("predicate ") else f"predicate {part.name!r}: {text}"
                raise type(error)(said) from None


def _check_column(frame: DataFrame, needed_by: str, column: str) -> None:
    from pyspark.errors import AnalysisException

    try:
        _ = frame.select(column).schema
    except AnalysisException as error:
        alike = [name for name in frame.columns if name.lower() == column.lower()]
        if len(alike) > 1 or "AMBIGUOUS" in (error.getCondition() or ""):
            raise ValueError(
                f"{needed_by} needs a column {column!r}, and the DataFrame has several that Spark does not tell apart: "
                f"rename one of them, with df.toDF(...) or withColumnRenamed"
            ) from None
        there = ", ".join(frame.columns)
        spelt = "" if column not in frame.columns else f"; write {quoted(column)!r}"
        raise ValueError(
            f"{needed_by} needs a column {column!r}; the DataFrame has {there}{spelt or hint(column, frame.columns)}"
        ) from None


def types_of(frame: DataFrame, columns: Sequence[str]) -> dict[str, DataType]:
    """The types of columns, nested fields too. Spark refuses columns that are not there."""
    fields = schema_of(frame).fields
    plain = {each.name: each.dataType for each in fields}
    if len({name.lower() for name in plain}) == len(fields) and all(
        column in plain and column.isidentifier() for column in columns
    ):
        return plain  # no need to ask Spark
    return {column: each.dataType for column, each in zip(columns, frame.select(*columns).schema.fields, strict=True)}


def _check_brought(frame: DataFrame | None, predicates: Sequence[Predicate]) -> None:
    """Refuse lookups that would bring columns where none can go, or under names that are taken."""
    brings = any(part.brings for predicate in predicates for part in predicate.parts)
    names = [each.name for each in schema_of(frame).fields] if brings and frame is not None else []
    taken = {name.lower(): "the DataFrame" for name in names}
    for predicate in predicates:
        for part in predicate.parts:
            if part.brings and (frame is None or part is not predicate):
                raise ValueError(
                    f"predicate {part.name!r} brings columns: give it to tw.where itself, outside of tw.condition, "
                    f"tw.any_of and tw.not_"
                )
        for column, name in predicate.brings.items():
            if name.lower() in taken:
                raise ValueError(
                    f"predicate {predicate.name!r} brings a column {name!r}, which {taken[name.lower()]} has already: "
                    f"write columns={{{column!r}: 'another name'}}"
                )
            taken[name.lower()] = f"predicate {predicate.name!r}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _ErrorsOf(Predicate):
    """The errors of a condition, for the worker that writes the quarantine."""

    condition: Predicate = field(repr=False)


def _with_errors_in_python(
    predicates: Sequence[Predicate], names: Sequence[str], forms: Sequence[Form]
) -> tuple[list[Predicate], list[str], list[Form]]:
    """A worker writes the quarantine, so a worker has to be told where a condition has raised."""
    more_predicates, more_names, more_forms = list(predicates), list(names), list(forms)
    for predicate, name, form in zip(predicates, names, forms, strict=True):
        if form.place is Place.SPARK and form.may_raise:
            more_predicates.append(_ErrorsOf(name=predicate.name, cost=predicate.cost, condition=predicate))
            more_names.append(f"{name} (errors)")
            more_forms.append(code_form(name, form.condition))
    return more_predicates, more_names, more_forms


def _quarantine(
    frame: DataFrame | None,
    options: FilterOptions,
    key: str,
    predicates: Sequence[Predicate],
    columns: dict[str, Column | None],
) -> QuarantineSpec | None:
    """Where failed rows go, and the two columns that say why, with names that the user's columns do not have."""
    if frame is None or options.quarantine is None:
        return None
    taken = {name.lower() for name in columns}
    reasons = []
    for name in ("predicate", "reason"):
        while name in taken:
            name = f"_{name}"  # noqa: PLW2901 - until it is free
        reasons.append(name)
    return QuarantineSpec(
        folder=_quarantine_folder(frame, os.fspath(options.quarantine), columns, reasons),
        run=key,
        signature=short_digest([*(predicate.signature for predicate in predicates), frame.schema.simpleString()]),
        predicate_column=reasons[0],
        reason_column=reasons[1],
    )


def _quarantine_folder(frame: DataFrame, place: str, columns: dict[str, Column | None], reasons: Sequence[str]) -> str:
    """The folder of a quarantine, given as a path, or as the name of a table, which is made if it is not there.

    Workers write files into the table's folder: `spark.catalog.refreshTable` shows them to a session that has read it.
    """
    if any(mark in place for mark in "/\\:") or place.startswith((".", "~")):
        return place
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    if not spark.catalog.tableExists(place):
        schema = frame.select(
            *((f.col(name) if column is None else column).alias(name) for name, column in columns.items())
        ).schema
        for reason in reasons:
            schema = schema.add(reason, "string")
        spark.catalog.createTable(place, source="parquet", schema=schema)
    about = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE FORMATTED {place}").collect()}
    if about.get("Provider", "").lower() != "parquet":
        raise ValueError(f"the quarantine's table {place!r} is {about.get('Provider')}: make it USING parquet")
    location: str = about["Location"]
    return location


def _check_python_is_last(query: FilterQuery) -> None:
    """Refuse constraints that put a later stage behind a Python predicate of a query with a quarantine.

    Workers write the quarantine, and a worker cannot know whether a later stage would have rejected the row.
    """
    required = query.required.tolist()
    for number, form in enumerate(query.forms):
        for earlier, other in enumerate(query.forms):
            in_python = form.place is not Place.PYTHON and other.place is Place.PYTHON
            if in_python and required[number] >> earlier & 1:
                raise ValueError(
                    f"{query.names[number]!r} has to run after {query.names[earlier]!r}, which runs in "
                    f"Python: with on_error='quarantine' take pinned, deterministic=False or after= off"
                )


def _notes(options: FilterOptions, forms: Sequence[Form]) -> tuple[str, ...]:
    if options.route_by == AUTO and sum(form.place is Place.JOIN for form in forms) > 1:
        return ("lookups run as joins in Spark, in one order: name a column in route_by= for classes of rows",)
    return ()
