"""From an order of predicates to a DataFrame: which run in Spark, which in Python, and what happens between them.

Spark's optimizer moves conditions ahead of Python functions and joins wherever it can, which is right until it is not.
A condition that is to run behind one of those is made to depend on its outcome, so that it stays there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.routing.branches import Branches
from thalweg.spark.filters.branching import branched
from thalweg.spark.filters.forms import Form, JoinForm, NativeForm, PythonForm
from thalweg.spark.filters.predicates import LookupPredicate
from thalweg.spark.filters.routes import Routes
from thalweg.spark.filters.worker.fused import FusedSpec, fused
from thalweg.spark.filters.worker.judges import Judge

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX = "__thalweg_"  # of columns that exist only within a plan


@dataclass(frozen=True)
class Stage:
    """Neighbours in the order that run in the same place."""

    kind: type[Form]
    predicates: tuple[int, ...]


def stages_of(order: Sequence[int], forms: Sequence[Form]) -> list[Stage]:
    """The order cut where the place changes; every join is a stage of its own."""
    return [
        Stage(kind, part)
        for kind, group in groupby(order, key=lambda one: type(forms[one]))
        for part in ([(one,) for one in group] if kind is JoinForm else [tuple(group)])
    ]


def tag(key: str) -> Column:
    """A condition that is always true, and by which a plan tells which query it is; the optimizer removes it.

    Where Python comes first, its function's name tells.
    """
    from pyspark.sql import functions as f

    return f.expr(f"'thalweg:{key}' is not null")


@dataclass(frozen=True)
class Plan:
    """How a query's predicates run.

    `specify` makes what a worker needs for the predicates of one Python stage.
    """

    key: str
    stages: Sequence[Stage]
    forms: Sequence[Form]
    specify: Callable[[Sequence[int]], FusedSpec]
    on_error: str
    extra_columns: tuple[str, ...] = ()  # that the quarantine wants besides
    routes: Routes | None = None  # the columns that may tell classes apart
    branches: Mapping[tuple[int, ...], Branches] = field(default_factory=dict)  # of some conditions of a stage
    brings: Mapping[int, LookupPredicate] = field(default_factory=dict)  # lookups with columns for the kept rows

    def apply(self, frame: DataFrame) -> DataFrame:
        """The rows that all predicates keep."""
        from pyspark.sql import functions as f

        checks = self._checks()
        guard: Column | None = None  # whether the stages before have kept the row, where Spark would not wait for them
        outcomes, scratch = list[str](), list[str]()
        for number, stage in enumerate(self.stages):
            rest = self.stages[number + 1 :]
            joined = any(earlier.kind is JoinForm for earlier in self.stages[:number])
            if stage.kind is NativeForm:
                condition = _guarded(self._native(stage), guard)
                frame = frame.where(condition if number else condition & tag(self.key))
            elif stage.kind is JoinForm and not rest and not checks and stage.predicates[0] in self.brings:
                frame = frame if number else frame.where(tag(self.key))  # to bring its columns is to probe
            elif stage.kind is JoinForm:
                plain = not checks and all(later.kind is not NativeForm for later in rest)
                frame, guard, names = self._join(frame, stage, guard, plain=plain)
                frame = frame if number else frame.where(tag(self.key))
                scratch += names
            elif not rest and not checks:
                # Of a deterministic function Spark would infer what it says of each combination of equal keys.
                stays = joined or len(self.brings) > 1
                frame = frame.where(self._fused(stage, stays=stays, puts_off_errors=False))
            else:
                outcome = f"{PREFIX}{number}"
                frame = frame.withColumn(outcome, self._fused(stage, stays=True, puts_off_errors=True))
                guard = f.col(outcome).isNotNull()
                frame = frame.where(guard)
                outcomes.append(outcome)
                scratch.append(outcome)
        checked = reduce(operator.and_, checks) if checks else None
        if outcomes and self.on_error == "raise":  # Python's failures first, in whatever order the stages ran
            checked = _raised(outcomes, f.lit(True) if checked is None else checked)  # noqa: FBT003
        if checked is not None:
            frame = frame.where(_guarded(checked, guard))
        frame = frame.drop(*scratch) if scratch else frame
        for one, lookup in self.brings.items():
            names = [f"{PREFIX}{one}_key{place}" for place in range(len(lookup.on))]
            brought = f.broadcast(lookup.brought(frame.sparkSession, *names))
            frame = frame.join(brought, _same(lookup, names), "inner").drop(*names)
        return frame

    def as_column(self) -> Column:
        """The same as one condition, if all predicates run in Python."""
        (stage,) = self.stages
        return self._fused(stage, stays=False, puts_off_errors=False)

    def _checks(self) -> list[Column]:
        """Conditions that may raise, as they are, for the rows that nobody has rejected and on which they do."""
        from pyspark.sql import functions as f

        if self.on_error != "raise":
            return []
        return [
            f.when(form.raised, form.strict).otherwise(f.lit(True))  # noqa: FBT003
            for form in self.forms
            if isinstance(form, NativeForm) and form.raised is not None
        ]

    def _native(self, stage: Stage) -> Column:
        """The conditions of a stage, those that have branches last."""
        for members, branches in self.branches.items():
            if self.routes is not None and set(members) <= set(stage.predicates):
                first = [one for one in stage.predicates if one not in members]
                overall = [members.index(one) for one in stage.predicates if one in members]
                case = branched(branches, self.routes.types, [self._all([one]) for one in members], overall)
                return self._all(first) & case if first else case
        return self._all(stage.predicates)

    def _all(self, predicates: Sequence[int]) -> Column:
        forms = [form for form in (self.forms[one] for one in predicates) if isinstance(form, NativeForm)]
        return reduce(operator.and_, [form.true if self.on_error == "drop" else form.stays for form in forms])

    def _join(
        self, frame: DataFrame, stage: Stage, guard: Column | None, *, plain: bool
    ) -> tuple[DataFrame, Column | None, list[str]]:
        """Join with the keys; unless it is plain, in such a way that what follows can depend on the outcome."""
        from pyspark.sql import functions as f

        form = self.forms[stage.predicates[0]]
        assert isinstance(form, JoinForm)  # noqa: S101 - by the stage's kind
        lookup = form.lookup
        one = stage.predicates[0]
        names = [f"{PREFIX}{one}_key{place}" for place in range(len(lookup.on))]
        # A column of its own tells what was found: what Spark infers of keys it takes ahead of the join.
        found_column = f"{PREFIX}{one}_found"
        keys = f.broadcast(lookup.frame(frame.sparkSession, found_column, *names))
        same = _same(lookup, names)
        known = reduce(operator.and_, (f.col(on).isNotNull() for on in lookup.on))
        if plain:
            if lookup.negate:
                return frame.where(_guarded(known, guard)).join(keys, same, "left_anti"), guard, []
            return frame.join(keys, same, "left_semi"), guard, []
        found, names = f.col(found_column), [*names, found_column]
        if not lookup.negate:
            return frame.join(keys, same, "inner"), found, names
        outside = known & found.isNull()
        return frame.join(keys, same, "left").where(outside), outside, names

    def _fused(self, stage: Stage, *, stays: bool, puts_off_errors: bool) -> Column:
        """The predicates of a Python stage as one function of the columns that they need."""
        from pyspark.sql import functions as f

        forms = [form for form in (self.forms[one] for one in sorted(stage.predicates)) if isinstance(form, PythonForm)]
        names = list(dict.fromkeys([*(column for form in forms for column in form.columns), *self.extra_columns]))
        codes = [code for form in forms for code in form.codes]
        places = [
            (
                form.make,
                [names.index(column) for column in form.columns],
                [len(names) + next(at for at, code in enumerate(codes) if code is mine) for mine in form.codes],
            )
            for form in forms
        ]
        routed = self.routes.attributes if self.routes is not None and len(forms) > 1 else ()
        brought = [name for name in routed if name not in names]
        everything = [*names, *("" for _ in codes), *brought]
        spec = replace(
            self.specify(stage.predicates),
            judges=JudgeMaker(places),
            columns=tuple(names),
            puts_off_errors=puts_off_errors,
            attributes={name: everything.index(name) for name in routed},
        )
        return _udf(spec, stays=stays)(
            *(f.col(name) for name in names),
            *(_code(code) for code in codes),
            *(self.routes.brought(name) for name in brought if self.routes is not None),
        )


def _same(lookup: LookupPredicate, names: Sequence[str]) -> Column:
    """Whether a row has a key, whose parts have these names."""
    from pyspark.sql import functions as f

    return reduce(operator.and_, (f.col(on) == f.col(name) for on, name in zip(lookup.on, names, strict=True)))


def _guarded(condition: Column, guard: Column | None) -> Column:
    """A condition that is evaluated only where the guard is true."""
    from pyspark.sql import functions as f

    return condition if guard is None else f.when(guard, condition).otherwise(f.lit(False))  # noqa: FBT003


def _raised(outcomes: Sequence[str], otherwise: Column) -> Column:
    """Raises what a Python stage put off: the first predicate as written, where several have failed."""
    from pyspark.sql import functions as f

    none = "~"  # behind all texts, which begin with the predicate's number
    texts = (f.when(f.col(name) == "", f.lit(none)).otherwise(f.col(name)) for name in outcomes)
    first = f.least(*texts, f.lit(none))
    failure = f.raise_error(f.substring(first, 4, 1 << 20)).cast("boolean")
    return f.when(first != none, failure).otherwise(otherwise)


class JudgeMaker:
    """Makes the judges of a stage, in the worker."""

    def __init__(self, places: Sequence[tuple[Any, Sequence[int], Sequence[int]]]) -> None:
        self._places = places

    def __call__(self) -> list[Judge]:  # noqa: D102 - the class says it
        return [make(columns, codes) for make, columns, codes in self._places]


def _code(form: NativeForm) -> Column:
    """The outcome of a condition as a number for a worker."""
    from pyspark.sql import functions as f

    from thalweg.spark.filters.worker.judges import FALSE, TRUE, UNKNOWN

    known = f.when(form.true, f.lit(TRUE)).when(form.false, f.lit(FALSE))
    return known.otherwise(f.lit(UNKNOWN)) if form.raised is None else known.when(~form.raised, f.lit(UNKNOWN))


def _udf(spec: FusedSpec, *, stays: bool) -> Callable[..., Column]:
    """The function that Spark calls with Arrow batches: booleans, or texts where failures are settled later."""
    from pyspark.sql.pandas.functions import arrow_udf

    def run(batches: Iterator[Any]) -> Iterator[pa.Array]:
        return fused(spec).run(batch if isinstance(batch, tuple) else (batch,) for batch in batches)

    run.__name__ = f"thalweg_{spec.key}"
    run.__annotations__ = {
        "batches": Iterator[tuple[pa.Array, ...]],
        "return": Iterator[pa.Array],
    }  # as Spark reads them
    made: Any = arrow_udf("string" if spec.puts_off_errors else "boolean")(run)  # type: ignore[call-overload]
    # Where it stands, and once: Spark takes a deterministic function ahead of joins, and calls it again wherever its
    # column is used.
    function: Callable[..., Column] = made.asNondeterministic() if stays else made
    return function
