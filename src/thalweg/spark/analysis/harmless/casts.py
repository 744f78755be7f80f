"""Rules for casts: which pairs of types, and which bounds, never raise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from thalweg.spark.analysis.harmless.values import (
    DECIMAL,
    EXACT_IN_DOUBLE,
    FLOATS,
    INTEGERS,
    MICROSECONDS_A_DAY,
    TIMES,
    Call,
    Unproven,
    Value,
    any_of_type,
    digits,
    is_comparable,
    is_in_common_era,
)


def casts(call: Call) -> Value:
    (value,) = call.arguments
    target = call.fields["dataType"]
    result = cast(value, target)
    if result is None and casts_leniently(value.type, target) and call.is_lenient():
        result = any_of_type(target)
    if result is None:
        raise Unproven
    return result


def cast(value: Value, target: Any) -> Value | None:  # noqa: ANN401, PLR0911 - a type; a case for each pair of types
    """The value in another type, if the cast raises for none in ANSI mode."""
    source, everything = value.type, any_of_type(target)
    if source == target:
        return value
    if source == "void":
        return everything
    if isinstance(source, dict) or isinstance(target, dict):
        return cast_array(source, target)
    if target == "string":
        return everything if is_comparable(source) and (source != "date" or is_in_common_era(value)) else None
    if source == "boolean":
        value = Value("byte", 0, 1)
    if DECIMAL.fullmatch(source) and target in INTEGERS:
        largest = 10 ** digits(source)[0]
        value = Value("long", -largest, largest)
    if value.type in INTEGERS or target in INTEGERS:
        return cast_whole(value, target)
    if source in TIMES | {"date"}:
        return cast_time(value, target)
    if DECIMAL.fullmatch(source) and DECIMAL.fullmatch(target):
        (whole, scale), (target_whole, target_scale) = digits(source), digits(target)
        fits = target_whole >= whole + (target_scale < scale)  # rounding may carry into another digit
        return Value(target, value.low, value.high) if fits and target_scale >= scale else everything if fits else None
    is_number = source in FLOATS or DECIMAL.fullmatch(source)
    if (is_number and target in {*FLOATS, "boolean"}) or (source, target) == ("string", "binary"):
        return everything
    return None


def cast_whole(value: Value, target: str) -> Value | None:
    """The cast of a whole number, or to a whole number."""
    everything = any_of_type(target)
    if value.type == "timestamp" and target == "long":
        return everything
    if value.type not in INTEGERS:
        return None
    if target in INTEGERS:
        return replace(value, type=target) if value.within(everything.low, everything.high) else None
    if DECIMAL.fullmatch(target):
        largest = 10 ** digits(target)[0] - 1
        return replace(value, type=target) if value.within(-largest, largest) else None
    if target in FLOATS:
        exact = value.within(-EXACT_IN_DOUBLE, EXACT_IN_DOUBLE) and target == "double"
        return replace(value, type=target) if exact else everything
    return everything if target == "boolean" else None


def cast_time(value: Value, target: str) -> Value | None:
    """The cast of a date or a timestamp; far from the common era it may not fit into a timestamp or another zone."""
    unit = 1 if value.type == "date" else MICROSECONDS_A_DAY
    is_common = is_in_common_era(value)
    if target == "date" or (target in TIMES and is_common):
        if not is_common:
            return any_of_type(target)
        target_unit = 1 if target == "date" else MICROSECONDS_A_DAY
        return Value(target, (value.low // unit - 1) * target_unit, (value.high // unit + 2) * target_unit)
    return None


def cast_array(source: Any, target: Any) -> Value | None:  # noqa: ANN401 - types
    """The cast of an array whose elements can be cast."""
    if not (isinstance(source, dict) and isinstance(target, dict) and source["type"] == target["type"] == "array"):
        return None
    element = cast(any_of_type(source["elementType"]), target["elementType"])
    return Value(target) if element is not None else None


def casts_leniently(source: Any, target: Any) -> bool:  # noqa: ANN401 - types
    """Whether a cast gives NULL, without ANSI mode or by `try_cast`, where it would raise."""

    def is_simple(kind: Any) -> bool:  # noqa: ANN401 - as above
        return isinstance(kind, str) and (
            kind in {*INTEGERS, *FLOATS, "boolean", "string"} or DECIMAL.fullmatch(kind) is not None
        )

    return is_simple(source) and (is_simple(target) or (source == "string" and target in {"date", "timestamp"}))
