"""Ranges between event times, such as ``b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES``, make windows shorter.

Windows and ranges are bounds of one kind: no row of a result is later than another row of it by more than so much. From
all such bounds follow the tightest bounds, by the shortest paths between streams. If all other rows of a result come at
most ten minutes after a row, that row can be dropped after ten minutes. The conditions themselves are still tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from thalweg.durations import UNITS
from thalweg.mjoin import TimeWindow
from thalweg.spark.joins.condition import Condition
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.kinds import NotExactError
from thalweg.spark.joins.residuals import interval_microseconds

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

DAY = UNITS["day"]


class TimeBound(NamedTuple):
    """The event time of `later` is at most so many microseconds after that of `earlier`, in every result."""

    earlier: str
    later: str
    microseconds: int


class ShiftedTime(NamedTuple):
    """An event time, and an interval that is added to it."""

    stream: str
    microseconds: int
    has_days: bool  # which are 23 or 25 hours long where clocks change


def narrow_windows(inputs: Sequence[JoinInput], condition: Condition, time_zone: str) -> list[JoinInput]:
    """The inputs of a streaming query, with windows as short as the ranges in the condition allow."""
    times = {each.name: each.time for each in inputs if each.time}
    has_changes = any(each.types[each.time].simpleString() == "timestamp" for each in inputs if each.time)
    bounds = time_bounds(condition, times, days_vary=has_changes and time_zone not in {"UTC", "Etc/UTC"})
    if not bounds:
        return list(inputs)
    windows = {
        each.name: each.window.microseconds if isinstance(each.window, TimeWindow) else None
        for each in inputs
        if each.time
    }
    needed = needed_windows(windows, bounds)
    return [
        replace(each, window=TimeWindow(needed[each.name]))
        if each.name in needed and (each.window is None or isinstance(each.window, TimeWindow))
        else each
        for each in inputs
    ]


def needed_windows(windows: dict[str, int | None], bounds: Sequence[TimeBound]) -> dict[str, int]:
    """How long rows of each stream are needed, from the windows and bounds; streams without any end are left out.

    >>> bounds = [TimeBound("a", "b", 600), TimeBound("b", "a", 0)]
    >>> needed_windows({"a": 3600, "b": 3600}, bounds)
    {'a': 601, 'b': 1}
    >>> needed_windows({"a": None, "b": 3600}, bounds[:1])
    {'a': 601, 'b': 3600}
    """
    after: dict[tuple[str, str], float] = {}  # by how much the second stream's row may be later than the first's
    for first, second in permutations(windows, 2):
        window = windows[first]
        after[first, second] = inf if window is None else window - 1
    for bound in bounds:
        pair = bound.earlier, bound.later
        after[pair] = min(after[pair], bound.microseconds)
    for through, first, second in permutations(windows, 3):
        after[first, second] = min(after[first, second], after[first, through] + after[through, second])
    needed = {name: max(after[name, other] for other in windows if other != name) for name in windows}
    return {name: max(int(age), 0) + 1 for name, age in needed.items() if age < inf}


def time_bounds(condition: Condition, times: dict[str, str], *, days_vary: bool) -> list[TimeBound]:
    """The bounds that a condition sets on the event times of streams."""
    import sqlglot

    from thalweg.sql.dialect import VerbatimSpark

    bounds = [
        TimeBound(first.stream, second.stream, 0)
        for equality in condition.equalities
        if all(times.get(side.stream) == side.name for side in equality)
        for first, second in permutations(equality)
    ]
    for text, attributes in condition.residuals:
        if all(times.get(attribute.stream) == attribute.name for attribute in attributes):
            for low, high in _comparisons(sqlglot.parse_one(text, dialect=VerbatimSpark)):
                earlier, later = _shifted(low), _shifted(high)
                if earlier and later and earlier.stream != later.stream:  # low <= high: the low operand is not later
                    slack = DAY if days_vary and (earlier.has_days or later.has_days) else 0
                    at_most = later.microseconds - earlier.microseconds + slack
                    bounds.append(TimeBound(later.stream, earlier.stream, at_most))
    return bounds


def _comparisons(expression: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The pairs of expressions in a condition of which the first is not greater than the second."""
    from sqlglot import expressions as e

    expression = expression.unnest()
    if isinstance(expression, e.Between) and not expression.args.get("symmetric"):
        yield expression.args["low"], expression.this
        yield expression.this, expression.args["high"]
    if isinstance(expression, e.LT | e.LTE):
        yield expression.this, expression.expression
    if isinstance(expression, e.GT | e.GTE):
        yield expression.expression, expression.this


def _shifted(expression: Expr) -> ShiftedTime | None:
    """An event time with an interval; None if the expression is anything else."""
    from sqlglot import expressions as e

    expression = expression.unnest()
    if isinstance(expression, e.Column):
        return ShiftedTime(expression.table, 0, has_days=False)
    if not isinstance(expression, e.Add | e.Sub):
        return None
    time, interval = expression.this.unnest(), expression.expression.unnest()
    if isinstance(expression, e.Add) and isinstance(time, e.Interval):
        time, interval = interval, time
    before = _shifted(time)
    if before is None or not isinstance(interval, e.Interval):
        return None
    try:
        length = interval_microseconds(interval)
    except NotExactError:
        return None
    sign = -1 if isinstance(expression, e.Sub) else 1
    return ShiftedTime(before.stream, before.microseconds + sign * length, before.has_days or abs(length) >= DAY)
