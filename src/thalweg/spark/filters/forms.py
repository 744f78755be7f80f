"""Turns predicates as written into forms that can run: a condition in Spark, a join, or a judge in a Python worker."""

from __future__ import annotations

import hashlib
import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.spark.filters.catalyst import Facts, facts_of
from thalweg.spark.filters.native import code_of, condition_of, opaque_truth
from thalweg.spark.filters.predicates import (
    AnyOfPredicate,
    ExpressionPredicate,
    FunctionPredicate,
    LookupPredicate,
    NotPredicate,
    Predicate,
    PrefixPredicate,
    parts_of,
)
from thalweg.spark.filters.worker.any_of import AnyOf
from thalweg.spark.filters.worker.fused import PolicySpec
from thalweg.spark.filters.worker.judges import FALSE, TRUE, CodeJudge, FunctionJudge, Judge, NotJudge, Takes
from thalweg.spark.folder import StateFolder
from thalweg.tables.keys import KeySet

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


LOOK_EVERY = 1.0  # seconds between two looks whether a stored table was refreshed


@dataclass(frozen=True)
class NativeForm:
    """A condition in Spark. Only `strict` may raise; `raised` is None where nothing can."""

    true: Column
    negate: Callable[[], Column]
    raised: Column | None
    strict: Column
    facts: Facts
    members: tuple[NativeForm, ...] = ()  # of a disjunction, in the order in which Spark evaluates them

    @property
    def parts(self) -> tuple[NativeForm, ...]:
        """The conditions that are tried one by one: the members of a disjunction, or the condition itself."""
        return self.members or (self,)

    @cached_property
    def false(self) -> Column:
        """Made only where it is needed: every step of a Column is a call of the JVM."""
        return self.negate()

    @property
    def stays(self) -> Column:
        """True where the condition is, and where it raises: somebody else may still reject the row."""
        from pyspark.sql import functions as f

        return self.true if self.raised is None else f.coalesce(self.true, f.lit(False)) | self.raised  # noqa: FBT003


@dataclass(frozen=True)
class JoinForm:
    """A semi-join or anti-join with a stored table."""

    lookup: LookupPredicate


@dataclass(frozen=True)
class PythonForm:
    """A judge for a worker; it is made there, once it is known at which places its columns come."""

    columns: tuple[str, ...]
    codes: tuple[NativeForm, ...]  # conditions in Spark whose outcomes it needs besides
    make: Callable[[Sequence[int], Sequence[int]], Judge]


Form = NativeForm | JoinForm | PythonForm


def forms_of(
    frame: DataFrame | None, predicates: Sequence[Predicate], policy: type, folder: str, *, joins: bool
) -> list[Form]:
    """How predicates run on a DataFrame; lookups by joins where the plan can be made anew for each batch."""
    conditions = [part for one in predicates for part in parts_of(one) if isinstance(part, ExpressionPredicate)]
    known = Known()
    if frame is not None and conditions:
        facts = facts_of(frame, [condition_of(one.condition) for one in conditions])
        known = Known({id(one): fact for one, fact in zip(conditions, facts, strict=True)}, frame)
    forms: list[Form] = []
    for one in predicates:
        native = _native(known, one)
        if isinstance(one, LookupPredicate) and joins:
            forms.append(JoinForm(one))
        else:
            forms.append(native if native is not None else _python(known, one, policy, folder))
    return forms


@dataclass(frozen=True)
class Known:
    """What is known of the conditions of a query, by the predicates' identity."""

    facts: dict[int, Facts] = field(default_factory=dict)
    frame: DataFrame | None = None

    @cached_property
    def opaque(self) -> Column | None:
        """A condition that is always true, which Spark does not know."""
        return None if self.frame is None else opaque_truth(self.frame)


def _native(known: Known, predicate: Predicate) -> NativeForm | None:
    """The form in Spark, if the predicate and all in it have one."""
    if isinstance(predicate, ExpressionPredicate):
        condition, facts = condition_of(predicate.condition), known.facts[id(predicate)]
        if facts.safe or not facts.deterministic or known.opaque is None:
            return NativeForm(condition, lambda: ~condition, None, condition, facts)
        code = code_of(condition, known.opaque)
        return NativeForm(code == TRUE, lambda: code == FALSE, code.isNull(), condition, facts)
    if isinstance(predicate, NotPredicate):
        of = _native(known, predicate.of)
        return of and NativeForm(of.false, lambda: of.true, of.raised, ~of.strict, of.facts)
    if isinstance(predicate, AnyOfPredicate):
        found = [_native(known, one) for one in predicate.members]
        members = [one for one in found if one is not None]
        if len(members) < len(found):
            return None
        return disjunction(members)
    return None


def disjunction(members: Sequence[NativeForm]) -> NativeForm:
    """A condition that is true where a member is; Spark asks them in this order."""
    from pyspark.sql import functions as f

    true = reduce(operator.or_, (one.true for one in members))
    raised = [one.raised for one in members if one.raised is not None]
    return NativeForm(
        true=true,
        negate=lambda: reduce(operator.and_, (one.false for one in members)),
        raised=~f.coalesce(true, f.lit(False)) & reduce(operator.or_, raised) if raised else None,  # noqa: FBT003
        strict=reduce(operator.or_, (one.strict for one in members), true) if raised else true,
        facts=Facts(
            safe=not raised,
            cheap=all(one.facts.cheap for one in members),
            deterministic=all(one.facts.deterministic for one in members),
            columns=None,
        ),
        members=tuple(members),
    )


def _python(known: Known, predicate: Predicate, policy: type, folder: str) -> PythonForm:
    """The form in a Python worker."""
    native = _native(known, predicate)
    if native is not None:
        return code_form(predicate.name, native)
    if isinstance(predicate, FunctionPredicate):
        make = partial(_function_judge, predicate.name, predicate.function, predicate.takes, False)  # noqa: FBT003
        return PythonForm(predicate.on, (), make)
    if isinstance(predicate, LookupPredicate):
        file = f"{hashlib.sha256(predicate.name.encode()).hexdigest()[:12]}.keys"
        predicate.followers.append(lambda keys: StateFolder(folder).write(file, keys.to_bytes()))
        look = KeysLookup(predicate.keys, folder, file)
        return PythonForm(predicate.on, (), partial(_function_judge, predicate.name, look, "arrow", predicate.negate))
    if isinstance(predicate, PrefixPredicate):
        matches = predicate.prefixes.matches
        make = partial(_function_judge, predicate.name, matches, "arrow", predicate.negate)
        return PythonForm((predicate.on,), (), make)
    if isinstance(predicate, NotPredicate):
        of = _python(known, predicate.of, policy, folder)
        return PythonForm(of.columns, of.codes, partial(_not_judge, predicate.name, of.make))
    if isinstance(predicate, AnyOfPredicate):
        members = [_python(known, one, policy, folder) for one in predicate.members]
        return PythonForm(
            columns=tuple(column for one in members for column in one.columns),
            codes=tuple(code for one in members for code in one.codes),
            make=partial(
                _any_judge,
                predicate.name,
                [(one.make, len(one.columns), len(one.codes)) for one in members],
                PolicySpec(policy, len(members)),
            ),
        )
    raise TypeError(f"there is no way to run {predicate!r}")


def code_form(name: str, native: NativeForm) -> PythonForm:
    """A condition in Spark whose outcome a worker is told."""
    return PythonForm((), (native,), partial(_code_judge, name))


class KeysLookup:
    """Whether keys are in a stored table, as a vectorised function; follows a refresh through a file."""

    def __init__(self, keys: KeySet, folder: str, name: str) -> None:
        self.keys = keys
        self._folder = folder
        self._name = name
        self._version: object = None
        self._looked = -math.inf

    def __call__(self, *columns: pa.Array) -> pa.BooleanArray:  # noqa: D102 - the class says it
        if time.monotonic() - self._looked > LOOK_EVERY:
            self._looked = time.monotonic()
            self._follow()
        return self.keys.contains(columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return _keys_lookup, (self.keys.to_bytes(), self._folder, self._name)

    def _follow(self) -> None:
        folder = StateFolder(self._folder)
        version = folder.versions().get(self._name)
        if version is not None and version != self._version:
            for content in folder.read([self._name]).values():
                self.keys, self._version = KeySet.from_bytes(content), version


def _keys_lookup(content: bytes, folder: str, name: str) -> KeysLookup:
    return KeysLookup(KeySet.from_bytes(content), folder, name)


# Makers of judges: given the places of their columns and of their codes among the columns that a worker gets.


def _code_judge(name: str, columns: Sequence[int], codes: Sequence[int]) -> Judge:  # noqa: ARG001 - as all makers
    return CodeJudge(name, codes[0])


def _function_judge(
    name: str,
    function: Callable[..., Any],
    takes: Takes,
    negate: bool,  # noqa: FBT001 - given by partial
    columns: Sequence[int],
    codes: Sequence[int],  # noqa: ARG001
) -> Judge:
    judge = FunctionJudge(name, function, takes, columns)
    return NotJudge(name, judge) if negate else judge


def _not_judge(name: str, make: Any, columns: Sequence[int], codes: Sequence[int]) -> Judge:  # noqa: ANN401
    return NotJudge(name, make(columns, codes))


def _any_judge(
    name: str, members: Sequence[tuple[Any, int, int]], policy: PolicySpec, columns: Sequence[int], codes: Sequence[int]
) -> Judge:
    judges = []
    for make, width, coded in members:
        judges.append(make(columns[:width], codes[:coded]))
        columns, codes = columns[width:], codes[coded:]
    return AnyOf(name, judges, policy.make())
