"""`tw.where`: keeps the rows that all predicates keep, in the cheapest order, which it finds out as it runs."""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from thalweg.drift import Detector
from thalweg.ordering import AsWritten, Policy, Profile
from thalweg.ordering.places import placed_order
from thalweg.ordering.precedence import required_before
from thalweg.ordering.replay import replay
from thalweg.ordering.types import Integers
from thalweg.routing.branches import Branches
from thalweg.sealed import SavedStateError
from thalweg.spark.filters.branching import choose_branches
from thalweg.spark.filters.checks import (
    check_brought,
    check_columns,
    check_picklable,
    constraints,
    detector_of,
    distinct_names,
    policy_of,
)
from thalweg.spark.filters.forms import Form, JoinForm, NativeForm, PythonForm, code_form, disjunction, forms_of
from thalweg.spark.filters.learned import PLAN, SUFFIX, WARM, Learned, StateError, digest, merge
from thalweg.spark.filters.native import SMALL_INPUT, Sample, estimated_size, sample_rows
from thalweg.spark.filters.plan import Plan, stages_of
from thalweg.spark.filters.predicates import (
    ExpressionPredicate,
    LookupPredicate,
    Predicate,
    as_predicate,
    columns_of,
    parts_of,
)
from thalweg.spark.filters.routes import AUTO, RouteBy, Routes, routes_of
from thalweg.spark.filters.trial import member_orders, try_all
from thalweg.spark.filters.worker.fused import MOST_CHANGES, FusedSpec, PolicySpec
from thalweg.spark.filters.worker.quarantine import folder_of
from thalweg.spark.folder import StateFolder, scratch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OnError = Literal["raise", "drop", "quarantine"]

MOST_WHERES = 1000  # that the driver remembers for `tw.explain`
CROSSING_SECONDS = 200e-9  # that a row takes to Python and back, roughly
TAG = re.compile(r"thalweg[:_]([0-9a-f]{12})")
WORTH_SAMPLING = 2  # conditions or lookups that take time: with fewer there is nothing to choose


@dataclass
class Where:
    """The driver's side of one `tw.where`: what was asked for, how it runs, and where to find what it learns."""

    key: str
    predicates: tuple[Predicate, ...]
    forms: tuple[Form, ...]
    policy: PolicySpec  # over all predicates
    detector: Detector | None
    on_error: OnError
    quarantine: str | None
    quarantine_columns: tuple[str, ...]
    folder: StateFolder
    routes: Routes | None = None  # the columns that may tell classes of rows apart
    branches: dict[tuple[int, ...], Branches] = field(default_factory=dict)  # of conditions in Spark, by class
    inner: dict[int, tuple[int, ...]] = field(default_factory=dict)  # orders of the members of disjunctions in Spark
    branching: list[dict[str, Any]] = field(default_factory=list)  # what was considered for them
    order: tuple[int, ...] = ()
    why: str = ""  # the order of the stages is as it is
    learned: Learned | None = None  # of all predicates together, from a sample
    changes: list[dict[str, Any]] = field(default_factory=list)  # of the order of stages: when, from which to which
    notes: list[str] = field(default_factory=list)  # fallbacks: nothing is silent

    @property
    def names(self) -> tuple[str, ...]:
        """The predicates' names, as written."""
        return tuple(one.name for one in self.predicates)

    @property
    def required(self) -> Integers:
        """For each predicate, the mask of those that must run before it."""
        return required_before(len(self.forms), self.policy.options["after"], self.policy.options["pinned"])

    @property
    def plan(self) -> Plan:
        """How the predicates run at present."""
        forms = tuple(
            disjunction([form.members[member] for member in self.inner[one]])
            if one in self.inner and isinstance(form, NativeForm)
            else form
            for one, form in enumerate(self.forms)
        )
        stages = stages_of(self.order, forms)
        brings = {at: one for at, one in enumerate(self.predicates) if isinstance(one, LookupPredicate) and one.brings}
        return Plan(
            self.key,
            stages,
            forms,
            self.specify,
            self.on_error,
            self.quarantine_columns,
            self.routes,
            self.branches,
            brings,
        )

    def choose_unsampled(self) -> None:
        """An order without knowing anything: what is surely cheap first, Python last, and as written otherwise."""
        adapts = self.policy.kind is not AsWritten

        def rank(one: int) -> int:
            form = self.forms[one]
            if isinstance(form, NativeForm):
                return 0 if form.facts.cheap or not adapts else 1
            return 2 if isinstance(form, JoinForm) else 3

        required, placed, order = self.required.tolist(), 0, list[int]()
        while len(order) < len(self.forms):
            free = [one for one in range(len(self.forms)) if one not in order and not required[one] & ~placed]
            order.append(min(free, key=lambda one: (rank(one), one)))
            placed |= 1 << order[-1]
        self.order, self.why = tuple(order), "nothing sampled: cheap conditions first, Python last, else as written"

    def wants_sample(self) -> bool:
        """Whether there is an order to choose that workers cannot find by themselves."""
        slow = sum(isinstance(form, JoinForm) for form in self.forms)
        slow += sum(not part.facts.cheap for form in self.forms if isinstance(form, NativeForm) for part in form.parts)
        return self.policy.kind is not AsWritten and slow >= WORTH_SAMPLING

    def take_sample(self, frame: DataFrame, size: int | None) -> Sample:
        """Run all conditions on a sample, and bring along what the others need."""
        conditions = [part.strict for form in self.forms if isinstance(form, NativeForm) for part in form.parts]
        columns = dict.fromkeys(
            column
            for one, form in zip(self.predicates, self.forms, strict=True)
            if not isinstance(form, NativeForm)
            for part in parts_of(one)
            for column in columns_of(part)
        )
        columns |= dict.fromkeys(self.routes.types if self.routes is not None else ())
        return sample_rows(frame, conditions, list(columns), size)

    def consider(self, sampled: Sample) -> None:
        """Choose the order of all predicates by a sample."""
        inner = member_orders(self.forms, sampled, self.policy.kind)
        masks, costs = try_all(self.forms, sampled, inner)
        if self.policy.options.get("costs") is not None:
            costs = np.array(self.policy.options["costs"], np.float64)
        now = time.time()
        profile = Profile(len(costs), max(masks.size, 1), costs=costs)
        profile.insert(masks, None, now)
        self.learned = Learned(self.key, list(self.names), [], profile, costs=costs.tolist())
        self.learned.inner = [(one, list(order)) for one, order in inner.items()]
        self.choose_by(profile, f"sampled {masks.size:,} rows, {sampled.how}")
        if self.routes is not None and self.routes.off is None:
            values = {name: sampled.columns[name].slice(0, masks.size) for name in self.routes.types}
            stages = [stage.predicates for stage in stages_of(self.order, self.forms)]
            judged = masks, costs
            self.branching = choose_branches(stages, self.forms, self.required, judged, values, self.routes.types)
            self.learned.branches = [one for one in self.branching if "branches" in one]
        self.take_up(self.learned)

    def choose_by(self, profile: Profile, why: str) -> None:
        """Choose the order of all predicates by a profile of them all."""
        masks, costs = profile.masks, profile.mean_times
        before = self.order
        policy = self.policy.make(before)
        replay(policy, masks, costs)
        away = [isinstance(form, PythonForm) for form in self.forms]
        order = placed_order(masks, policy.order, costs, away, CROSSING_SECONDS, self.required)
        if self.on_error == "quarantine":  # which rows to put there is clear only when all conditions have been tried
            order = tuple(sorted(order, key=lambda one: away[one]))
        self.order, self.why = order, why
        if before and before != order:
            change = {"at": time.time(), "rows": None, "before": list(before), "after": list(order)}
            self.changes = [*self.changes[1 - MOST_CHANGES :], change]
        if self.learned is not None:
            self.learned.order = list(order)

    def take_up(self, learned: Learned) -> None:
        """Take up what was chosen besides the order, now or in an earlier run; branches that do not fit are noted."""
        self.inner = {
            one: tuple(order)
            for one, order in learned.inner
            if isinstance(form := self.forms[one], NativeForm) and sorted(order) == list(range(len(form.members)))
        }
        self.branches.clear()
        if self.routes is None or self.routes.off is not None:
            return
        for one in learned.branches:
            try:
                found = Branches.from_dict(one, len(one["conditions"]), list(self.routes.types))
            except SavedStateError as error:
                self.notes.append(f"conditions run in one order: {error}")
            else:
                self.branches[tuple(one["conditions"])] = found
        self.branching = self.branching or [
            one for one in learned.branches if tuple(one["conditions"]) in self.branches
        ]

    def specify(self, stage: Sequence[int]) -> FusedSpec:
        """What a worker needs to know of the predicates of one Python stage, besides how to judge."""
        members = sorted(stage)
        place = {one: at for at, one in enumerate(members)}
        options: dict[str, Any] = dict(self.policy.options)
        options["after"] = {
            place[one]: [place[other] for other in others if other in place]
            for one, others in options["after"].items()
            if one in place
        }
        options["pinned"] = [place[one] for one in options["pinned"] if one in place]
        options["order"] = [place[one] for one in stage]
        if options.get("costs") is not None:
            options["costs"] = [options["costs"][one] for one in members]
        return FusedSpec(
            key=f"{self.key}.{'-'.join(map(str, members))}",
            judges=tuple,
            columns=(),
            policy=PolicySpec(self.policy.kind, len(stage), options, self.detector),
            state=self.folder.url,
            on_error=self.on_error,
            quarantine=self.quarantine,
            names=tuple(self.predicates[one].name for one in members),
            numbers=tuple(members),
        )

    def python_runs(self) -> bool:
        """Whether any predicate runs in Python workers."""
        return any(isinstance(form, PythonForm) for form in self.forms)

    def reports(self) -> list[Learned]:
        """What the workers of this run have reported so far."""
        found = read_learned(self.folder, self.notes).values()
        return [learned for learned in found if learned.run.startswith(f"{self.key}.")]

    def keep_plan(self) -> None:
        """Save what is known of all predicates together, for the next run."""
        if self.learned is not None:
            with contextlib.suppress(OSError):
                self.folder.write(f"{PLAN}{digest(self.names)}{SUFFIX}", self.learned.to_bytes())


def where(
    frame: DataFrame,
    *predicates: Any,  # noqa: ANN401 - predicates, Columns and texts
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "none",
    route_by: RouteBy = None,
    on_error: OnError = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    quarantine_columns: Sequence[str] = (),
    state: str | os.PathLike[str] | None = None,
    sample: bool | None = None,
) -> DataFrame:
    """Keep the rows that all predicates keep, evaluated in the cheapest order.

    The rows are those of ``frame.where(a & b & c)``, whatever the order; a row for which a predicate is NULL is not
    kept. A row that one predicate rejects never raises another's error.

    Parameters
    ----------
    frame
        Any DataFrame, batch or streaming, classic or Connect.
    predicates
        What `tw.predicate`, `tw.expr`, `tw.regex`, `tw.lookup`, `tw.prefix_match`, `tw.any_of` and `tw.not_` make, and
        Columns and conditions as text.
    policy
        What orders them: a name, a policy of `thalweg.ordering` or its class. ``"as-written"`` switches it off.
    drift
        What else watches for changes in the data, besides the counts of ordinary processing that always do: a detector
        of `thalweg.drift` or its name, ``"bcs"``, ``"martingale"`` or ``"adwin"``. It sees changes that hide behind
        other predicates, and gradual ones.
    route_by
        What may tell classes of rows apart, so that each has its own order: a column, a list of columns, or ``"auto"``
        for those that predicates take to Python and some cheap ones. Classes are made where they surely save.
    on_error
        What becomes of a row that no predicate rejects and that one fails on: ``"raise"`` an error that names the
        predicate and the row, ``"drop"`` it, or ``"quarantine"`` it.
    quarantine
        The folder or the table for these rows, with the predicate and the reason; they have the columns that Python
        predicates use, and `quarantine_columns`.
    state
        A folder, shared by driver and workers, where to keep what is learnt, so that the next run starts with it. By
        default it is kept as long as this program runs.
    sample
        Whether to run a small job first that tells in which order Spark shall evaluate conditions and lookups. By
        default, where it is likely to pay.

    Examples
    --------
    >>> kept = where(orders, "amount > 100", is_spam)  # doctest: +SKIP
    """
    if not hasattr(frame, "isStreaming"):
        raise TypeError(f"tw.where takes a Spark DataFrame first, not {type(frame).__name__}")
    made = make_where(
        frame,
        predicates,
        policy=policy,
        drift=drift,
        route_by=route_by,
        on_error=on_error,
        quarantine=quarantine,
        quarantine_columns=quarantine_columns,
        state=state,
        joins=not frame.isStreaming,
    )
    decide(made, frame, sample=sample)
    if frame.isStreaming:
        for lookup in made.plan.brings.values():
            lookup.fixed.append(made.key)
    return made.plan.apply(frame)


def condition(
    *predicates: Any,  # noqa: ANN401 - predicates
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "none",
    on_error: Literal["raise", "drop"] = "raise",
    state: str | os.PathLike[str] | None = None,
) -> Column:
    """The conjunction of predicates that run in Python as one Column, for wherever a Column goes.

    `tw.where` does more: it orders conditions in Spark and joins as well, and checks the DataFrame's columns.

    Examples
    --------
    >>> flagged = messages.withColumn("flagged", condition(is_spam, is_odd))  # doctest: +SKIP
    """
    checked = [as_predicate(one) for one in predicates]
    for one in checked:
        if any(isinstance(part, ExpressionPredicate) for part in parts_of(one)):
            raise TypeError(
                f"{one.name!r} runs in Spark: write tw.condition(...) & F.expr({one.name!r}), or tw.where for all"
            )
    made = make_where(
        None,
        checked,
        policy=policy,
        drift=drift,
        route_by=None,
        on_error=on_error,
        quarantine=None,
        quarantine_columns=(),
        state=state,
        joins=False,
    )
    made.choose_unsampled()
    gather(made)
    return made.plan.as_column()


def make_where(
    frame: DataFrame | None,
    predicates: Sequence[Any],
    *,
    policy: str | Policy | type[Policy],
    drift: str | Detector,
    route_by: RouteBy,
    on_error: OnError,
    quarantine: str | os.PathLike[str] | None,
    quarantine_columns: Sequence[str],
    state: str | os.PathLike[str] | None,
    joins: bool,
) -> Where:
    """What was asked for, checked, and remembered for `tw.explain`; the order is still to be decided."""
    if not predicates:
        raise ValueError("tw.where needs at least one predicate: tw.where(df, 'amount > 100', ...)")
    if on_error not in get_args(OnError):
        raise ValueError(f"on_error is one of {', '.join(get_args(OnError))}, not {on_error!r}")
    if (on_error == "quarantine") != (quarantine is not None):
        raise ValueError("on_error='quarantine' and quarantine='folder or table' go together")
    checked = distinct_names([as_predicate(one) for one in predicates])
    if frame is not None:
        check_columns(frame, checked, quarantine_columns)
    check_brought(frame, checked)
    check_picklable(checked)
    key = uuid.uuid4().hex[:12]
    folder = StateFolder(os.path.join(scratch(), key) if state is None else state)  # noqa: PTH118 - may be a URL
    kind, options = policy_of(policy)
    # A join has one order for all rows; who names a column to tell classes by has lookups follow them, in Python.
    joins = joins and (route_by is None or route_by == AUTO)
    forms = forms_of(frame, checked, kind, folder.url, joins=joins)
    if on_error == "quarantine":  # a worker writes it, so a worker has to be told where a condition has raised
        raising = [one for one, form in enumerate(forms) if isinstance(form, NativeForm) and form.raised is not None]
        forms += [code_form(checked[one].name, forms[one]) for one in raising]  # type: ignore[arg-type]
        checked += [replace(checked[one], name=f"{checked[one].name} (errors)", pinned=False) for one in raising]
    made = Where(
        key=key,
        predicates=tuple(checked),
        forms=tuple(forms),
        policy=PolicySpec(kind, len(forms), options | constraints(checked, forms)),
        detector=detector_of(drift),
        on_error=on_error,
        quarantine=None if quarantine is None else os.fspath(quarantine),
        quarantine_columns=tuple(quarantine_columns),
        folder=folder,
        routes=None if frame is None else routes_of(frame, route_by, python_columns(forms), kind, len(forms)),
    )
    if frame is not None and quarantine is not None:
        taken = dict.fromkeys([*python_columns(forms), *quarantine_columns])
        made.quarantine = folder_of(frame, os.fspath(quarantine), list(taken))
    if route_by == AUTO and sum(isinstance(form, JoinForm) for form in forms) > 1:
        made.notes.append("lookups run as joins in Spark, in one order: name a column in route_by= for classes of rows")
    if on_error == "quarantine":
        check_python_is_last(made)
    _wheres[key] = made
    while len(_wheres) > MOST_WHERES:
        _wheres.popitem(last=False)
    return made


def python_columns(forms: Sequence[Form]) -> list[str]:
    """The columns that predicates take to Python."""
    return [column for form in forms if isinstance(form, PythonForm) for column in form.columns]


def check_python_is_last(made: Where) -> None:
    """Refuse constraints that put something behind a Python predicate of a query with a quarantine.

    Workers write it, and a worker cannot know whether a later stage would have rejected the row.
    """
    required = made.required.tolist()
    for one, form in enumerate(made.forms):
        for earlier, other in enumerate(made.forms):
            if not isinstance(form, PythonForm) and isinstance(other, PythonForm) and required[one] >> earlier & 1:
                raise ValueError(
                    f"{made.predicates[one].name!r} has to run after {made.predicates[earlier].name!r}, which runs in "
                    f"Python: with on_error='quarantine' take pinned, deterministic=False or after= off"
                )


def decide(made: Where, frame: DataFrame, *, sample: bool | None = None) -> None:
    """Choose how the predicates run: as learnt before, by a sample, or by what is known without one."""
    saved = gather(made)
    if saved is not None:
        made.learned = saved
        made.choose_by(saved.profile, f"as learnt {time.strftime('%Y-%m-%d %H:%M', time.localtime(saved.at))}")
        made.take_up(saved)
        return
    if sample is False or frame.isStreaming or not (sample or made.wants_sample()):
        made.choose_unsampled()
        return
    size = estimated_size(frame)
    if not sample and size is not None and size < SMALL_INPUT:
        made.choose_unsampled()
        made.why = f"{made.why}; the input is too small for a sample"
        return
    made.consider(made.take_sample(frame, size))
    made.keep_plan()


def gather(made: Where) -> Learned | None:
    """Put together what earlier runs have left in the folder; returns what they knew of all predicates, if anything."""
    plan = None
    earlier: dict[tuple[str, ...], list[Learned]] = {}
    merged: list[str] = []
    for name, learned in read_learned(made.folder, made.notes).items():
        if name.startswith(PLAN):
            plan = learned if tuple(learned.predicates) == made.names else plan
        else:
            earlier.setdefault(tuple(learned.predicates), []).append(learned)
            merged.append(name)
    if len(merged) > len(earlier):
        for names, several in earlier.items():
            made.folder.write(f"{WARM}{digest(names)}{SUFFIX}", merge(several).to_bytes())
        kept = {f"{WARM}{digest(names)}{SUFFIX}" for names in earlier}
        made.folder.delete(name for name in merged if name not in kept)
    return plan


def read_learned(folder: StateFolder, notes: list[str]) -> dict[str, Learned]:
    """All that is in a folder; what cannot be read is noted and left alone."""
    found = {}
    for name, content in folder.read(name for name in folder.versions() if name.endswith(SUFFIX)).items():
        try:
            found[name] = Learned.from_bytes(content)
        except StateError as error:
            note = f"{folder.url}/{name} is not used: {error}"
            if note not in notes:
                notes.append(note)
    return found


def reset(what: DataFrame | str | os.PathLike[str]) -> None:
    """Forget what was learnt: of a DataFrame that `tw.where` made, or in a folder given as ``state=``."""
    folders = [StateFolder(what)] if isinstance(what, str | os.PathLike) else [made.folder for made in wheres_of(what)]
    for folder in folders:
        folder.delete([name for name in folder.versions() if name.endswith(SUFFIX)])


def wheres_of(what: Any) -> list[Where]:  # noqa: ANN401 - a DataFrame or a streaming query
    """Every `tw.where` in the plan of a DataFrame or of a running query, the innermost last."""
    found = wheres_by(keys_of(what))
    if not found:
        raise ValueError("no tw.where of this program is in the plan: pass what tw.where returned, or a query on it")
    return found


def keys_of(what: Any) -> list[str]:  # noqa: ANN401 - a DataFrame or a streaming query
    """The keys in the plan of a DataFrame or of a running query, the innermost last."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        what.explain(True)  # noqa: FBT003 - a streaming query takes it by position only
    return list(dict.fromkeys(TAG.findall(text.getvalue())))


def wheres_by(keys: Sequence[str]) -> list[Where]:
    """What has one of these keys."""
    return [_wheres[key] for key in keys if key in _wheres]


_wheres: OrderedDict[str, Where] = OrderedDict()
