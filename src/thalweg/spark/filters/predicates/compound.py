"""Predicates that are made of others: disjunction, conjunction and negation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from thalweg.keywords import checks_keywords
from thalweg.ordering import AsWritten, Policy
from thalweg.spark.filters.conditions import Disjunction, Negation, SparkCondition
from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.predicates.base import OPTIONS, Analysis, Predicate, as_predicate, checked_options, inherited
from thalweg.spark.filters.worker.any_of import AnyOf
from thalweg.spark.filters.worker.judges import Judge, NotJudge
from thalweg.spark.filters.worker.spec import PolicySpec
from thalweg.spark.filters.worker.waiting.judge import NotWaitingJudge, Waits


@dataclass(frozen=True, kw_only=True, eq=False)
class AnyOfPredicate(Predicate):
    """Whether at least one of some predicates is true."""

    alternatives: tuple[Predicate, ...]

    @property
    def members(self) -> tuple[Predicate, ...]:  # noqa: D102 - as the base has it
        return self.alternatives

    def with_members(self, members: Sequence[Predicate]) -> Predicate:  # noqa: D102
        return replace(self, name=_renamed(self, members), alternatives=tuple(members))

    def in_spark(self, analysis: Analysis) -> SparkCondition | None:
        """A condition, if all members are conditions."""
        members = [member.in_spark(analysis) for member in self.members]
        known = [member for member in members if member is not None]
        return Disjunction.of(known) if len(known) == len(members) else None

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        forms = [member.form_in_worker(analysis) for member in self.members]
        return PythonForm(
            columns=tuple(column for form in forms for column in form.columns),
            codes=tuple(code for form in forms for code in form.codes),
            make=partial(
                _any_judge,
                self.name,
                [(form.make, len(form.columns), len(form.codes)) for form in forms],
                PolicySpec(analysis.policy, len(forms), options=_waiting_last(analysis.policy, forms)),
                self._costs(),
            ),
            waits=any(form.waits for form in forms),
        )

    def _costs(self) -> list[float] | None:
        """What a row costs in each member, if all of them say so."""
        costs = [member.cost for member in self.members if member.cost is not None]
        return costs if len(costs) == len(self.members) else None


@dataclass(frozen=True, kw_only=True, eq=False)
class AllOfPredicate(Predicate):
    """Whether all of some predicates are true; `tw.where` orders its members among the other predicates."""

    required: tuple[Predicate, ...]

    @property
    def members(self) -> tuple[Predicate, ...]:  # noqa: D102 - as the base has it
        return self.required

    def with_members(self, members: Sequence[Predicate]) -> Predicate:  # noqa: D102
        return replace(self, name=_renamed(self, members), required=tuple(members))

    def in_spark(self, analysis: Analysis) -> SparkCondition | None:  # noqa: D102
        return self._by_negations.in_spark(analysis)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        return self._by_negations.in_python(analysis)

    @property
    def _by_negations(self) -> Predicate:
        """The same by De Morgan's law, which also holds for NULL and for errors: not any member is false."""
        return not_(any_of(*map(not_, self.members)), name=self.name)


@dataclass(frozen=True, kw_only=True, eq=False)
class NotPredicate(Predicate):
    """Whether a predicate is false."""

    negated: Predicate

    @property
    def members(self) -> tuple[Predicate, ...]:  # noqa: D102 - as the base has it
        return (self.negated,)

    def with_members(self, members: Sequence[Predicate]) -> Predicate:  # noqa: D102
        (negated,) = members
        return replace(self, name=_renamed(self, members), negated=negated)

    def in_spark(self, analysis: Analysis) -> SparkCondition | None:
        """A condition, if the negated predicate is a condition."""
        negated = self.negated.in_spark(analysis)
        return None if negated is None else Negation.of(negated)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        form = self.negated.form_in_worker(analysis)
        return PythonForm(form.columns, form.codes, partial(_not_judge, self.name, form.make), waits=form.waits)


@checks_keywords("tw.any_of", *OPTIONS)
def any_of(*members: Any, name: str | None = None, **options: Any) -> AnyOfPredicate:  # noqa: ANN401 - as in `where`
    """Whether at least one member is true: one predicate. If it runs in Python, its inner order adapts as well.

    >>> any_of("a > 1", "b > 1").name
    'a > 1 or b > 1'
    """
    if len(members) == 1 and isinstance(members[0], list | tuple):
        raise TypeError("write the members of tw.any_of one after the other: tw.any_of(a, b), or tw.any_of(*members)")
    if len(members) < 2:  # noqa: PLR2004 - a single predicate has no order
        raise ValueError("tw.any_of takes two predicates or more; a single predicate needs no tw.any_of")
    predicates = tuple(map(as_predicate, members))
    shown = name or " or ".join(predicate.name for predicate in predicates)
    return AnyOfPredicate(name=shown, alternatives=predicates, **inherited(predicates, checked_options(options)))


def conjunction_of(*members: Any, name: str | None = None) -> AllOfPredicate:  # noqa: ANN401 - as in `where`
    """Whether all members are true, as `a & b` writes it.

    >>> conjunction_of("a > 1", "b > 1").name
    'a > 1 and b > 1'
    """
    predicates = tuple(map(as_predicate, members))
    shown = name or " and ".join(predicate.name for predicate in predicates)
    return AllOfPredicate(name=shown, required=predicates, **inherited(predicates, {}))


@checks_keywords("tw.not_", *OPTIONS)
def not_(negated: Any, *, name: str | None = None, **options: Any) -> NotPredicate:  # noqa: ANN401 - as in `where`
    """Whether a predicate is false; where it is NULL, so is this.

    >>> not_("a > 1").name
    'not (a > 1)'
    """
    predicate = as_predicate(negated)
    shown = name or f"not ({predicate.name})"
    return NotPredicate(name=shown, negated=predicate, **inherited((predicate,), checked_options(options)))


def _renamed(predicate: Predicate, members: Sequence[Predicate]) -> str:
    """The name of a predicate after its members were replaced: analysis gives Columns better names than PySpark."""
    name = predicate.name
    for before, after in zip(predicate.members, members, strict=True):
        name = name.replace(before.name, after.name, 1)
    return name


def conjuncts(predicate: Predicate) -> list[Predicate]:
    """The predicates that a conjunction is made of; a predicate that is none stands for itself."""
    if not isinstance(predicate, AllOfPredicate):
        return [predicate]
    return [conjunct for member in predicate.members for conjunct in conjuncts(member)]


# Makers of judges: given the places of their columns and of their codes among the columns that a worker gets.


def _not_judge(name: str, make: Any, columns: Sequence[int], codes: Sequence[int]) -> Judge:  # noqa: ANN401
    judge = make(columns, codes)
    return NotWaitingJudge(name, judge) if isinstance(judge, Waits) else NotJudge(name, judge)


def _waiting_last(policy: type[Policy], forms: Sequence[PythonForm]) -> dict[str, Any]:
    """The order in which members begin: members that wait come last as long as nothing is known."""
    waits = [form.waits for form in forms]
    if policy is AsWritten or len(set(waits)) == 1:
        return {}
    return {"order": sorted(range(len(forms)), key=waits.__getitem__)}


def _any_judge(
    name: str,
    members: Sequence[tuple[Any, int, int]],
    policy: PolicySpec,
    costs: Sequence[float] | None,
    columns: Sequence[int],
    codes: Sequence[int],
) -> Judge:
    judges = []
    for make, width, coded in members:
        judges.append(make(columns[:width], codes[:coded]))
        columns, codes = columns[width:], codes[coded:]
    return AnyOf(name, judges, policy.make(), costs)
