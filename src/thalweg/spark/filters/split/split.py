"""Splits the conditions of a query into predicates that can be ordered: `split(frame, predicates)`.

A conjunction becomes its parts. A disjunction becomes a `tw.any_of` of its parts if these are worth an order, and stays
a whole otherwise: Spark evaluates it as it is written. So does a group with a part that is not deterministic, and a
condition of which Spark leaves out a part that may raise (decision 0300). Python UDFs become predicates that run with
the user's other Python predicates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from thalweg.ordering.precedence import MAX_FILTERS
from thalweg.spark.analysis.catalyst import CatalystAnalysis, Facts, analyse, facts_of
from thalweg.spark.analysis.harmless import Node
from thalweg.spark.analysis.trees import nodes_in, runs_python
from thalweg.spark.filters.predicates.base import Predicate
from thalweg.spark.filters.predicates.compound import any_of, conjunction_of, conjuncts, not_
from thalweg.spark.filters.predicates.expression import ExpressionPredicate
from thalweg.spark.filters.predicates.udf import UdfPredicate
from thalweg.spark.filters.split.connect_udfs import connect_udf_predicate
from thalweg.spark.filters.split.logic import Group, Part, logic_of
from thalweg.spark.filters.split.pieces import NoColumnError, Piece, take_apart
from thalweg.spark.filters.split.taken_over import StaysInSparkError
from thalweg.spark.filters.split.udfs import udf_predicate
from thalweg.spark.frames import is_streaming

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Logic = Part[Piece] | Group[Piece]
SPACING = re.compile(r"[\s()]")  # by which texts of the same expression may differ
COMPARISON = re.compile(r"[<>=!]+|is(?:not)?null$")
NULL = re.compile(r"(?<!\bIS )(?<!\bIS NOT )\bNULL\b", re.IGNORECASE)  # the constant, and no test for it
NUMBERED = {"AttributeReference": "exprId", "PythonUDF": "resultId"}  # Catalyst's expressions that have numbers


@dataclass(frozen=True)
class Split:
    """The predicates of a query after their conditions were split, and notes for the user."""

    predicates: tuple[Predicate, ...]
    notes: tuple[str, ...] = ()
    # The conditions that stay whole, by the identity of their predicates: as Columns, with the facts about them.
    conditions: Mapping[int, tuple[Column, Facts]] = field(default_factory=dict)
    analysis: CatalystAnalysis | None = None  # of all conditions, on a batch of a classic session


def split(frame: DataFrame, predicates: Sequence[Predicate]) -> Split:
    """Split the conditions among the predicates, and in them, that may be split.

    A condition that another predicate names in ``after=`` stays whole, so that it can be found.
    """
    from pyspark.errors import AnalysisException

    awaited = {other if isinstance(other, str) else other.name for predicate in predicates for other in predicate.after}
    expressions = [
        part for predicate in predicates for part in predicate.parts if isinstance(part, ExpressionPredicate)
    ]
    columns = {id(expression): expression.column(frame) for expression in expressions}
    try:
        pieces = _pieces(frame, expressions, columns)
        found = _split_once(frame, expressions, pieces, awaited)
    except (AnalysisException, NoColumnError):
        return Split(tuple(predicates))  # Spark will say of the whole conditions which of them it cannot analyse
    if expressions == list(predicates):
        _refuse_other_values(frame, columns, found.parts)
    numbered = {id(expression): part for expression, part in zip(expressions, found.parts, strict=True)}
    replacements = {number: part for number, part in numbered.items() if isinstance(part, Predicate)}
    split_up = [member for predicate in predicates for member in conjuncts(_replaced(predicate, replacements))]
    if len(split_up) > MAX_FILTERS:
        reason = f"conditions stay whole: they have {len(split_up)} parts, and up to {MAX_FILTERS} can be ordered"
        return Split(tuple(predicates), (reason,))
    whole = {number: (columns[number], part) for number, part in numbered.items() if isinstance(part, Facts)}
    return Split(tuple(split_up), found.notes, whole, _analysis_of(pieces))


@dataclass(frozen=True)
class _SplitExpressions:
    """The parts of expressions: for each of these a predicate, or the facts about an expression that stays whole."""

    parts: tuple[Predicate | Facts, ...]
    notes: tuple[str, ...]


def _split_once(
    frame: DataFrame, expressions: Sequence[ExpressionPredicate], pieces: Mapping[int, Piece], awaited: Collection[str]
) -> _SplitExpressions:
    """The parts of expressions, remembered with their analysis if they have an analysis."""
    stay_whole = [each.whole or each.name in awaited for each in expressions]

    def found() -> _SplitExpressions:
        logics = {
            id(each): logic_of(pieces[id(each)], take_apart)
            for each, is_whole in zip(expressions, stay_whole, strict=True)
            if not is_whole
        }
        whole = [piece for number, piece in pieces.items() if number not in logics]
        facts = _facts(frame, [*(part.condition for logic in logics.values() for part in logic.parts), *whole])
        splitter = _Splitter(frame, facts, list(logics.values()))
        parts = [
            splitter.outermost(logics[id(each)]) if id(each) in logics else facts[id(pieces[id(each)])]
            for each in expressions
        ]
        return _SplitExpressions(tuple(parts), tuple(splitter.notes))

    analysis = _analysis_of(pieces)
    if analysis is None:
        return found()
    # A Column is told by its analysis: its own text has another number in every call.
    texts = [each.condition if isinstance(each.condition, str) else None for each in expressions]
    return analysis.answers.once(("split", *texts, *stay_whole), found)


def _refuse_other_values(frame: DataFrame, columns: Mapping[int, Column], parts: Sequence[Predicate | Facts]) -> None:
    """Let Spark refuse a single condition that is no truth value; a conjunction of several makes one of it."""
    facts = [part.facts if isinstance(part, ExpressionPredicate) else part for part in parts]
    if len(facts) == 1 and isinstance(facts[0], Facts) and not facts[0].is_truth:
        (condition,) = columns.values()
        _ = frame.where(condition).select("*").schema  # of a filter, PySpark takes the schema of its input


def _analysis_of(pieces: Mapping[int, Piece]) -> CatalystAnalysis | None:
    """The analysis of all conditions, on a batch of a classic session."""
    return next((piece.analysed.analysis for piece in pieces.values() if piece.analysed and not piece.by_name), None)


def _pieces(
    frame: DataFrame, expressions: Sequence[ExpressionPredicate], columns: Mapping[int, Column]
) -> dict[int, Piece]:
    """The conditions of predicates, by the identity of these, and analysed in a classic session."""
    written = {
        id(each): each.condition if isinstance(each.condition, str) else columns[id(each)] for each in expressions
    }
    if not hasattr(frame, "_jdf"):
        return {number: Piece(condition, None) for number, condition in written.items()}
    analysed, by_name = analyse(frame, list(columns.values())), is_streaming(frame)
    return {
        number: Piece(condition, found, by_name)
        for (number, condition), found in zip(written.items(), analysed, strict=True)
    }


def _facts(frame: DataFrame, pieces: Sequence[Piece]) -> dict[int, Facts]:
    """The facts about conditions, by the identity of these."""
    asked = [piece for piece in pieces if piece.analysed is None]
    found = facts_of(frame, [piece.column() for piece in asked])
    return {id(piece): facts for piece, facts in zip(asked, found, strict=True)} | {
        id(piece): piece.analysed.facts for piece in pieces if piece.analysed is not None
    }


@dataclass(frozen=True)
class _KnownPart:
    """A part of a condition, not negated, with all that is known of it."""

    text: str
    facts: Facts
    udf: Predicate | None  # if the part is a UDF that is taken over
    note: str | None  # why a UDF stays in Spark

    @property
    def holds_place(self) -> bool:
        """Whether the part has to stay where it is written."""
        return not self.facts.deterministic if self.udf is None else self.udf.holds_place


def _known(piece: Piece, facts: Facts, frame: DataFrame) -> _KnownPart:
    text = piece.text
    if not facts.is_own:
        return _KnownPart(text, facts, None, None)
    try:
        udf = (
            connect_udf_predicate(text, piece.written, frame)
            if piece.analysed is None
            else udf_predicate(text, piece.analysed, frame.sparkSession, by_name=piece.by_name)
        )
    except StaysInSparkError as error:
        if piece.analysed is None:  # nobody here knows whether the function is deterministic
            facts = replace(facts, deterministic=False)
        return _KnownPart(text, facts, None, f"{text} stays in Spark: {error}")
    return _KnownPart(text, facts, udf, None)


class _Splitter:
    """Makes predicates of the structure of conditions."""

    def __init__(self, frame: DataFrame, facts: Mapping[int, Facts], logics: Sequence[Logic]) -> None:
        # By the identity of the parts in the structure, which live as long as this.
        self._parts = {
            id(part): _known(part.condition, facts[id(part.condition)], frame)
            for logic in logics
            for part in logic.parts
        }
        self.notes = [part.note for part in self._parts.values() if part.note is not None]

    def outermost(self, logic: Logic) -> Predicate:
        """The predicate of a whole condition, as it is written if it cannot be split."""
        reason = self._reason_to_stay_whole(logic)
        if reason is None:
            return self.predicate(logic)
        whole, written = self._whole(logic), logic.condition.written
        whole = replace(whole, name=written) if isinstance(written, str) and not logic.negated else whole
        self.notes.append(f"{whole.name} stays in Spark as a whole: {reason}")
        return whole

    def _reason_to_stay_whole(self, logic: Logic) -> str | None:
        if self._repeats(logic):
            return "a part that may raise an error occurs twice, and Spark may simplify that"
        if self._leaves_out(logic):
            return "Spark simplifies it, so that a part that may raise an error is not always evaluated"
        if not all(self._parts[id(part)].facts.is_truth for part in logic.parts):
            return "a part is no truth value by itself"
        if not all(self._parts[id(part)].facts.is_own for part in logic.parts):
            return "a part reads a column that the DataFrame no longer has"
        return None

    def _repeats(self, logic: Logic) -> bool:
        """Whether a part that may raise occurs twice, as in x AND NOT x: Spark simplifies it, and its error is gone.

        To Spark x > 1 is NOT x <= 1.
        """
        known = [self._parts[id(part)] for part in logic.parts]
        raising = [
            (_sides_of(part.text), *(() if part.udf is None else _functions_of(part.udf)))
            for part in known
            if not part.facts.safe
        ]
        return len(set(raising)) < len(raising)

    def _leaves_out(self, logic: Logic) -> bool:
        """Whether Spark may leave out a part that may raise, as in a OR (x AND NULL): a filter takes NULL for FALSE.

        In a plain conjunction that does not matter, as the other parts reject the row.
        """
        known = [self._parts[id(part)] for part in logic.parts]
        has_constant = any(part.udf is not None and _may_be_constant(part.facts.tree, part.text) for part in known)
        if not has_constant and not self._raises_in_a_disjunction(logic):
            return False
        analysed = logic.condition.analysed
        if analysed is None:  # with Connect a client knows no more than the texts
            different = {_sides_of(part.text) for part in known}
            return has_constant or len(different) < len(known) or any(NULL.search(part.text) for part in known)
        simplified = analysed.analysis.catalyst.simplified(analysed.tree, negated=logic.negated)
        return simplified is None or bool(_read_in(analysed.tree) - _read_in(simplified))

    def _raises_in_a_disjunction(self, logic: Logic) -> bool:
        """Whether a part that may raise stands in a disjunction."""
        if isinstance(logic, Part):
            return False
        if logic.is_disjunction:
            return not all(self._parts[id(part)].facts.safe for part in logic.parts)
        return any(map(self._raises_in_a_disjunction, logic.members))

    def predicate(self, logic: Logic) -> Predicate:
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

    def _member(self, logic: Logic) -> Predicate:
        """A member of a disjunction with UDFs; if it has no UDF itself, it is one condition in Spark."""
        return self.predicate(logic) if self._has_udf(logic) else self._whole(logic)

    def _has_udf(self, logic: Logic) -> bool:
        return any(self._parts[id(part)].udf is not None for part in logic.parts)

    def _whole(self, logic: Logic) -> ExpressionPredicate:
        """A part or a whole group as one condition in Spark."""
        name, facts = self._name(logic), self._facts(logic)
        text = logic.condition.truth_text
        condition = name if text is None else f"NOT ({text})" if logic.negated else text
        column = logic.condition.column(negated=logic.negated)
        return ExpressionPredicate(name=name, condition=condition, facts=facts, ready=column)

    def _facts(self, logic: Logic) -> Facts:
        facts = [self._parts[id(part)].facts for part in logic.parts]
        if isinstance(logic, Part):
            return facts[0]
        analysed = logic.condition.analysed
        return Facts.of_group(facts, None if analysed is None else analysed.tree)

    def _name(self, logic: Logic) -> str:
        """The SQL text of a part or of a group."""
        if isinstance(logic, Group):
            names = [
                f"({self._name(member)})" if isinstance(member, Group) else self._name(member)
                for member in logic.members
            ]
            return (" OR " if logic.is_disjunction else " AND ").join(names)
        text = self._parts[id(logic)].text
        return f"NOT ({text})" if logic.negated else text


def _sides_of(text: str) -> tuple[str, ...]:
    """A part by the sides of its comparisons, whatever the comparisons are."""
    return tuple(sorted(COMPARISON.split(SPACING.sub("", text).lower())))


def _may_be_constant(tree: Node | None, text: str) -> bool:
    """Whether Spark may know the value of a comparison without the UDF in it: with NULL, or with too large a number."""
    if tree is None:
        return NULL.search(text) is not None
    is_cast = any(node.kind == "Cast" and runs_python(node) for node in nodes_in(tree))
    return is_cast or any(node.kind == "Literal" and node.fields["value"] is None for node in nodes_in(tree))


def _read_in(tree: Node) -> Counter[tuple[str, int]]:
    """How often each column and each UDF occurs in a condition, by Catalyst's numbers."""
    numbered = (node for node in nodes_in(tree) if node.kind in NUMBERED)
    return Counter((node.kind, node.fields[NUMBERED[node.kind]]["id"]) for node in numbered)


def _functions_of(predicate: Predicate) -> list[str]:
    """Digests of the UDFs in a predicate: functions may have the same name and code, and other values around them."""
    return [part.function_digest for part in predicate.parts if isinstance(part, UdfPredicate)]


def _replaced(predicate: Predicate, replacements: Mapping[int, Predicate]) -> Predicate:
    """A predicate in which some parts are replaced; the very same object where none is."""
    if id(predicate) in replacements:
        return replacements[id(predicate)]
    members = [_replaced(member, replacements) for member in predicate.members]
    if all(new is old for new, old in zip(members, predicate.members, strict=True)):
        return predicate
    return predicate.with_members(members)
