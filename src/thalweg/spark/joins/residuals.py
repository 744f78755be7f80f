"""Join conditions that are no equality of two attributes, such as `R1.a < R2.b + 5`, for whole columns of candidates.

Parsed by sqlglot, evaluated by Arrow. NULL as in SQL; NaN is above all numbers and equal to itself, as in Spark.
Nothing raises: integers that would overflow are computed in wider decimals, because which candidates are tried depends
on the order, and answers must not. This module knows no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

Columns = Mapping[tuple[str, str], pa.Array]
Evaluate = Callable[[Columns], Any]  # from columns to a column or a scalar

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
TIME = pa.timestamp("us")
WHOLE = pa.decimal256(19, 0)  # any bigint, in a type whose sums and products are wider
SUPPORTED = "comparisons, AND, OR, NOT, IS NULL, BETWEEN, IN, + - *, abs, numbers, texts, booleans and INTERVALs"


@dataclass(frozen=True)
class CandidateTest:
    """A condition, ready to be sent to workers: its text, and the attributes it takes, in this order.

    `times` are the attributes that come as int64 microseconds and are times.

    >>> test = CandidateTest("A.x < B.y - 1", (("A", "x"), ("B", "y")))
    >>> test(pa.array([1, 1, None]), pa.array([5, 2, 9])).to_pylist()
    [True, False, None]
    """

    text: str
    columns: tuple[tuple[str, str], ...]
    times: frozenset[tuple[str, str]] = frozenset()

    def __call__(self, *columns: pa.Array) -> pa.BooleanArray:
        """Whether the condition holds for each candidate; NULL where that is not known."""
        given = {
            name: column.view(TIME) if name in self.times else _plain(column)
            for name, column in zip(self.columns, columns, strict=True)
        }
        found = self._evaluate(given)
        return pa.repeat(found, len(columns[0])) if isinstance(found, pa.Scalar) else found

    @cached_property
    def _evaluate(self) -> Evaluate:
        import sqlglot

        return compile_expression(sqlglot.parse_one(self.text, read="spark"))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text, "columns": self.columns, "times": self.times}  # not the compiled function


def compile_expression(expression: Expr) -> Evaluate:
    """A function that evaluates an expression; an error names a part that is not supported."""
    from sqlglot import expressions as e

    functions: dict[type[Any], Callable[..., Any]] = {
        e.EQ: _equal,
        e.NEQ: lambda left, right: pc.invert(_equal(left, right)),
        e.LT: _less,
        e.GT: lambda left, right: _less(right, left),
        e.LTE: lambda left, right: pc.invert(_less(right, left)),
        e.GTE: lambda left, right: pc.invert(_less(left, right)),
        e.And: pc.and_kleene,
        e.Or: pc.or_kleene,
        e.Add: _arithmetic(pc.add_checked),
        e.Sub: _arithmetic(pc.subtract_checked),
        e.Mul: _arithmetic(pc.multiply_checked),
        e.Not: pc.invert,
        e.Neg: _arithmetic(pc.negate_checked),
        e.Abs: _arithmetic(pc.abs_checked),
    }
    if isinstance(expression, e.Paren):
        return compile_expression(expression.this)
    if isinstance(expression, e.Column):
        attribute = (expression.table, expression.name)
        return lambda columns: columns[attribute]
    if isinstance(expression, e.Literal | e.Boolean | e.Null | e.Interval):
        value = _literal(expression)
        return lambda _columns: value
    if isinstance(expression, e.Between):
        low = e.GTE(this=expression.this, expression=expression.args["low"])
        high = e.LTE(this=expression.this, expression=expression.args["high"])
        return compile_expression(e.And(this=low, expression=high))
    if isinstance(expression, e.In) and expression.expressions:
        equalities = [e.EQ(this=expression.this, expression=value) for value in expression.expressions]
        return compile_expression(e.or_(*equalities))
    parts = [expression.this, *([expression.expression] if expression.expression else [])]
    function = functions.get(type(expression))
    if isinstance(expression, e.Is) and isinstance(expression.expression, e.Null):
        parts, function = [expression.this], pc.is_null
    if function is None:
        raise ValueError(
            f"{expression.sql()!r} is not supported between streams; write it with {SUPPORTED}, or filter the result "
            f"of tw.join with .where(...)"
        )
    operands = [compile_expression(part) for part in parts]
    return lambda columns: function(*(operand(columns) for operand in operands))


def _literal(expression: Expr) -> pa.Scalar:
    from sqlglot import expressions as e

    if isinstance(expression, e.Null):
        return pa.scalar(None, pa.bool_())
    if isinstance(expression, e.Boolean):
        return pa.scalar(bool(expression.this))
    if isinstance(expression, e.Interval):
        unit = str(expression.args.get("unit") or "").upper().removesuffix("S")
        if unit not in MICROSECONDS:
            raise ValueError(f"{expression.sql()!r} has no fixed length; write it like INTERVAL '5' MINUTES")
        return pa.scalar(int(float(expression.this.name) * MICROSECONDS[unit]), pa.duration("us"))
    if expression.is_string:
        return pa.scalar(expression.name)
    return pa.scalar(int(expression.name) if expression.is_int else float(expression.name))


def _plain(column: pa.Array) -> pa.Array:
    """Integers as int64, and timestamps without their zone, whose values are in UTC in any case."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(TIME)
    return column.cast(pa.int64()) if pa.types.is_integer(kind) else column


def _equal(left: Any, right: Any) -> Any:  # noqa: ANN401 - columns or scalars
    holds = pc.equal(left, right)
    if pa.types.is_floating(left.type) and pa.types.is_floating(right.type):
        holds = pc.or_kleene(holds, pc.and_kleene(pc.is_nan(left), pc.is_nan(right)))
    return holds


def _less(left: Any, right: Any) -> Any:  # noqa: ANN401 - columns or scalars
    holds = pc.less(left, right)
    if pa.types.is_floating(right.type):
        is_number = pc.invert(pc.is_nan(left)) if pa.types.is_floating(left.type) else pc.equal(left, left)
        holds = pc.or_kleene(holds, pc.and_kleene(is_number, pc.is_nan(right)))
    return holds


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(*sides: Any) -> Any:  # noqa: ANN401 - columns or scalars
        try:
            return function(*sides)
        except pa.ArrowInvalid:
            return function(*(side.cast(WHOLE) if pa.types.is_integer(side.type) else side for side in sides))

    return compute
