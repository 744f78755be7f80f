"""The values that conditions on candidates compute with: which kinds Arrow handles exactly as Spark does, and how.

Spark compares and adds values of different types after it has cast them: a bigint and a double as doubles, a bigint and
a decimal as decimals. Kernels of Arrow do the same here, or there is `NotExactError`, and Spark has to evaluate the
condition. Nothing raises in a worker: where whole numbers overflow, which Spark refuses, they go on as wider decimals.
This module knows no Spark and no expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TIME = pa.timestamp("us")
WHOLE = pa.decimal256(19, 0)  # any bigint, in a type whose sums and products are wider
MOST_DIGITS = 76  # of Arrow's widest decimal
MOST_SPARK_DIGITS = 38
SPARK_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}  # of the decimals that integers become

Values = Any  # an array or a scalar of Arrow


class NotExactError(Exception):
    """Arrow cannot compute this exactly as Spark does."""


class Family(StrEnum):
    """Kinds of values, in the words of error messages."""

    BOOLEAN = "boolean"
    WHOLE = "whole number"  # int64, or decimal256 after an overflow
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"  # decimal256
    TEXT = "text"
    BINARY = "binary"
    DATE = "date"
    TIME = "timestamp"  # these three are whole microseconds
    LOCAL_TIME = "timestamp without time zone"
    DURATION = "interval"


WHOLE_FAMILIES = {Family.WHOLE, Family.TIME, Family.LOCAL_TIME, Family.DURATION}
NUMBERS = {Family.WHOLE, Family.FLOAT, Family.DOUBLE, Family.DECIMAL}


@dataclass(frozen=True)
class ColumnKind:
    """The kind of the values of an expression."""

    family: Family
    digits: int = 0  # of Arrow's decimal, if the values are whole numbers that overflow, or decimals
    scale: int = 0
    spark_digits: int = 0  # of the decimal that Spark takes the values as
    is_literal: bool = False
    is_short: bool = False  # of a duration: less than a day, so it has the same length in all time zones


@dataclass(frozen=True)
class SparkRules:
    """Settings of a Spark session that the meaning of expressions depends on."""

    is_ansi: bool = True  # otherwise integers wrap around, and some types are cast otherwise
    is_utc: bool = True  # otherwise a day may have 23 or 25 hours


def kind_of(kind: pa.DataType) -> ColumnKind:
    """The kind of a column."""
    simple = {
        pa.bool_(): Family.BOOLEAN,
        pa.float32(): Family.FLOAT,
        pa.float64(): Family.DOUBLE,
        pa.string(): Family.TEXT,
        pa.binary(): Family.BINARY,
        pa.date32(): Family.DATE,
    }
    if kind in SPARK_DIGITS:
        return ColumnKind(Family.WHOLE, WHOLE.precision, 0, SPARK_DIGITS[kind])
    if kind in simple:
        return ColumnKind(simple[kind])
    if pa.types.is_timestamp(kind):
        return ColumnKind(Family.TIME if kind.tz else Family.LOCAL_TIME, WHOLE.precision)
    if pa.types.is_decimal(kind):
        return ColumnKind(Family.DECIMAL, kind.precision, kind.scale, kind.precision)
    raise NotExactError


def as_kind(values: pa.Array, kind: ColumnKind) -> pa.Array:
    """A column as it is stored, in the type that values of its kind have here."""
    match kind.family:
        case Family.WHOLE:
            return values.cast(pa.int64())
        case Family.TIME | Family.LOCAL_TIME:
            return (
                values
                if values.type == pa.int64()
                else values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64())
            )
        case Family.FLOAT:
            return values.cast(pa.float32())  # a key may be stored as double
        case Family.DECIMAL:
            return values.cast(pa.decimal256(kind.digits, kind.scale))
    return values


def comparable(left: ColumnKind, right: ColumnKind, rules: SparkRules) -> Callable[[Values], Values]:
    """The cast that both sides of a comparison need."""
    families = {left.family, right.family}
    if len(families) == 1 and families <= WHOLE_FAMILIES:
        return _same
    if families <= {Family.FLOAT, Family.DOUBLE} or (families <= NUMBERS and families & {Family.FLOAT, Family.DOUBLE}):
        return _as_floats(left, right, rules)
    if families <= {Family.WHOLE, Family.DECIMAL}:
        scale = max(left.scale, right.scale)
        if max(each.spark_digits - each.scale for each in (left, right)) + scale > MOST_SPARK_DIGITS:
            raise NotExactError
        digits = max(each.digits - each.scale for each in (left, right)) + scale
        if digits > MOST_DIGITS:
            raise NotExactError
        return lambda values: values.cast(pa.decimal256(digits, scale))
    if families == {Family.BOOLEAN}:
        return lambda values: values.cast(pa.int8())
    if len(families) == 1:
        return _same
    raise NotExactError


def equal(left: Values, right: Values) -> Values:
    """Whether values are equal; NaN is equal to NaN."""
    left, right = _alike(left, right)
    holds = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        holds = pc.or_kleene(holds, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    return holds


def less(left: Values, right: Values) -> Values:
    """Whether values are less than others; NaN is above all numbers."""
    left, right = _alike(left, right)
    holds = pc.less(left, right)
    if pa.types.is_floating(left.type):
        holds = pc.or_kleene(holds, pc.and_kleene(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return holds


def null_safe_equal(left: Values, right: Values) -> Values:
    """Whether values are equal, or both NULL."""
    is_equal = pc.fill_null(equal(left, right), False)  # noqa: FBT003 - Arrow's signature
    return pc.or_(is_equal, pc.and_(pc.is_null(left), pc.is_null(right)))


def arithmetic(
    operator: str, left: ColumnKind, right: ColumnKind, rules: SparkRules
) -> tuple[ColumnKind, Callable[[Values, Values], Values]]:
    """The kind of a sum, difference or product (`add`, `subtract`, `multiply`), and how to compute it."""
    families = {left.family, right.family}
    if families <= NUMBERS and families & {Family.FLOAT, Family.DOUBLE}:
        cast, function = _as_floats(left, right, rules), getattr(pc, operator)
        family = Family.FLOAT if families == {Family.FLOAT} else Family.DOUBLE
        return ColumnKind(family), lambda first, second: function(cast(first), cast(second))
    family = _family_of_whole(operator, left, right, rules)
    digits, scale, spark_digits = _digits(operator, left, right)
    if digits > MOST_DIGITS or (family == Family.DECIMAL and spark_digits > MOST_SPARK_DIGITS):
        raise NotExactError
    return ColumnKind(family, digits, scale, spark_digits), _wide(getattr(pc, f"{operator}_checked"))


def unary(function: str, kind: ColumnKind, rules: SparkRules) -> tuple[ColumnKind, Callable[[Values], Values]]:
    """The kind of a negative or absolute value (`negate`, `abs`), and how to compute it."""
    if kind.family in {Family.FLOAT, Family.DOUBLE}:
        return replace(kind, is_literal=False), getattr(pc, function)
    is_whole = kind.family == Family.WHOLE and rules.is_ansi
    if not is_whole and kind.family not in {Family.DECIMAL, Family.DURATION}:
        raise NotExactError
    return replace(kind, is_literal=False), _wide(getattr(pc, f"{function}_checked"))


def _family_of_whole(operator: str, left: ColumnKind, right: ColumnKind, rules: SparkRules) -> Family:
    """The family of a result of whole numbers, decimals, times and durations."""
    times = {Family.TIME, Family.LOCAL_TIME}
    families = (left.family, right.family)
    if families == (Family.WHOLE, Family.WHOLE) and rules.is_ansi:
        return Family.WHOLE
    if set(families) <= {Family.WHOLE, Family.DECIMAL} and Family.DECIMAL in families:
        return Family.DECIMAL
    if operator != "multiply" and families == (Family.DURATION, Family.DURATION):
        return Family.DURATION
    if operator == "subtract" and left.family == right.family and left.family in times:
        _check_zone(left, rules)
        return Family.DURATION
    if operator == "add" and left.family == Family.DURATION:
        left, right = right, left
    if operator != "multiply" and left.family in times and right.family == Family.DURATION:
        if not right.is_short:
            _check_zone(left, rules)
        return left.family
    raise NotExactError


def _check_zone(time: ColumnKind, rules: SparkRules) -> None:
    """Days and differences depend on the time zone of the session, unless the time has no zone."""
    if time.family == Family.TIME and not rules.is_utc:
        raise NotExactError


def _digits(operator: str, left: ColumnKind, right: ColumnKind) -> tuple[int, int, int]:
    """The digits of a result, those after the point, and the digits that Spark gives it."""
    if operator == "multiply":
        return left.digits + right.digits + 1, left.scale + right.scale, left.spark_digits + right.spark_digits + 1
    scale = max(left.scale, right.scale)
    digits = max(left.digits - left.scale, right.digits - right.scale) + scale + 1
    return digits, scale, max(left.spark_digits - left.scale, right.spark_digits - right.scale) + scale + 1


def _as_floats(left: ColumnKind, right: ColumnKind, rules: SparkRules) -> Callable[[Values], Values]:
    """Both sides as floats, or as doubles; a decimal only if it is a literal, as Arrow may round others elsewhere."""
    families = {left.family, right.family}
    if any(each.family == Family.DECIMAL and not each.is_literal for each in (left, right)):
        raise NotExactError
    if families == {Family.FLOAT}:
        return _same
    if Family.FLOAT in families and Family.WHOLE in families and not rules.is_ansi:
        raise NotExactError
    return lambda values: values.cast(pa.float64(), safe=False)


def _same(values: Values) -> Values:
    return values


def _alike(*sides: Values) -> tuple[Values, ...]:
    """Whole numbers of which some have overflowed, in types that Arrow's kernels take together."""
    if all(side.type == sides[0].type for side in sides):
        return sides
    return tuple(side.cast(WHOLE) if side.type == pa.int64() else side for side in sides)


def _wide(function: Callable[..., Values]) -> Callable[..., Values]:
    """A function of whole numbers or decimals that goes on with decimals where whole numbers overflow."""

    def compute(*sides: Values) -> Values:
        if all(side.type == pa.int64() for side in sides):
            try:
                return function(*sides)
            except pa.ArrowInvalid:
                pass
        return function(*(side.cast(WHOLE) if side.type == pa.int64() else side for side in sides))

    return compute
