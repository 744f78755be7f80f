"""Proves of an expression that Spark evaluates it on every row without an error, whatever the data are.

A proof goes up the expression tree: for each class of expression a rule says, given the types and the bounds of its
arguments, the type and the bounds of its values. Every rule was checked against Spark, in ANSI mode and without it, on
the smallest and largest values of each type. Where there is no rule, or the rule does not apply, there is no proof.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.spark.filters.patterns import is_plain_time_format, is_valid_like, is_valid_regex

# Spark's data types are taken as JSON writes them: a name, or a dictionary for arrays, maps and structs.
INTEGERS = {"byte": 8, "short": 16, "integer": 32, "long": 64}  # and their bits
FLOATS = {"float", "double"}
TIMES = {"timestamp", "timestamp_ntz"}
COMPARABLE = {*INTEGERS, *FLOATS, *TIMES, "binary", "boolean", "date", "string", "void"}
DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
EXACT_DIGITS = 34  # of decimals: beyond, Scala rounds them, even to negate them, and may need one digit more
EXACT_IN_DOUBLE = 1 << 53

MICROSECONDS_A_DAY = 86_400_000_000
COMMON_ERA = (-719_162, 2_932_896)  # the years 1 to 9999 in days: far from where dates and timestamps overflow
LIFETIME = (10_957, 376_200)  # the years 2000 to 2999 in days: when queries run
MARGIN = 400  # days by which truncating a date to its year, or the time zone, moves it at most
LARGEST_SCALE = 100  # digits to round to

# Classes that stand for their first child: replacements that Spark's analysis has put in already, and definitions.
# fmt: off
TRANSPARENT = {
    "Alias", "Between", "CommonExpressionDef", "DatePart", "DatetimeSub", "Decode", "EqualNull", "Extract", "NullIf",
    "Nvl", "Nvl2", "StringTrimBoth", "TryAdd", "TryDivide", "TryMod", "TryMultiply", "TrySubtract", "UnaryPositive",
    "With", "ZeroIfNull",
}
CLOCKS = {"CurrentDate": "date", "CurrentTimestamp": "timestamp", "LocalTimestamp": "timestamp_ntz", "Now": "timestamp"}
DATE_PARTS = {
    "DayOfMonth": (1, 31), "DayOfWeek": (1, 7), "DayOfYear": (1, 366), "Month": (1, 12), "Quarter": (1, 4),
    "WeekDay": (0, 6), "WeekOfYear": (1, 53), "Year": (-5_877_641, 5_881_580),
}
TIME_PARTS = {"Hour": (0, 23), "Minute": (0, 59), "Second": (0, 59)}
# fmt: on
TRUNCATIONS = {"LastDay", "TruncDate", "TruncTimestamp"}
MOVES = {  # by how much a unit of the argument that is no time moves a date or timestamp at most
    "AddMonths": 31,
    "DateAddYMInterval": 31,
    "TimestampAdd": 366 * MICROSECONDS_A_DAY,  # its largest unit is a year
    "TimestampAddInterval": 1,
    "TimestampAddYMInterval": 31 * MICROSECONDS_A_DAY,
}
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
class Node:
    """An expression in Catalyst's tree."""

    kind: str  # the name of its class
    fields: dict[str, Any]
    children: tuple[Node, ...]
    number: int  # its place in the whole tree, in which every node comes before its children


@dataclass(frozen=True)
class Value:
    """What is known of the values of an expression that cannot raise.

    Bounds hold for numbers, for dates in days since 1970, for timestamps in microseconds since then, and for intervals
    in months or microseconds. They are infinite where nothing is known.
    """

    type: Any
    low: float = -math.inf
    high: float = math.inf
    constant: str | None = None  # the text of a literal

    def within(self, low: float, high: float) -> bool:
        """Whether all values lie between these bounds."""
        return low <= self.low and self.high <= high

    def excludes(self, number: float) -> bool:
        """Whether the number is certainly none of the values."""
        return not self.low <= number <= self.high


BOOLEAN = Value("boolean")
TEXT = Value("string")


class Unproven(Exception):  # noqa: N818 - no error: the expression has to be taken for one that may raise
    """There is no proof that an expression cannot raise."""


@dataclass(frozen=True)
class Prover:
    """Proves expressions of a tree, and asks Spark for what the tree does not say.

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
        """What is known of an expression's values, if it cannot raise; `Unproven` otherwise."""
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
            return _clock(CLOCKS[node.kind])
        if node.kind == "LambdaFunction":  # its other children are its parameters
            return self.value(node.children[0])
        arguments = [self.value(child) for child in node.children]
        if node.kind in TRANSPARENT:
            return arguments[0]
        if node.kind in FUNCTIONS:
            types, result = FUNCTIONS[node.kind]
            _require([argument.type for argument in arguments] == list(types))
            return any_of_type(result)
        rule = RULES.get(node.kind)
        if rule is None:
            raise Unproven
        return rule(Call(node, arguments, self))


@dataclass(frozen=True)
class Call:
    """An expression whose arguments cannot raise."""

    node: Node
    arguments: Sequence[Value]
    prover: Prover

    @property
    def kind(self) -> str:
        """The name of the expression's class."""
        return self.node.kind

    @property
    def fields(self) -> dict[str, Any]:
        """What the tree says of the expression."""
        return self.node.fields

    def property_of(self, name: str) -> str | None:
        """The text of a property that Spark's object has and the tree leaves out."""
        return self.prover.property_of(self.node, name)

    def divisor(self) -> Value:
        """The second argument: if it may be zero by its bounds, but is a constant, Spark evaluates it."""
        divisor = self.arguments[1]
        return divisor if divisor.excludes(0) else self.prover.folded(self.node.children[1]) or divisor

    def pattern(self, index: int) -> str:
        """An argument that is a constant text."""
        argument = self.arguments[index]
        if argument.constant is None:
            argument = self.prover.folded(self.node.children[index]) or argument
        if argument.type != "string" or argument.constant is None:
            raise Unproven
        return argument.constant

    def is_lenient(self) -> bool:
        """Whether the expression gives NULL, or wraps around, where ANSI mode raises."""
        if "failOnError" in self.fields:
            return self.fields["failOnError"] is False
        return self.property_of("evalMode") in {"LEGACY", "TRY"}


Rule = Callable[[Call], Value]


def is_constant(node: Node) -> bool:
    """Whether an expression consists of literals alone, and has the same value whenever it is evaluated."""
    if node.kind == "Literal":  # a time without a date means today's, should it become a timestamp
        return not re.match(r"\s*T?\d{1,2}:", str(node.fields["value"]))
    return bool(node.children) and all(map(is_constant, node.children))


def any_of_type(kind: Any) -> Value:  # noqa: ANN401 - a type is a name or a dictionary
    """A value of which the type alone is known."""
    if not isinstance(kind, str):
        return Value(kind)
    bits = INTEGERS.get(kind)
    if kind == "date" or (kind.startswith("interval ") and kind.endswith(("year", "month"))):
        bits = 32
    elif kind in TIMES or kind.startswith("interval "):
        bits = 64
    return Value(kind) if bits is None else Value(kind, -(1 << bits - 1), (1 << bits - 1) - 1)


def literal(fields: dict[str, Any]) -> Value:
    """The value of a literal with these fields."""
    kind, text = fields["dataType"], fields["value"]
    if text is None or not isinstance(kind, str):
        return any_of_type(kind)
    if kind in INTEGERS or kind.startswith("interval "):
        return Value(kind, int(text), int(text), text)
    if kind in FLOATS or DECIMAL.fullmatch(kind):
        number = float(text)
        return Value(kind, number, number, text) if number == number else Value(kind)  # noqa: PLR0124 - not for NaN
    return replace(any_of_type(kind), constant=text)


def _require(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Unproven


def _clock(kind: str) -> Value:
    unit = 1 if kind == "date" else MICROSECONDS_A_DAY
    return Value(kind, LIFETIME[0] * unit, LIFETIME[1] * unit)


def _is_comparable(kind: Any) -> bool:  # noqa: ANN401 - a type
    if isinstance(kind, str):
        return kind in COMPARABLE or kind.startswith("interval ") or DECIMAL.fullmatch(kind) is not None
    if kind["type"] == "array":
        return _is_comparable(kind["elementType"])
    return kind["type"] == "struct" and all(_is_comparable(field["type"]) for field in kind["fields"])


def _digits(kind: Any) -> tuple[int, int]:  # noqa: ANN401 - a type
    """The digits of a decimal type before and after the point."""
    found = DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        raise Unproven
    return int(found[1]) - int(found[2]), int(found[2])


def _part_of(kind: Any, outer: str, part: str) -> Any:  # noqa: ANN401 - types
    """The type of the elements of an array, or of the keys or values of a map."""
    _require(isinstance(kind, dict) and kind["type"] == outer)
    return kind[part]


def _is_in_common_era(time: Value) -> bool:
    """Whether a date or timestamp is far from the ends of the calendar."""
    unit = 1 if time.type == "date" else MICROSECONDS_A_DAY
    return time.within(COMMON_ERA[0] * unit, COMMON_ERA[1] * unit)


def _union(values: Sequence[Value]) -> Value:
    """A value that is one of several, all of one type."""
    return Value(values[0].type, min(value.low for value in values), max(value.high for value in values))


# ------------------------------------------------------------------------------------------ columns and constants


def _typed(call: Call) -> Value:
    return any_of_type(call.fields["dataType"])


def _literal(call: Call) -> Value:
    return literal(call.fields)


# -------------------------------------------------------------------------------------------------------- logic


def _compares(call: Call) -> Value:
    _require(all(_is_comparable(argument.type) for argument in call.arguments))
    return BOOLEAN


def _picks(call: Call) -> Value:
    """The greatest, the least or the first value."""
    _compares(call)
    return _union(call.arguments)


def _connects(call: Call) -> Value:
    _require(all(argument.type == "boolean" for argument in call.arguments))
    return BOOLEAN


def _tests_null(_call: Call) -> Value:
    return BOOLEAN


def _tests_nan(call: Call) -> Value:
    _require(call.arguments[0].type in FLOATS)
    return BOOLEAN


def _branches(call: Call) -> Value:
    """IF and CASE: conditions and results take turns, and the last result may stand alone."""
    results = [*call.arguments[1::2], *call.arguments[-1:]] if len(call.arguments) % 2 else list(call.arguments[1::2])
    _require(_is_comparable(results[0].type))
    return _union(results)


# --------------------------------------------------------------------------------------------------- arithmetic


def _in_type(call: Call, kind: str, low: float, high: float) -> Value:
    """A whole number between bounds: where its type does not hold it, Spark raises, or wraps around."""
    result, everything = Value(kind, low, high), any_of_type(kind)
    if result.within(everything.low, everything.high):
        return result
    _require(call.is_lenient())
    return everything


def _adds(call: Call) -> Value:
    left, right = call.arguments
    if left.type in FLOATS:
        return any_of_type(left.type)
    if left.type in INTEGERS:
        if call.kind == "Add":
            return _in_type(call, left.type, left.low + right.low, left.high + right.high)
        if call.kind == "Subtract":
            return _in_type(call, left.type, left.low - right.high, left.high - right.low)
        products = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
        return _in_type(call, left.type, min(products), max(products))
    (left_whole, left_scale), (right_whole, right_scale) = _digits(left.type), _digits(right.type)
    if call.kind == "Multiply":
        whole, scale = left_whole + right_whole + 1, left_scale + right_scale
    else:
        whole, scale = max(left_whole, right_whole) + 1, max(left_scale, right_scale)
    return _decimal(whole, scale)


def _decimal(whole: int, scale: int) -> Value:
    """A decimal whose type can hold every result, so that Spark neither rounds nor overflows."""
    _require(whole + scale <= EXACT_DIGITS)
    return Value(f"decimal({whole + scale},{scale})")


def _divides(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    _require(divisor.excludes(0) or call.is_lenient())
    if dividend.type in FLOATS:
        return any_of_type(dividend.type)
    (whole, scale), (divisor_whole, divisor_scale) = _digits(dividend.type), _digits(divisor.type)
    return _decimal(whole + divisor_scale, max(6, scale + divisor_whole + divisor_scale + 1))  # as Spark chooses it


def _divides_whole(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    _require(dividend.type == "long")
    smallest = any_of_type("long").low
    overflows = dividend.low == smallest and not divisor.excludes(-1)
    _require((divisor.excludes(0) and not overflows) or call.is_lenient())
    return any_of_type("long")


def _leaves_remainder(call: Call) -> Value:
    dividend, divisor = call.arguments[0], call.divisor()
    _require(divisor.excludes(0) or call.is_lenient())
    if dividend.type in FLOATS:
        return any_of_type(dividend.type)
    _require(dividend.type in INTEGERS)
    largest = max(divisor.high, 0 if call.kind == "Pmod" else -divisor.low) - 1
    if divisor.low > 0 and (call.kind == "Pmod" or dividend.low >= 0):
        return Value(dividend.type, 0, largest)
    return any_of_type(dividend.type) if call.kind == "Pmod" else Value(dividend.type, -largest, largest)


def _negates(call: Call) -> Value:
    (value,) = call.arguments
    if value.type in FLOATS:
        return any_of_type(value.type)
    if DECIMAL.fullmatch(str(value.type)):
        return _decimal(*_digits(value.type))
    if value.type not in INTEGERS:  # the smallest interval raises in every mode
        _require(str(value.type).startswith("interval ") and value.low > any_of_type(value.type).low)
    low, high = -value.high, -value.low
    if call.kind == "Abs":
        low, high = max(low, value.low, 0), max(abs(value.low), abs(value.high))
    return _in_type(call, value.type, low, high)


def _has_bits(call: Call) -> Value:
    _require(all(argument.type in INTEGERS for argument in call.arguments))
    limits = [argument.high for argument in call.arguments if argument.low >= 0]
    if call.kind == "BitwiseAnd" and limits:
        return Value(call.arguments[0].type, 0, min(limits))
    return any_of_type(call.arguments[0].type)


def _rounds(call: Call) -> Value:
    value, scale = call.arguments
    _require(value.type in FLOATS and scale.within(-LARGEST_SCALE, LARGEST_SCALE))
    return any_of_type(value.type)


# -------------------------------------------------------------------------------------------------------- casts


def _casts(call: Call) -> Value:
    (value,) = call.arguments
    target = call.fields["dataType"]
    result = cast(value, target)
    if result is None and _casts_leniently(value.type, target) and call.is_lenient():
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
        return _cast_array(source, target)
    if target == "string":
        return everything if _is_comparable(source) and (source != "date" or _is_in_common_era(value)) else None
    if source == "boolean":
        value = Value("byte", 0, 1)
    if DECIMAL.fullmatch(source) and target in INTEGERS:
        largest = 10 ** _digits(source)[0]
        value = Value("long", -largest, largest)
    if value.type in INTEGERS or target in INTEGERS:
        return _cast_whole(value, target)
    if source in TIMES | {"date"}:
        return _cast_time(value, target)
    if DECIMAL.fullmatch(source) and DECIMAL.fullmatch(target):
        (whole, scale), (target_whole, target_scale) = _digits(source), _digits(target)
        fits = target_whole >= whole + (target_scale < scale)  # rounding may carry into another digit
        return Value(target, value.low, value.high) if fits and target_scale >= scale else everything if fits else None
    is_number = source in FLOATS or DECIMAL.fullmatch(source)
    if (is_number and target in {*FLOATS, "boolean"}) or (source, target) == ("string", "binary"):
        return everything
    return None


def _cast_whole(value: Value, target: str) -> Value | None:
    """The cast of a whole number, or to one."""
    everything = any_of_type(target)
    if value.type == "timestamp" and target == "long":
        return everything
    if value.type not in INTEGERS:
        return None
    if target in INTEGERS:
        return replace(value, type=target) if value.within(everything.low, everything.high) else None
    if DECIMAL.fullmatch(target):
        largest = 10 ** _digits(target)[0] - 1
        return replace(value, type=target) if value.within(-largest, largest) else None
    if target in FLOATS:
        exact = value.within(-EXACT_IN_DOUBLE, EXACT_IN_DOUBLE) and target == "double"
        return replace(value, type=target) if exact else everything
    return everything if target == "boolean" else None


def _cast_time(value: Value, target: str) -> Value | None:
    """The cast of a date or a timestamp: one with all its values is too large for a timestamp or for another zone."""
    unit = 1 if value.type == "date" else MICROSECONDS_A_DAY
    is_common = _is_in_common_era(value)
    if target == "date" or (target in TIMES and is_common):
        if not is_common:
            return any_of_type(target)
        target_unit = 1 if target == "date" else MICROSECONDS_A_DAY
        return Value(target, (value.low // unit - 1) * target_unit, (value.high // unit + 2) * target_unit)
    return None


def _cast_array(source: Any, target: Any) -> Value | None:  # noqa: ANN401 - types
    """The cast of an array whose elements can be cast."""
    if not (isinstance(source, dict) and isinstance(target, dict) and source["type"] == target["type"] == "array"):
        return None
    element = cast(any_of_type(source["elementType"]), target["elementType"])
    return Value(target) if element is not None else None


def _casts_leniently(source: Any, target: Any) -> bool:  # noqa: ANN401 - types
    """Whether a cast gives NULL, without ANSI mode or by `try_cast`, where it would raise."""

    def is_simple(kind: Any) -> bool:  # noqa: ANN401 - as above
        return isinstance(kind, str) and (
            kind in {*INTEGERS, *FLOATS, "boolean", "string"} or DECIMAL.fullmatch(kind) is not None
        )

    return is_simple(source) and (is_simple(target) or (source == "string" and target in {"date", "timestamp"}))


# ------------------------------------------------------------------------------------------- dates and timestamps


def _date_part(call: Call) -> Value:
    _require(call.arguments[0].type == "date")
    return Value("integer", *DATE_PARTS[call.kind])


def _time_part(call: Call) -> Value:
    _require(call.arguments[0].type in TIMES)
    return Value("integer", *TIME_PARTS[call.kind])


def _adds_days(call: Call) -> Value:
    """Days added to a date: beyond the largest date Spark wraps around."""
    date, days = call.arguments
    _require(date.type == "date" and days.type in INTEGERS)
    low, high = (days.low, days.high) if call.kind == "DateAdd" else (-days.high, -days.low)
    shifted, everything = Value("date", date.low + low, date.high + high), any_of_type("date")
    return shifted if shifted.within(everything.low, everything.high) else everything


def _days_of_interval(call: Call) -> Value:
    (interval,) = call.arguments
    _require(interval.type == "interval day")
    return Value("integer", interval.low // MICROSECONDS_A_DAY, interval.high // MICROSECONDS_A_DAY)


def _shifts_time(call: Call) -> Value:
    """A date or timestamp that is moved or truncated: certain only far from the ends of the calendar."""
    times = [argument for argument in call.arguments if argument.type in {"date", *TIMES}]
    _require(len(times) == 1)
    time = times[0]
    unit = 1 if time.type == "date" else MICROSECONDS_A_DAY
    low, high = time.low - MARGIN * unit, time.high + MARGIN * unit
    if call.kind in MOVES:
        shift, size = call.arguments[call.kind != "TimestampAdd"], MOVES[call.kind]
        low, high = min(low, low + shift.low * size), max(high, high + shift.high * size)
    moved = Value(time.type, low, high)
    _require(_is_in_common_era(moved))
    return moved


def _parses(call: Call) -> Value:
    """`to_date` and `to_timestamp` without a format, of what is no text."""
    target = "date" if call.kind == "ParseToDate" else call.fields["dataType"]
    _require(len(call.arguments) == 1 and call.arguments[0].type in {"date", *TIMES})
    result = cast(call.arguments[0], target)
    if result is None:
        raise Unproven
    return result


def _formats(call: Call) -> Value:
    (time, _) = call.arguments
    # With `spark.sql.legacy.timeParserPolicy`, Spark converts to another calendar, in which a time can overflow.
    _require(time.type == "timestamp" and _is_in_common_era(time) and is_plain_time_format(call.pattern(1)))
    return TEXT


# -------------------------------------------------------------------------------------------------------- texts


def _texts(call: Call) -> Value:
    _require(all(argument.type == "string" for argument in call.arguments))
    return TEXT


def _searches(call: Call) -> Value:
    _texts(call)
    return BOOLEAN


def _length(call: Call) -> Value:
    _require(call.arguments[0].type in {"string", "binary"})
    return Value("integer", 0, (1 << 31) - 1)


def _matches_like(call: Call) -> Value:
    escape = call.property_of("escapeChar")
    _require(call.arguments[0].type == "string" and escape is not None and is_valid_like(call.pattern(1), escape))
    _require(call.kind == "Like" or escape == "\\")  # ILIKE turns the pattern into lower case, its escapes too
    return BOOLEAN


def _matches_regex(call: Call) -> Value:
    _require(call.arguments[0].type == "string" and is_valid_regex(call.pattern(1)))
    return BOOLEAN if call.kind == "RLike" else Value({"type": "array", "elementType": "string", "containsNull": False})


def _hashes(call: Call) -> Value:
    _require(all(_is_comparable(argument.type) for argument in call.arguments))
    return any_of_type("integer" if call.kind == "Murmur3Hash" else "long")


# -------------------------------------------------------------------------------------- structs, arrays and maps


def _field(call: Call) -> Value:
    _require(isinstance(call.arguments[0].type, dict) and call.arguments[0].type["type"] == "struct")
    return any_of_type(call.arguments[0].type["fields"][call.fields["ordinal"]]["type"])


def _element(call: Call) -> Value:
    array, index = call.arguments
    _require(index.type in INTEGERS and (call.kind == "Get" or call.is_lenient()))
    return any_of_type(_part_of(array.type, "array", "elementType"))


def _map_value(call: Call) -> Value:
    mapping, key = call.arguments
    _require(_is_comparable(_part_of(mapping.type, "map", "keyType")) and _is_comparable(key.type))
    return BOOLEAN if call.kind == "MapContainsKey" else any_of_type(_part_of(mapping.type, "map", "valueType"))


def _contains(call: Call) -> Value:
    _require(
        _is_comparable(_part_of(call.arguments[0].type, "array", "elementType"))
        and _is_comparable(call.arguments[1].type)
    )
    return BOOLEAN


def _size(call: Call) -> Value:
    _require(isinstance(call.arguments[0].type, dict) and call.arguments[0].type["type"] in {"array", "map"})
    return Value("integer", -1, (1 << 31) - 1)  # of NULL it may be -1


def _tests_elements(call: Call) -> Value:
    array, condition = call.arguments
    _require(condition.type == "boolean")
    _part_of(array.type, "array", "elementType")
    return array if call.kind == "ArrayFilter" else BOOLEAN


RULES: dict[str, Rule] = {
    **dict.fromkeys(("AttributeReference", "CommonExpressionRef", "NamedLambdaVariable"), _typed),
    "Literal": _literal,
    **dict.fromkeys(
        ("EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "In", "LessThan", "LessThanOrEqual"),
        _compares,
    ),
    **dict.fromkeys(("Coalesce", "Greatest", "Least"), _picks),
    **dict.fromkeys(("And", "Not", "Or"), _connects),
    **dict.fromkeys(("IsNotNull", "IsNull"), _tests_null),
    "IsNaN": _tests_nan,
    **dict.fromkeys(("CaseWhen", "If", "NullIfResult"), _branches),
    **dict.fromkeys(("Add", "Multiply", "Subtract"), _adds),
    "Divide": _divides,
    "IntegralDivide": _divides_whole,
    **dict.fromkeys(("Pmod", "Remainder"), _leaves_remainder),
    **dict.fromkeys(("Abs", "UnaryMinus"), _negates),
    **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), _has_bits),
    **dict.fromkeys(("ShiftLeft", "ShiftRight", "ShiftRightUnsigned"), _has_bits),
    **dict.fromkeys(("BRound", "Round"), _rounds),
    "Cast": _casts,
    **dict.fromkeys(DATE_PARTS, _date_part),
    **dict.fromkeys(TIME_PARTS, _time_part),
    **dict.fromkeys(("DateAdd", "DateSub"), _adds_days),
    "ExtractANSIIntervalDays": _days_of_interval,
    **dict.fromkeys((*MOVES, *TRUNCATIONS), _shifts_time),
    **dict.fromkeys(("ParseToDate", "ParseToTimestamp"), _parses),
    "DateFormatClass": _formats,
    **dict.fromkeys(("Concat", "ConcatWs", "StringTrim", "StringTrimLeft", "StringTrimRight"), _texts),
    **dict.fromkeys(("Contains", "EndsWith", "StartsWith"), _searches),
    "Length": _length,
    **dict.fromkeys(("ILike", "Like"), _matches_like),
    **dict.fromkeys(("RLike", "StringSplit"), _matches_regex),
    **dict.fromkeys(("Murmur3Hash", "XxHash64"), _hashes),
    "GetStructField": _field,
    **dict.fromkeys(("Get", "GetArrayItem"), _element),
    **dict.fromkeys(("GetMapValue", "MapContainsKey"), _map_value),
    "ArrayContains": _contains,
    **dict.fromkeys(("ArraySize", "Size"), _size),
    **dict.fromkeys(("ArrayExists", "ArrayFilter", "ArrayForAll"), _tests_elements),
}
