"""Splits the conditions of a query into predicates that can be ordered: `split(frame, predicates)`.

A conjunction becomes its parts. A disjunction becomes a `tw.any_of` of its parts if these are worth an order, and stays
a whole otherwise: Spark evaluates it as it is written. So does a group with a part that is not deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.ordering.precedence import MAX_FILTERS
from thalweg.spark.filters.catalyst import AnalysedCondition, Facts, analyse
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import any_of, conjunction_of, conjuncts
from thalweg.spark.filters.predicates.expression import ExpressionPredicate
from thalweg.spark.filters.split.columns import take_apart
from thalweg.spark.filters.split.logic import Group, Part, logic_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Condition = Any  # text in Spark SQL, or a Column
CAST_OF_NUMBER = re.compile(r"CAST\((-?[0-9.]+)(?:BD|D|L|S|Y)? AS [A-Z]+(?:\([0-9,]+\))?\)")  # Spark's, not the user's


@dataclass(frozen=True)
class Split:
    """The predicates of a query after their conditions were split, and notes for the user."""

    predicates: tuple[Predicate, ...]
    notes: tuple[str, ...] = ()


def split(frame: DataFrame, predicates: Sequence[Predicate]) -> Split:
    """Split the conditions among the predicates, and in them, that may be split."""
    from pyspark.errors import AnalysisException

    written = [
        part
        for predicate in predicates
        for part in predicate.parts
        if isinstance(part, ExpressionPredicate) and not part.whole
    ]
    logics = [logic_of(_condition(expression), take_apart) for expression in written]
    parts = [part for logic in logics for part in logic.parts]
    try:
        analysed = analyse(frame, [_as_column(part.condition) for part in parts])
    except AnalysisException:
        return Split(tuple(predicates))  # Spark will say of the whole conditions which of them it cannot analyse
    splitter = _Splitter({id(part): found for part, found in zip(parts, analysed, strict=True)})
    replacements = {
        id(expression): splitter.predicate(logic) for expression, logic in zip(written, logics, strict=True)
    }
    found = [member for predicate in predicates for member in conjuncts(_replaced(predicate, replacements))]
    if len(found) > MAX_FILTERS:
        reason = f"conditions stay whole: they have {len(found)} parts, and up to {MAX_FILTERS} can be ordered"
        return Split(tuple(predicates), (reason,))
    return Split(tuple(found))


class _Splitter:
    """Makes predicates of the structure of conditions, given Spark's analysis of each part."""

    def __init__(self, analysed: Mapping[int, AnalysedCondition]) -> None:
        self._analysed = analysed  # by the identity of the parts, which live as long as this

    def predicate(self, logic: Part[Condition] | Group[Condition]) -> Predicate:
        if isinstance(logic, Part):
            return self._whole(logic)
        if not logic.is_disjunction:
            return conjunction_of(*map(self.predicate, logic.members))
        facts = self._facts(logic)
        if facts.cheap or not facts.safe or not facts.deterministic:
            return self._whole(logic)
        return any_of(*map(self._whole, logic.members), name=self._name(logic))

    def _whole(self, logic: Part[Condition] | Group[Condition]) -> ExpressionPredicate:
        """A part or a whole group as one condition in Spark."""
        condition = logic.condition
        if logic.negated:
            condition = f"NOT ({condition})" if isinstance(condition, str) else ~condition
        return ExpressionPredicate(name=self._name(logic), condition=condition, facts=self._facts(logic))

    def _facts(self, logic: Part[Condition] | Group[Condition]) -> Facts:
        facts = [self._analysed[id(part)].facts for part in logic.parts]
        return facts[0] if isinstance(logic, Part) else Facts.of_group(facts)

    def _name(self, logic: Part[Condition] | Group[Condition]) -> str:
        """The SQL text of a part or of a group."""
        if isinstance(logic, Group):
            names = [
                f"({self._name(member)})" if isinstance(member, Group) else self._name(member)
                for member in logic.members
            ]
            return (" OR " if logic.is_disjunction else " AND ").join(names)
        text = logic.condition if isinstance(logic.condition, str) else self._sql(logic)
        return f"NOT ({text})" if logic.negated else text

    def _sql(self, part: Part[Condition]) -> str:
        sql = self._analysed[id(part)].sql
        if sql is None:
            return str(part.condition).removeprefix("Column<'").removesuffix("'>")
        return without_parentheses(CAST_OF_NUMBER.sub(r"\1", sql))


def without_parentheses(text: str) -> str:
    """A text without the parentheses around all of it.

    >>> without_parentheses("(a > 1)"), without_parentheses("(a) = (b)")
    ('a > 1', '(a) = (b)')
    """
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 and text.startswith("(") else text
    return text


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
