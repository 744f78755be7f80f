"""Join conditions that are no equality of two inputs, such as `R1.a < R2.b + 5`, for whole columns of candidates.

Parsed by sqlglot, evaluated by Arrow, with the results that Spark has: NULL as in SQL; NaN is above all numbers and
equal to itself. A condition that Arrow cannot evaluate exactly as Spark does is refused with `NotExactError`, and is
left to Spark. This module knows no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.durations import UNITS
from thalweg.spark.joins.kinds import (
    WHOLE,
    ColumnKind,
    Family,
    NotExactError,
    SparkRules,
    Values,
    arithmetic,
    as_kind,
    comparable,
    equal,
    kind_of,
    less,
    null_safe_equal,
    unary,
)

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Column = tuple[str, str]  # the name of an input, and of a column
Evaluate = Callable[[Mapping[Column, pa.Array]], Values]
INTERVAL_PART = re.compile(r"\s*([-+]?\d+)\s+([a-z]+)", re.IGNORECASE)
GREATEST_INT, GREATEST_BIGINT = 2**31 - 1, 2**63 - 1
MOST_DIGITS = 19  # of a whole number that fits
BOOLEAN = ColumnKind(Family.BOOLEAN)


@dataclass(frozen=True)
class CandidateTest:
    """A condition, ready to be sent to workers: its text, the attributes it takes, in this order, and their types.

    The types are those that the user knows; columns may come as they are stored, with times as int64 microseconds.

    >>> test = CandidateTest("A.x < B.y - 1", (("A", "x"), ("B", "y")), (pa.int64(), pa.int64()))
    >>> test(pa.array([1, 1, None]), pa.array([5, 2, 9])).to_pylist()
    [True, False, None]
    """

    text: str
    columns: tuple[Column, ...]
    types: tuple[pa.DataType, ...]
    rules: SparkRules = field(default_factory=SparkRules)

    def __call__(self, *columns: pa.Array) -> pa.BooleanArray:
        """Whether the condition holds for each candidate; NULL where that is not known."""
        kinds = map(kind_of, self.types)
        given = {name: as_kind(column, kind) for name, column, kind in zip(self.columns, columns, kinds, strict=True)}
        found = self._evaluate(given)
        return pa.repeat(found, len(columns[0])) if isinstance(found, pa.Scalar) else found

    def check(self) -> None:
        """Refuse a condition that does not fit the types; `NotExactError` if Arrow cannot evaluate it exactly."""
        _ = self._evaluate

    @cached_property
    def _evaluate(self) -> Evaluate:
        import sqlglot

        from thalweg.sql.dialect import VerbatimSpark

        compiler = Compiler(dict(zip(self.columns, map(kind_of, self.types), strict=True)), self.rules)
        kind, evaluate = compiler.compile(sqlglot.parse_one(self.text, dialect=VerbatimSpark))
        if kind.family != Family.BOOLEAN:
            raise NotExactError
        return evaluate

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # not the compiled function


@dataclass(frozen=True)
class Compiler:
    """Makes functions of expressions, from the kinds of their columns."""

    kinds: Mapping[Column, ColumnKind]
    rules: SparkRules

    def compile(self, expression: Expr) -> tuple[ColumnKind, Evaluate]:
        """The kind of an expression's values, and a function that computes them."""
        from sqlglot import expressions as e

        expression = expression.unnest()
        if isinstance(expression, e.Column):
            attribute = (expression.table, expression.name)
            return self.kinds[attribute], lambda columns: columns[attribute]
        if isinstance(expression, e.Between):
            low = e.GTE(this=expression.this, expression=expression.args["low"])
            high = e.LTE(this=expression.this, expression=expression.args["high"])
            return self.compile(e.And(this=low, expression=high))
        if isinstance(expression, e.In):
            return self._compile_in(expression)
        for compile_part in (self._compile_comparison, self._compile_logic, self._compile_arithmetic):
            found = compile_part(expression)
            if found is not None:
                return found
        kind, value = _literal(expression)
        return kind, lambda _columns: value

    def _compile_in(self, expression: Expr) -> tuple[ColumnKind, Evaluate]:
        """IN casts all its values to one type, which is the same as pair by pair only if they are of one family."""
        from sqlglot import expressions as e

        values = expression.expressions
        families = {self.compile(value)[0].family for value in (expression.this, *values)}
        if not values or len(families) > 1:
            raise NotExactError
        return self.compile(e.or_(*(e.EQ(this=expression.this, expression=value) for value in values)))

    def _compile_comparison(self, expression: Expr) -> tuple[ColumnKind, Evaluate] | None:
        from sqlglot import expressions as e

        comparisons: dict[type[Any], Callable[[Values, Values], Values]] = {
            e.EQ: equal,
            e.NullSafeEQ: null_safe_equal,
            e.NEQ: lambda first, second: pc.invert(equal(first, second)),
            e.LT: less,
            e.GT: lambda first, second: less(second, first),
            e.LTE: lambda first, second: pc.invert(less(second, first)),
            e.GTE: lambda first, second: pc.invert(less(first, second)),
        }
        compare = comparisons.get(type(expression))
        if compare is None:
            return None
        (left, first), (right, second) = self.compile(expression.this), self.compile(expression.expression)
        _check_texts(expression, left, right)
        cast = comparable(left, right, self.rules)
        return BOOLEAN, lambda columns: compare(cast(first(columns)), cast(second(columns)))

    def _compile_logic(self, expression: Expr) -> tuple[ColumnKind, Evaluate] | None:
        from sqlglot import expressions as e

        functions: dict[type[Any], Callable[..., Values]] = {e.And: pc.and_kleene, e.Or: pc.or_kleene, e.Not: pc.invert}
        if isinstance(expression, e.Is) and isinstance(expression.expression, e.Null):
            _, value = self.compile(expression.this)
            return BOOLEAN, lambda columns: pc.is_null(value(columns))
        function = functions.get(type(expression))
        if function is None:
            return None
        parts = [expression.this] if isinstance(expression, e.Not) else [expression.this, expression.expression]
        operands = [self.compile(part) for part in parts]
        if any(kind.family != Family.BOOLEAN for kind, _ in operands):
            raise NotExactError
        return BOOLEAN, lambda columns: function(*(operand(columns) for _, operand in operands))

    def _compile_arithmetic(self, expression: Expr) -> tuple[ColumnKind, Evaluate] | None:
        from sqlglot import expressions as e

        if isinstance(expression, e.Neg) or (isinstance(expression, e.Anonymous) and expression.name.lower() == "abs"):
            is_negative = isinstance(expression, e.Neg)
            (part,) = [expression.this] if is_negative else expression.expressions
            kind, operand = self.compile(part)
            found, apply = unary("negate" if is_negative else "abs", kind, self.rules)
            return found, lambda columns: apply(operand(columns))
        operators: dict[type[Any], str] = {e.Add: "add", e.Sub: "subtract", e.Mul: "multiply"}
        operator = operators.get(type(expression))
        if operator is None:
            return None
        (left, first), (right, second) = self.compile(expression.this), self.compile(expression.expression)
        kind, compute = arithmetic(operator, left, right, self.rules)
        return kind, lambda columns: compute(first(columns), second(columns))


def _check_texts(expression: Expr, left: ColumnKind, right: ColumnKind) -> None:
    """Refuse a comparison of a column of text with another type: Spark would cast each text, and fail on some."""
    from thalweg.sql.dialect import readable

    sides = ((left, right, expression.this), (right, left, expression.expression))
    for text, other, side in sides:
        if text.family == Family.TEXT and not text.is_literal and other.family != Family.TEXT:
            target = {Family.WHOLE: "BIGINT", Family.DECIMAL: "DECIMAL(38, 10)"}.get(other.family, other.family.upper())
            raise ValueError(
                f"{readable(expression)!r} compares text with a {other.family}; say how: "
                f"try_cast({readable(side)} AS {target.split(' WITH')[0]}) is NULL where it cannot be"
            )


def _literal(expression: Expr) -> tuple[ColumnKind, pa.Scalar]:
    """A literal, in the type that Spark gives it."""
    from sqlglot import expressions as e

    if isinstance(expression, e.Boolean):
        return BOOLEAN, pa.scalar(bool(expression.this))
    if isinstance(expression, e.Interval):
        microseconds = interval_microseconds(expression)
        is_short = abs(microseconds) < UNITS["day"]
        kind = ColumnKind(Family.DURATION, WHOLE.precision, is_literal=True, is_short=is_short)
        return kind, pa.scalar(microseconds, pa.int64())
    if isinstance(expression, e.Cast) and isinstance(expression.this, e.Literal):
        return _typed_literal(expression)
    if not isinstance(expression, e.Literal):
        raise NotExactError
    if expression.is_string:
        return ColumnKind(Family.TEXT, is_literal=True), pa.scalar(expression.name)
    return _number(expression.name)


def _number(text: str) -> tuple[ColumnKind, pa.Scalar]:
    """A number: whole, a double if it has an exponent, otherwise a decimal with just its digits."""
    if text.isdecimal() and len(text.lstrip("0")) <= MOST_DIGITS and int(text) <= GREATEST_BIGINT:
        digits = 10 if int(text) <= GREATEST_INT else 20
        return ColumnKind(Family.WHOLE, WHOLE.precision, 0, digits, is_literal=True), pa.scalar(int(text), pa.int64())
    if text[-1] in "eE+-":  # sqlglot takes a number without its exponent for a number
        raise NotExactError
    if "e" in text.lower():
        return ColumnKind(Family.DOUBLE, is_literal=True), pa.scalar(float(text))
    value = Decimal(text)
    scale = max(-int(value.as_tuple().exponent), 0)
    digits = max(len(value.as_tuple().digits), scale)
    if digits > 38:  # noqa: PLR2004 - Spark's most
        raise NotExactError
    return ColumnKind(Family.DECIMAL, digits, scale, digits, is_literal=True), pa.scalar(
        value, pa.decimal256(digits, scale)
    )


def _typed_literal(expression: Expr) -> tuple[ColumnKind, pa.Scalar]:
    """A literal with its type: 1.5D, 7L, DATE'2024-01-01'."""
    from sqlglot import expressions as e

    text, target = expression.this.name, expression.args["to"].this
    if not expression.this.is_string and target == e.DataType.Type.DOUBLE:
        return ColumnKind(Family.DOUBLE, is_literal=True), pa.scalar(float(text))
    if not expression.this.is_string and target == e.DataType.Type.BIGINT and text.isdecimal():
        kind, value = _number(text)
        return ColumnKind(kind.family, kind.digits, 0, 20, is_literal=True), value
    if expression.this.is_string and target == e.DataType.Type.DATE and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            return ColumnKind(Family.DATE, is_literal=True), pa.scalar(date.fromisoformat(text), pa.date32())
        except ValueError:
            raise NotExactError from None
    raise NotExactError


def interval_microseconds(expression: Expr) -> int:
    """The microseconds of an interval of fixed length, such as INTERVAL '1 day 2 hours' or INTERVAL 5 MINUTES."""
    unit = str(expression.args.get("unit") or "")
    text = f"{expression.this.name} {unit}" if unit and expression.this is not None else expression.this.name
    parts, place = 0, 0
    while match := INTERVAL_PART.match(text, place):
        name = match[2].lower().removesuffix("s")
        if name not in UNITS:
            raise NotExactError
        parts += int(match[1]) * UNITS[name]
        place = match.end()
    if not place or text[place:].strip():
        raise NotExactError
    return parts
