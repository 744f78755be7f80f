"""Whether a condition implies a second condition: then the rows that pass the second contain those that pass the first.

The answer holds for a column of any type, under Spark's implicit casts. Therefore conditions are compared only if their
literals are of the same class, and in the range in which no cast rounds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import sqlglot
from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.sql.dialect import VerbatimSpark, render

_LARGEST_EXACT_INTEGER = 2**24  # a float holds every whole number up to here
_MOST_EXACT_DIGITS = 15  # a double tells all decimals of so many digits apart
_COMPARISONS: dict[type[Expr], str] = {e.EQ: "=", e.LT: "<", e.LTE: "<=", e.GT: ">", e.GTE: ">="}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNBOUNDED = Decimal("Infinity")

LiteralClass = Literal["integer", "decimal", "text"]


@dataclass(frozen=True)
class _Interval:
    """The numbers from low to high; is_open_low and is_open_high say whether a bound itself is outside."""

    low: Decimal = -_UNBOUNDED
    high: Decimal = _UNBOUNDED
    is_open_low: bool = False
    is_open_high: bool = False

    def holds(self, other: _Interval) -> bool:
        """Whether all numbers of the other interval are in this interval."""
        is_low_in = other.low > self.low or (other.low == self.low and (other.is_open_low or not self.is_open_low))
        is_high_in = other.high < self.high or (
            other.high == self.high and (other.is_open_high or not self.is_open_high)
        )
        return is_low_in and is_high_in


@dataclass(frozen=True)
class _Test:
    """A condition that is true for no NULL: its operand, and at most one of the forms that can be compared."""

    operand: str
    literals: LiteralClass | None = None
    interval: _Interval | None = None  # of comparisons and BETWEEN
    values: frozenset[Decimal] | frozenset[str] | None = None  # of IN
    prefix: str | None = None  # of LIKE


@dataclass(frozen=True)
class _ParsedCondition:
    """A condition after parsing; `is_not_null_of` is the operand of IS NOT NULL."""

    text: str
    test: _Test | None
    is_not_null_of: str | None


def implies(stronger: str, weaker: str) -> bool:
    """Whether the weaker condition is true wherever the stronger condition is true; False also means "not known".

    Both are the `shared_sql` of a `Selection`.

    >>> implies("`a` > 10", "`a` > 5"), implies("`a` > 5", "`a` > 10")
    (True, False)
    >>> implies("`a` IN (1, 2)", "`a` < 3"), implies("`a` BETWEEN 2 AND 4", "NOT `a` IS NULL")
    (True, True)
    >>> implies("`a` LIKE 'ab%'", "`a` LIKE 'a%'"), implies("`a` > 10", "`b` > 5")
    (True, False)
    """
    strong_condition, weak_condition = _read(stronger), _read(weaker)
    if strong_condition.text == weak_condition.text:
        return True
    strong, weak = strong_condition.test, weak_condition.test
    if strong is None:
        return False
    if weak_condition.is_not_null_of is not None:
        return strong.operand == weak_condition.is_not_null_of
    if weak is None or (strong.operand, strong.literals) != (weak.operand, weak.literals):
        return False
    return _is_part(strong, weak)


def _is_part(strong: _Test, weak: _Test) -> bool:
    """Whether all values that pass the first test pass the second, if operand and class of literals are the same."""
    if weak.prefix is not None:
        return strong.prefix is not None and strong.prefix.startswith(weak.prefix)
    if weak.values is not None:
        # An equality does not imply IN: under legacy casts, the text '01' equals 1 but is not IN (1, 2).
        return strong.values is not None and strong.values <= weak.values
    if weak.interval is None:
        return False
    if strong.values is not None:
        return all(weak.interval.holds(_Interval(Decimal(value), Decimal(value))) for value in strong.values)
    return strong.interval is not None and weak.interval.holds(strong.interval)


@lru_cache(maxsize=4096)  # a condition is compared with all others of a session
def _read(text: str) -> _ParsedCondition:
    tree: Expr = sqlglot.parse_one(text, dialect=VerbatimSpark)
    while isinstance(tree, e.Paren):
        tree = tree.this
    operand = render(tree.this.this) if _is_not_null(tree) else None
    return _ParsedCondition(render(tree), _read_test(tree), operand)


def _is_not_null(tree: Expr) -> bool:
    return isinstance(tree, e.Not) and isinstance(tree.this, e.Is) and isinstance(tree.this.expression, e.Null)


def _read_test(tree: Expr) -> _Test | None:
    """The test that a condition makes, or None if it may be true for NULL or is of another form."""
    if type(tree) in _COMPARISONS:
        return _read_comparison(tree)
    reader = _READERS.get(type(tree))
    if reader is None or not isinstance(tree.this, e.Column | e.Dot):
        return None
    return reader(render(tree.this), tree)


def _read_comparison(tree: Expr) -> _Test | None:
    """The test of a comparison of a column and a constant: `a > 5`, or `5 < a`."""
    sign, column, constant = _COMPARISONS[type(tree)], tree.this, tree.expression
    if not isinstance(column, e.Column | e.Dot):
        sign, column, constant = _MIRRORED[sign], constant, column
    if not isinstance(column, e.Column | e.Dot):
        return None
    operand = render(column)
    number = _read_number(constant)
    if number is None:
        return _Test(operand)
    literals, value = number
    low = value if sign in {"=", ">", ">="} else -_UNBOUNDED
    high = value if sign in {"=", "<", "<="} else _UNBOUNDED
    return _Test(operand, literals, interval=_Interval(low, high, is_open_low=sign == ">", is_open_high=sign == "<"))


def _read_between(operand: str, tree: Expr) -> _Test:
    low, high = _read_number(tree.args["low"]), _read_number(tree.args["high"])
    if low is None or high is None or low[0] != high[0]:
        return _Test(operand)
    return _Test(operand, low[0], interval=_Interval(low[1], high[1]))


def _read_like(operand: str, tree: Expr) -> _Test:
    pattern = str(tree.expression.name) if _is_text(tree.expression) else ""
    prefix = pattern.removesuffix("%")
    if prefix == pattern or any(special in prefix for special in "%_\\"):
        return _Test(operand)
    return _Test(operand, "text", prefix=prefix)


def _read_in(operand: str, tree: Expr) -> _Test:
    if tree.expressions and all(map(_is_text, tree.expressions)):
        return _Test(operand, "text", values=frozenset(str(text.name) for text in tree.expressions))
    numbers = [_read_number(item) for item in tree.expressions]
    classes = {None if number is None else number[0] for number in numbers}
    if len(classes) != 1 or None in classes:
        return _Test(operand)
    return _Test(operand, classes.pop(), values=frozenset(number[1] for number in numbers if number is not None))


def _is_text(tree: Expr) -> bool:
    return isinstance(tree, e.Literal) and bool(tree.is_string)


def _read_number(tree: Expr) -> tuple[LiteralClass, Decimal] | None:
    """The class and the value of a number that no implicit cast rounds."""
    if isinstance(tree, e.Neg):
        number = _read_number(tree.this)
        return None if number is None else (number[0], -number[1])
    if not isinstance(tree, e.Literal) or tree.is_string or not set(str(tree.name)) <= set("0123456789."):
        return None
    value = Decimal(tree.name)
    if tree.is_int:
        return ("integer", value) if abs(value) <= _LARGEST_EXACT_INTEGER else None
    return ("decimal", value) if len(value.as_tuple().digits) <= _MOST_EXACT_DIGITS else None


_READERS: dict[type[Expr], Callable[[str, Expr], _Test]] = {
    e.Between: _read_between,
    e.In: _read_in,
    e.Like: _read_like,
}
