"""Rules for structs, arrays and maps."""

from __future__ import annotations

from thalweg.spark.analysis.harmless.values import (
    BOOLEAN,
    INTEGERS,
    Call,
    Value,
    any_of_type,
    is_comparable,
    part_of,
    require,
)


def struct_field(call: Call) -> Value:
    require(isinstance(call.arguments[0].type, dict) and call.arguments[0].type["type"] == "struct")
    return any_of_type(call.arguments[0].type["fields"][call.fields["ordinal"]]["type"])


def array_element(call: Call) -> Value:
    array, index = call.arguments
    require(index.type in INTEGERS and (call.kind == "Get" or call.is_lenient()))
    return any_of_type(part_of(array.type, "array", "elementType"))


def map_value(call: Call) -> Value:
    mapping, key = call.arguments
    require(is_comparable(part_of(mapping.type, "map", "keyType")) and is_comparable(key.type))
    return BOOLEAN if call.kind == "MapContainsKey" else any_of_type(part_of(mapping.type, "map", "valueType"))


def contains(call: Call) -> Value:
    require(
        is_comparable(part_of(call.arguments[0].type, "array", "elementType")) and is_comparable(call.arguments[1].type)
    )
    return BOOLEAN


def collection_size(call: Call) -> Value:
    require(isinstance(call.arguments[0].type, dict) and call.arguments[0].type["type"] in {"array", "map"})
    return Value("integer", -1, (1 << 31) - 1)  # of NULL it may be -1


def tests_elements(call: Call) -> Value:
    array, condition = call.arguments
    require(condition.type == "boolean")
    part_of(array.type, "array", "elementType")
    return array if call.kind == "ArrayFilter" else BOOLEAN
