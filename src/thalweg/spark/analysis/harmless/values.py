"""The knowledge of a proof about expressions: their nodes in Catalyst's tree, the types and bounds of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.spark.analysis.harmless.prover import Prover

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


@dataclass(frozen=True)
class Node:
    """An expression in Catalyst's tree."""

    kind: str  # the name of its class
    fields: dict[str, Any]
    children: tuple[Node, ...]
    number: int  # its place in the whole tree, in which every node comes before its children


@dataclass(frozen=True)
class Value:
    """The type and bounds of the values of an expression that cannot raise.

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


class Unproven(Exception):  # noqa: N818 - no error: the expression has to be treated as if it may raise
    """There is no proof that an expression cannot raise."""


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
        """The fields of the expression in the tree."""
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


def require(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Unproven


def is_comparable(kind: Any) -> bool:  # noqa: ANN401 - a type
    if isinstance(kind, str):
        return kind in COMPARABLE or kind.startswith("interval ") or DECIMAL.fullmatch(kind) is not None
    if kind["type"] == "array":
        return is_comparable(kind["elementType"])
    return kind["type"] == "struct" and all(is_comparable(field["type"]) for field in kind["fields"])


def digits(kind: Any) -> tuple[int, int]:  # noqa: ANN401 - a type
    """The digits of a decimal type before and after the point."""
    found = DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    if found is None:
        raise Unproven
    return int(found[1]) - int(found[2]), int(found[2])


def part_of(kind: Any, outer: str, part: str) -> Any:  # noqa: ANN401 - types
    """The type of the elements of an array, or of the keys or values of a map."""
    require(isinstance(kind, dict) and kind["type"] == outer)
    return kind[part]


def is_in_common_era(time: Value) -> bool:
    """Whether a date or timestamp is far from the ends of the calendar."""
    unit = 1 if time.type == "date" else MICROSECONDS_A_DAY
    return time.within(COMMON_ERA[0] * unit, COMMON_ERA[1] * unit)


def union(values: Sequence[Value]) -> Value:
    """A value that is one of several values of the same type."""
    return Value(values[0].type, min(value.low for value in values), max(value.high for value in values))
