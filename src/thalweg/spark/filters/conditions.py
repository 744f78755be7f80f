"""Conditions that Spark evaluates, in forms that keep their errors for the rows that no other predicate rejects.

Spark keeps the written order of a conjunction. In another order a condition may raise on rows that used to be rejected
before they reached it. Where it might, it is *attempted*: evaluated in a form that cannot raise and tells where the
condition itself would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from thalweg.spark.analysis.catalyst import Facts
from thalweg.spark.filters.worker.judges import FALSE, TRUE, UNKNOWN
from thalweg.spark.frames import schema_of
from thalweg.spark.identifiers import backticked, quoted
from thalweg.spark.operators import (
    all_of,
    both,
    cast,
    column_named,
    either,
    equal,
    expression,
    if_null,
    is_not_null,
    is_null,
    literal,
    negation,
    never,
    product_or_null,
    when,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FIXED_WIDTH = {"boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp"}
UNHASHABLE = ("map<", "variant")  # types that Spark's hash() does not take, wherever they are in a type


@dataclass(frozen=True, eq=False)
class SparkCondition:
    """A condition in Spark. Only `strict` may raise; `opaque` makes the Column for `attempt`, None if it cannot raise.

    Columns are made only where they are needed: every step of a Column is a call of the JVM.
    """

    strict: Column
    facts: Facts
    opaque: Callable[[], Column] | None = None

    @property
    def members(self) -> tuple[SparkCondition, ...]:
        """The members of a disjunction, in the order in which Spark evaluates them."""
        return ()

    @property
    def parts(self) -> tuple[SparkCondition, ...]:
        """The conditions that are tried one by one: the members of a disjunction, or the condition itself."""
        return self.members or (self,)

    @property
    def may_raise(self) -> bool:
        """Whether the condition raises on some row, as far as is known."""
        return self.opaque is not None

    @cached_property
    def attempt(self) -> Column | None:
        """The outcome as a code, NULL where the condition raises; None where it cannot."""
        return None if self.opaque is None else attempt(self.strict, self.opaque())

    @cached_property
    def true(self) -> Column:
        """Whether the condition is true."""
        return self.strict if self.attempt is None else all_of([*self._not_null, equal(self.attempt, TRUE)])

    @cached_property
    def false(self) -> Column:
        """Whether the condition is false, hence not NULL."""
        return negation(self.strict) if self.attempt is None else equal(self.attempt, FALSE)

    @cached_property
    def raised(self) -> Column | None:
        """Whether the condition raises."""
        return None if self.attempt is None else is_null(self.attempt)

    @cached_property
    def keeps(self) -> Column:
        """True where the condition is, and where it raises: another predicate may still reject the row."""
        if self.attempt is None:
            return self.strict
        return all_of([*self._not_null, equal(if_null(self.attempt, literal(TRUE)), TRUE)])

    @property
    def _not_null(self) -> list[Column]:
        """The conditions that Spark would infer from the condition as written, and hand to the data's source."""
        return [is_not_null(column_named(quoted(name))) for name in self.facts.not_null]

    @property
    def code(self) -> Column:
        """The outcome as a number for a worker: FALSE, TRUE or UNKNOWN, and NULL where the condition raises."""
        from pyspark.sql import functions as f

        known = f.when(self.true, literal(TRUE)).when(self.false, literal(FALSE))
        if self.raised is None:
            return known.otherwise(literal(UNKNOWN))
        return known.when(negation(self.raised), literal(UNKNOWN))

    def timed(self, opaque: Column) -> Column:
        """The outcome as a number, in the form that a sample times: attempted only where the condition may raise.

        To attempt a condition takes as long as a regular expression. A condition that cannot raise runs without that,
        and would look expensive beside Python.
        """
        number = _number(self.strict, opaque)
        return number if self.facts.safe else _attempted(number)

    def with_members(self, order: Sequence[int]) -> SparkCondition:
        """The same condition, with the members of a disjunction in another order."""
        return self


@dataclass(frozen=True, eq=False)
class Negation(SparkCondition):
    """True where a condition is false; NULL and errors stay."""

    negated: SparkCondition | None = None

    @classmethod
    def of(cls, negated: SparkCondition) -> Negation:
        """The negation of a condition."""
        return cls(negation(negated.strict), negated.facts, negated=negated)

    @property
    def may_raise(self) -> bool:  # noqa: D102 - as above
        return self._negated.may_raise

    @cached_property
    def true(self) -> Column:  # noqa: D102
        return self._negated.false

    @cached_property
    def false(self) -> Column:  # noqa: D102
        return self._negated.true

    @cached_property
    def raised(self) -> Column | None:  # noqa: D102
        return self._negated.raised

    @cached_property
    def keeps(self) -> Column:  # noqa: D102
        return _true_or_raised(self)

    @property
    def _negated(self) -> SparkCondition:
        assert self.negated is not None  # noqa: S101 - a field needs a default behind the base's fields with defaults
        return self.negated


@dataclass(frozen=True, eq=False)
class Disjunction(SparkCondition):
    """True where a member is; Spark evaluates the members in this order."""

    alternatives: tuple[SparkCondition, ...] = ()

    @classmethod
    def of(cls, members: Sequence[SparkCondition]) -> Disjunction:
        """The disjunction of conditions."""
        facts = Facts.of_group([member.facts for member in members])
        # A member that is true stands before all that may raise: the error of another member does not matter then.
        raising = any(member.may_raise for member in members)
        first = [member.true for member in members] if raising else []
        return cls(reduce(either, [*first, *(member.strict for member in members)]), facts, alternatives=tuple(members))

    @property
    def may_raise(self) -> bool:  # noqa: D102 - as above
        return any(member.may_raise for member in self.members)

    @property
    def members(self) -> tuple[SparkCondition, ...]:  # noqa: D102
        return self.alternatives

    @cached_property
    def true(self) -> Column:  # noqa: D102
        return reduce(either, (member.true for member in self.members))

    @cached_property
    def false(self) -> Column:  # noqa: D102
        return reduce(both, (member.false for member in self.members))

    @cached_property
    def raised(self) -> Column | None:  # noqa: D102
        raised = [member.raised for member in self.members if member.raised is not None]
        return both(negation(_surely(self.true)), reduce(either, raised)) if raised else None

    @cached_property
    def keeps(self) -> Column:  # noqa: D102
        return _true_or_raised(self)

    def with_members(self, order: Sequence[int]) -> SparkCondition:  # noqa: D102
        return Disjunction.of([self.members[place] for place in order])


def condition_of(written: Column, facts: Facts, opaque: Callable[[Facts], Column]) -> SparkCondition:
    """A condition as it is written, attempted where it may raise and may be moved."""
    if facts.safe or not facts.deterministic:
        return SparkCondition(written, facts)
    return SparkCondition(written, facts, lambda: opaque(facts))


def attempt(condition: Column, opaque: Column) -> Column:
    """The outcome as a number, FALSE, TRUE or UNKNOWN, and NULL where the expression raises.

    Spark has no general `try(...)`, but `try_multiply` of an interval catches every error of its arguments. A common
    part of two expressions, though, Spark evaluates once and ahead of both, where no error is caught; only expressions
    in a branch it leaves there. So the condition stands in a branch that is always taken, which Spark cannot know.
    """
    return _attempted(_number(condition, opaque))


def _number(condition: Column, opaque: Column) -> Column:
    """The outcome as a number, in a branch that Spark leaves where it is."""
    return when(opaque, if_null(cast(condition, "int"), literal(UNKNOWN)), literal(FALSE))


def _attempted(number: Column) -> Column:
    return cast(product_or_null(expression("interval '1' second"), number), "int")


def opaque_truth(frame: DataFrame, columns: Sequence[str] | None = None) -> Column:
    """A condition that is always true, which Spark's optimizer cannot know.

    It reads a column that the condition reads anyway, if these are known: so a condition on partition columns alone
    reads no other column, and Spark can still prune by it.
    """
    fields = schema_of(frame).fields
    spelt_alike = [each.name.lower() for each in fields]
    usable = [
        each
        for each in fields
        if spelt_alike.count(each.name.lower()) == 1
        and not any(mark in each.dataType.simpleString() for mark in UNHASHABLE)
        and (not columns or each.name in columns)
    ]
    best = min(usable, key=lambda each: each.dataType.typeName() not in FIXED_WIDTH, default=None)
    if best is None:
        return expression("rand() >= 0") if not columns else opaque_truth(frame)
    return expression(f"(hash({backticked(best.name)}) & 1) < 2")  # the last bit is 0 or 1


def _true_or_raised(condition: SparkCondition) -> Column:
    return condition.true if condition.raised is None else either(_surely(condition.true), condition.raised)


def _surely(condition: Column) -> Column:
    """Whether a condition is true: false where it is NULL."""
    return if_null(condition, never())
