"""Rules for functions of texts and patterns."""

from __future__ import annotations

from thalweg.spark.analysis.harmless.values import BOOLEAN, TEXT, Call, Value, any_of_type, is_comparable, require
from thalweg.spark.analysis.patterns import is_valid_like, is_valid_regex


def makes_text(call: Call) -> Value:
    require(all(argument.type == "string" for argument in call.arguments))
    return TEXT


def searches(call: Call) -> Value:
    makes_text(call)
    return BOOLEAN


def text_length(call: Call) -> Value:
    require(call.arguments[0].type in {"string", "binary"})
    return Value("integer", 0, (1 << 31) - 1)


def matches_like(call: Call) -> Value:
    escape = call.property_of("escapeChar")
    require(call.arguments[0].type == "string" and escape is not None and is_valid_like(call.pattern(1), escape))
    require(call.kind == "Like" or escape == "\\")  # ILIKE turns the pattern into lower case, its escapes too
    return BOOLEAN


def matches_regex(call: Call) -> Value:
    require(call.arguments[0].type == "string" and is_valid_regex(call.pattern(1)))
    return BOOLEAN if call.kind == "RLike" else Value({"type": "array", "elementType": "string", "containsNull": False})


def hashes(call: Call) -> Value:
    require(all(is_comparable(argument.type) for argument in call.arguments))
    return any_of_type("integer" if call.kind == "Murmur3Hash" else "long")
