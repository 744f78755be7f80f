"""Splits the conditions of a query into predicates that can be ordered: `split(frame, predicates)`.

A conjunction becomes its parts. A disjunction becomes a `tw.any_of` of its parts if these are worth an order, and stays
a whole otherwise: Spark evaluates it as it is written. So does a group with a part that is not deterministic. Python
UDFs become predicates that run with the user's other Python predicates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.ordering.precedence import MAX_FILTERS
from thalweg.spark.filters.catalyst import AnalysedCondition, Facts, analyse
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import any_of, conjunction_of, conjuncts, not_
from thalweg.spark.filters.predicates.expression import ExpressionPredicate
from thalweg.spark.filters.split.columns import take_apart
from thalweg.spark.filters.split.connect_udfs import connect_udf_predicate
from thalweg.spark.filters.split.logic import Group, Part, logic_of
from thalweg.spark.filters.split.names import client_sql, sql_name
from thalweg.spark.filters.split.taken_over import StaysInSparkError
from thalweg.spark.filters.split.udfs import udf_predicate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Condition = Any  # text in Spark SQL, or a Column
SPACING = re.compile(r"[\s()]")  # by which texts of the same expression may differ


@dataclass(frozen=True)
class Split:
    """The predicates of a query after their conditions were split, and notes for the user."""

    predicates: tuple[Predicate, ...]
    notes: tuple[str, ...] = ()


def split(frame: DataFrame, predicates: Sequence[Predicate]) -> Split:
    """Split the conditions among the predicates, and in them, that may be split.

    A condition that another predicate names in ``after=`` stays whole, so that it can be found.
    """
    from pyspark.errors import AnalysisException

    awaited = {other if isinstance(other, str) else other.name for predicate in predicates for other in predicate.after}
    written = [
        part
        for predicate in predicates
        for part in predicate.parts
        if isinstance(part, ExpressionPredicate) and not part.whole and part.name not in awaited
    ]
    logics = [logic_of(_condition(expression), take_apart) for expression in written]
    parts = [part for logic in logics for part in logic.parts]
    try:
        analysed = analyse(frame, [_as_column(part.condition) for part in parts])
    except AnalysisException:
        return Split(tuple(predicates))  # Spark will say of the whole conditions which of them it cannot analyse
    splitter = _Splitter(
        {id(part): _known(part.condition, found, frame) for part, found in zip(parts, analysed, strict=True)}
    )
    replacements = {
        id(expression): splitter.predicate(logic)
        for expression, logic in zip(written, logics, strict=True)
        if not splitter.repeats(logic)
    }
    found = [member for predicate in predicates for member in conjuncts(_replaced(predicate, replacements))]
    if len(found) > MAX_FILTERS:
        reason = f"conditions stay whole: they have {len(found)} parts, and up to {MAX_FILTERS} can be ordered"
        return Split(tuple(predicates), (reason,))
    return Split(tuple(found), tuple(splitter.notes))


@dataclass(frozen=True)
class _KnownPart:
    """A part of a condition, not negated, with all that Spark's analysis tells of it."""

    text: str
    facts: Facts
    udf: Predicate | None  # if the part is a UDF that is taken over
    note: str | None  # why a UDF stays in Spark

    @property
    def holds_place(self) -> bool:
        """Whether the part has to stay where it is written."""
        return not self.facts.deterministic if self.udf is None else self.udf.holds_place


def _known(condition: Condition, analysed: AnalysedCondition, frame: DataFrame) -> _KnownPart:
    is_classic = analysed.tree is not None
    text = condition
    if not isinstance(condition, str):
        text = sql_name(analysed.sql or "") if is_classic else client_sql(condition._expr)  # noqa: SLF001 - no public way
    try:
        udf = (
            udf_predicate(text, analysed, frame.sparkSession)
            if is_classic
            else connect_udf_predicate(text, condition, frame)
        )
    except StaysInSparkError as error:
        return _KnownPart(text, analysed.facts, None, f"{text} stays in Spark: {error}")
    return _KnownPart(text, analysed.facts, udf, None)


class _Splitter:
    """Makes predicates of the structure of conditions."""

    def __init__(self, parts: Mapping[int, _KnownPart]) -> None:
        self._parts = parts  # by the identity of the parts in the structure, which live as long as this
        self.notes = [part.note for part in parts.values() if part.note is not None]

    def repeats(self, logic: Part[Condition] | Group[Condition]) -> bool:
        """Whether a part that may raise occurs twice, as in x AND NOT x: Spark simplifies it, and its error is gone."""
        known = [self._parts[id(part)] for part in logic.parts]
        raising = [
            (SPACING.sub("", part.text).lower(), "" if part.udf is None else str(part.udf.details))
            for part in known
            if not part.facts.safe
        ]
        return len(set(raising)) < len(raising)

    def predicate(self, logic: Part[Condition] | Group[Condition]) -> Predicate:
        """The predicate of a part or a group."""
        if isinstance(logic, Part):
            udf = self._parts[id(logic)].udf
            if udf is None:
                return self._whole(logic)
            return not_(udf, name=self._name(logic)) if logic.negated else udf
        if not logic.is_disjunction:
            return conjunction_of(*map(self.predicate, logic.members), name=self._name(logic))
        facts = self._facts(logic)
        if self._has_udf(logic):
            if not any(self._parts[id(part)].holds_place for part in logic.parts):
                return any_of(*map(self._member, logic.members), name=self._name(logic))
            self.notes.append(f"{self._name(logic)} stays in Spark: a part of it keeps its place")
        elif facts.safe and facts.deterministic and not facts.cheap:
            return any_of(*map(self._whole, logic.members), name=self._name(logic))
        return self._whole(logic)

    def _member(self, logic: Part[Condition] | Group[Condition]) -> Predicate:
        """A member of a disjunction with UDFs; if it has no UDF itself, it is one condition in Spark."""
        return self.predicate(logic) if self._has_udf(logic) else self._whole(logic)

    def _has_udf(self, logic: Part[Condition] | Group[Condition]) -> bool:
        return any(self._parts[id(part)].udf is not None for part in logic.parts)

    def _whole(self, logic: Part[Condition] | Group[Condition]) -> ExpressionPredicate:
        """A part or a whole group as one condition in Spark."""
        condition = logic.condition
        if logic.negated:
            condition = f"NOT ({condition})" if isinstance(condition, str) else ~condition
        return ExpressionPredicate(name=self._name(logic), condition=condition, facts=self._facts(logic))

    def _facts(self, logic: Part[Condition] | Group[Condition]) -> Facts:
        facts = [self._parts[id(part)].facts for part in logic.parts]
        return facts[0] if isinstance(logic, Part) else Facts.of_group(facts)

    def _name(self, logic: Part[Condition] | Group[Condition]) -> str:
        """The SQL text of a part or of a group."""
        if isinstance(logic, Group):
            names = [
                f"({self._name(member)})" if isinstance(member, Group) else self._name(member)
                for member in logic.members
            ]
            return (" OR " if logic.is_disjunction else " AND ").join(names)
        text = self._parts[id(logic)].text
        return f"NOT ({text})" if logic.negated else text


def _replaced(predicate: Predicate, replacements: Mapping[int, Predicate]) -> Predicate:
    """A predicate in which some parts are replaced; the very same object where none is."""
    if id(predicate) in replacements:
        return replacements[id(predicate)]
    members = [_replaced(member, replacements) for member in predicate.members]
    if all(new is old for new, old in zip(members, predicate.members, strict=True)):
        return predicate
    return predicate.with_members(members)


def _condition(expression: ExpressionPredicate) -> str | Column:
    condition: Any = expression.condition
    return condition  # type: ignore[no-any-return]  # text or a Column: only `tw.regex` has a function, and stays whole


def _as_column(condition: Condition) -> Column:
    from pyspark.sql import functions as f

    return f.expr(condition) if isinstance(condition, str) else condition
