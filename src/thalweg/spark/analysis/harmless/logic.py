"""Rules for columns, constants, comparisons and branches."""

from __future__ import annotations

from thalweg.spark.analysis.harmless.values import (
    BOOLEAN,
    FLOATS,
    Call,
    Value,
    any_of_type,
    is_comparable,
    literal,
    require,
    union,
)


def any_of_its_type(call: Call) -> Value:
    return any_of_type(call.fields["dataType"])


def literal_rule(call: Call) -> Value:
    return literal(call.fields)


def compares(call: Call) -> Value:
    require(all(is_comparable(argument.type) for argument in call.arguments))
    return BOOLEAN


def picks(call: Call) -> Value:
    """The greatest, the least or the first value."""
    compares(call)
    return union(call.arguments)


def connects(call: Call) -> Value:
    require(all(argument.type == "boolean" for argument in call.arguments))
    return BOOLEAN


def tests_null(_call: Call) -> Value:
    return BOOLEAN


def tests_nan(call: Call) -> Value:
    require(call.arguments[0].type in FLOATS)
    return BOOLEAN


def branches(call: Call) -> Value:
    """IF and CASE: conditions and results take turns, and the last result may stand alone."""
    results = [*call.arguments[1::2], *call.arguments[-1:]] if len(call.arguments) % 2 else list(call.arguments[1::2])
    require(is_comparable(results[0].type))
    return union(results)
