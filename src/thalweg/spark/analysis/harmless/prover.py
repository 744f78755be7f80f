"""Proves of an expression that Spark evaluates it on every row of any data without an error.

A proof goes up the expression tree: for each class of expression a rule says, given the types and the bounds of its
arguments, the type and the bounds of its values. Every rule was checked against Spark, in ANSI mode and without it, on
the smallest and largest values of each type. Where there is no rule, or the rule does not apply, there is no proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from thalweg.spark.analysis.harmless.arithmetic import (
    adds,
    divides,
    divides_whole,
    has_bits,
    leaves_remainder,
    negates,
    rounds,
)
from thalweg.spark.analysis.harmless.casts import casts
from thalweg.spark.analysis.harmless.collections import (
    array_element,
    collection_size,
    contains,
    map_value,
    struct_field,
    tests_elements,
)
from thalweg.spark.analysis.harmless.logic import (
    any_of_its_type,
    branches,
    compares,
    connects,
    literal_rule,
    picks,
    tests_nan,
    tests_null,
)
from thalweg.spark.analysis.harmless.texts import hashes, makes_text, matches_like, matches_regex, searches, text_length
from thalweg.spark.analysis.harmless.times import (
    DATE_PARTS,
    MOVES,
    TIME_PARTS,
    TRUNCATIONS,
    adds_days,
    clock_value,
    date_part,
    days_of_interval,
    formats,
    parses,
    shifts_time,
    time_part,
)
from thalweg.spark.analysis.harmless.values import Call, Node, Rule, Unproven, Value, any_of_type, literal, require

# Classes that stand for their first child: replacements that Spark's analysis has put in already, and definitions.
# fmt: off
TRANSPARENT = {
    "Alias", "Between", "CommonExpressionDef", "DatePart", "DatetimeSub", "Decode", "EqualNull", "Extract", "NullIf",
    "Nvl", "Nvl2", "StringTrimBoth", "TryAdd", "TryDivide", "TryMod", "TryMultiply", "TrySubtract", "UnaryPositive",
    "With", "ZeroIfNull",
}


CLOCKS = {"CurrentDate": "date", "CurrentTimestamp": "timestamp", "LocalTimestamp": "timestamp_ntz", "Now": "timestamp"}


# Functions that raise for no value of these types: the types of their arguments, and of their values.
FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "Cos": (("double",), "double"),
    "Crc32": (("binary",), "long"),
    "DateDiff": (("date", "date"), "integer"),  # wraps around
    "EulerNumber": ((), "double"),
    "Exp": (("double",), "double"),
    "InitCap": (("string",), "string"),
    "Left": (("string", "integer"), "string"),
    "Log": (("double",), "double"),
    "Log10": (("double",), "double"),
    "Log2": (("double",), "double"),
    "Logarithm": (("double", "double"), "double"),
    "Lower": (("string",), "string"),
    "Md5": (("binary",), "string"),
    "Pow": (("double", "double"), "double"),
    "Right": (("string", "integer"), "string"),
    "Sha1": (("binary",), "string"),
    "Sha2": (("binary", "integer"), "string"),
    "Sin": (("double",), "double"),
    "Sqrt": (("double",), "double"),
    "StringInstr": (("string", "string"), "integer"),
    "StringLocate": (("string", "string", "integer"), "integer"),
    "StringReplace": (("string", "string", "string"), "string"),
    "Substring": (("string", "integer", "integer"), "string"),
    "SubstringIndex": (("string", "string", "integer"), "string"),
    "UnixTimestamp": (("timestamp", "string"), "long"),  # the format is for texts alone
    "Upper": (("string",), "string"),
}


@dataclass(frozen=True)
class Prover:
    """Proves expressions of a tree, and asks Spark for the properties that the tree leaves out.

    Parameters
    ----------
    fold
        Evaluates an expression that consists of constants; None if it raises.
    property_of
        The text of a property that Spark's object has and the tree leaves out, such as `evalMode`; None if unknown.
    """

    fold: Callable[[Node], Node | None]
    property_of: Callable[[Node, str], str | None]

    def is_harmless(self, condition: Node) -> bool:
        """Whether a condition cannot raise on any row."""
        try:
            return bool(self.value(condition).type == "boolean")
        except (Unproven, RecursionError):
            return False

    def value(self, node: Node) -> Value:
        """The type and bounds of an expression's values, if it cannot raise; `Unproven` otherwise."""
        try:
            return self._value(node)
        except Unproven:
            folded = self.folded(node)
            if folded is None:
                raise
            return folded

    def folded(self, node: Node) -> Value | None:
        """The value of an expression that consists of constants; None if it does not, or raises."""
        found = self.fold(node) if is_constant(node) else None
        return literal(found.fields) if found is not None and found.kind == "Literal" else None

    def _value(self, node: Node) -> Value:
        if node.kind in CLOCKS:
            return clock_value(CLOCKS[node.kind])
        if node.kind == "LambdaFunction":  # its other children are its parameters
            return self.value(node.children[0])
        arguments = [self.value(child) for child in node.children]
        if node.kind in TRANSPARENT:
            return arguments[0]
        if node.kind in FUNCTIONS:
            types, result = FUNCTIONS[node.kind]
            require([argument.type for argument in arguments] == list(types))
            return any_of_type(result)
        rule = RULES.get(node.kind)
        if rule is None:
            raise Unproven
        return rule(Call(node, arguments, self))


def is_constant(node: Node) -> bool:
    """Whether an expression consists of literals alone, and has the same value whenever it is evaluated."""
    if node.kind == "Literal":  # a time without a date means today's, should it become a timestamp
        return not re.match(r"\s*T?\d{1,2}:", str(node.fields["value"]))
    return bool(node.children) and all(map(is_constant, node.children))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("AttributeReference", "CommonExpressionRef", "NamedLambdaVariable"), any_of_its_type),
    "Literal": literal_rule,
    **dict.fromkeys(
        ("EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "LessThan", "LessThanOrEqual"),
        compares,
    ),
    **dict.fromkeys(("Coalesce", "Greatest", "Least"), picks),
    **dict.fromkeys(("And", "Not", "Or"), connects),
    **dict.fromkeys(("IsNotNull", "IsNull"), tests_null),
    "IsNaN": tests_nan,
    **dict.fromkeys(("CaseWhen", "If", "NullIfResult"), branches),
    **dict.fromkeys(("Add", "Multiply", "Subtract"), adds),
    "Divide": divides,
    "IntegralDivide": divides_whole,
    **dict.fromkeys(("Pmod", "Remainder"), leaves_remainder),
    **dict.fromkeys(("Abs", "UnaryMinus"), negates),
    **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), has_bits),
    **dict.fromkeys(("ShiftLeft", "ShiftRight", "ShiftRightUnsigned"), has_bits),
    **dict.fromkeys(("BRound", "Round"), rounds),
    "Cast": casts,
    **dict.fromkeys(DATE_PARTS, date_part),
    **dict.fromkeys(TIME_PARTS, time_part),
    **dict.fromkeys(("DateAdd", "DateSub"), adds_days),
    "ExtractANSIIntervalDays": days_of_interval,
    **dict.fromkeys((*MOVES, *TRUNCATIONS), shifts_time),
    **dict.fromkeys(("ParseToDate", "ParseToTimestamp"), parses),
    "DateFormatClass": formats,
    **dict.fromkeys(("Concat", "ConcatWs", "StringTrim", "StringTrimLeft", "StringTrimRight"), makes_text),
    **dict.fromkeys(("Contains", "EndsWith", "StartsWith"), searches),
    "Length": text_length,
    **dict.fromkeys(("ILike", "Like"), matches_like),
    **dict.fromkeys(("RLike", "StringSplit"), matches_regex),
    **dict.fromkeys(("Murmur3Hash", "XxHash64"), hashes),
    "GetStructField": struct_field,
    **dict.fromkeys(("Get", "GetArrayItem"), array_element),
    **dict.fromkeys(("GetMapValue", "MapContainsKey"), map_value),
    "ArrayContains": contains,
    **dict.fromkeys(("ArraySize", "Size"), collection_size),
    **dict.fromkeys(("ArrayExists", "ArrayFilter", "ArrayForAll"), tests_elements),
}
