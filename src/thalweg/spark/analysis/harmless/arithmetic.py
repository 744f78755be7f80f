"""Rules for arithmetic: which expressions cannot overflow or divide by zero."""

from __future__ import annotations

from thalweg.spark.analysis.harmless.values import (
    DECIMAL,
    EXACT_DIGITS,
    FLOATS,
    INTEGERS,
    Call,
    Value,
    any_of_type,
    digits,
    require,
)

LARGEST_SCALE = 100  # digits to round to


def in_type(call: Call, kind: str, low: float, high: float) -> Value:
    """A whole number between bounds: where its type does not hold it, Spark raises, or wraps around."""
    result, everything = Value(kind, low, high), any_of_type(kind)
    if result.within(everything.low, everything.high):
        return result
    require(call.is_lenient())
    return everything


def adds(call: Call) -> Value:
    left, right = call.arguments
    if left.type in FLOATS:
        return any_of_type(left.type)
    if left.type in INTEGERS:
        if call.kind == "Add":
            return in_type(call, left.type, left.low + right.low, left.high + right.high)
        if call.kind == "Subtract":
            return in_type(call, left.type, left.low - right.high, left.high - right.low)
        products = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
        return in_type(call, left.type, min(products), max(products))
    (left_whole, left_scale), (right_whole, right_scale) = digits(left.type), digits(right.type)
    if call.kind == "Multiply":
        whole, scale = left_whole + right_whole + 1, left_scale + right_scale
    else:
        whole, scale = max(left_whole, right_whole) + 1, max(left_scale, right_scale)
    return decimal(whole, scale)


def decimal(whole: int, scale: int) -> Value:
    """A decimal whose type can hold every result, so that Spark neither rounds nor overflows."""
    require(whole + scale <= EXACT_DIGITS)
    return Value(f"decimal({whole + scale},{scale})")


def divides(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    require(divisor.excludes(0) or call.is_lenient())
    if dividend.type in FLOATS:
        return any_of_type(dividend.type)
    (whole, scale), (divisor_whole, divisor_scale) = digits(dividend.type), digits(divisor.type)
    return decimal(whole + divisor_scale, max(6, scale + divisor_whole + divisor_scale + 1))  # as Spark chooses it


def divides_whole(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    require(dividend.type == "long")
    smallest = any_of_type("long").low
    overflows = dividend.low == smallest and not divisor.excludes(-1)
    require((divisor.excludes(0) and not overflows) or call.is_lenient())
    return any_of_type("long")


def leaves_remainder(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    require(divisor.excludes(0) or call.is_lenient())
    if dividend.type in FLOATS:
        return any_of_type(dividend.type)
    require(dividend.type in INTEGERS)
    largest = max(divisor.high, 0 if call.kind == "Pmod" else -divisor.low) - 1
    if divisor.low > 0 and (call.kind == "Pmod" or dividend.low >= 0):
        return Value(dividend.type, 0, largest)
    return any_of_type(dividend.type) if call.kind == "Pmod" else Value(dividend.type, -largest, largest)


def negates(call: Call) -> Value:
    (value,) = call.arguments
    if value.type in FLOATS:
        return any_of_type(value.type)
    if DECIMAL.fullmatch(str(value.type)):
        return decimal(*digits(value.type))
    if value.type not in INTEGERS:  # the smallest interval raises in every mode
        require(str(value.type).startswith("interval ") and value.low > any_of_type(value.type).low)
    low, high = -value.high, -value.low
    if call.kind == "Abs":
        low, high = max(low, value.low, 0), max(abs(value.low), abs(value.high))
    return in_type(call, value.type, low, high)


def has_bits(call: Call) -> Value:
    require(all(argument.type in INTEGERS for argument in call.arguments))
    limits = [argument.high for argument in call.arguments if argument.low >= 0]
    if call.kind == "BitwiseAnd" and limits:
        return Value(call.arguments[0].type, 0, min(limits))
    return any_of_type(call.arguments[0].type)


def rounds(call: Call) -> Value:
    value, scale = call.arguments
    require(value.type in FLOATS and scale.within(-LARGEST_SCALE, LARGEST_SCALE))
    return any_of_type(value.type)
