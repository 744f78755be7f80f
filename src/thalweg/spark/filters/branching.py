"""Branches of a conjunction that Spark evaluates: an order for each class of rows, in one CASE.

Spark keeps the order of a conjunction within a branch, and evaluates no branch but the row's own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.branches import Branch, Branches, Test, branches_of
from thalweg.spark.filters.forms import Form, NativeForm

if TYPE_CHECKING:
    from pyspark.sql import Column

# Where a value stands on a line, for types that Arrow and Spark number alike.
NUMBERS = {"date": "unix_date", "timestamp": "unix_micros"}
FRACTIONS = ("float", "double")


def branched(
    branches: Branches, types: Mapping[str, Any], conditions: Sequence[Column], overall: Sequence[int]
) -> Column:
    """The conjunction of conditions in the order of each row's class; types are those of the attributes."""
    from pyspark.sql import functions as f

    def in_order(order: Sequence[int]) -> Column:
        return reduce(operator.and_, [conditions[one] for one in order])

    case: Any = f
    for branch in branches.branches:
        is_of = _is_of(branch, branches.attributes, types)
        # Which is true here. Without it all branches would be the same to Spark, which knows that AND commutes, and it
        # would keep one of them.
        case = case.when(is_of, in_order(branch.order) & is_of)
    column: Column = case.otherwise(in_order(overall))
    return column


def choose_branches(
    stages: Sequence[Sequence[int]],
    forms: Sequence[Form],
    required: Integers,
    judged: tuple[Integers, Floats],
    values: Mapping[str, pa.Array],
    types: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """What a sample says of branches for the conditions of each stage, and the branches if they pay; as plain values.

    Cheap conditions stay ahead of all branches: there is little to save, and Spark may hand them to the data's source.
    `judged` are drop masks and costs of all predicates; values and types are those of columns that may tell classes.
    """
    untold = {name: reason for name, kind in types.items() if (reason := untestable(kind))}
    masks, costs = judged
    alive = np.ones(masks.size, np.bool_)  # rows that the stages before keep
    found = []
    for stage in stages:
        natives = {one: form for one in stage if isinstance(form := forms[one], NativeForm)}
        slow = sorted(one for one, form in natives.items() if not form.facts.cheap)
        cheap = [one for one in natives if one not in slow]
        waits = any(required[one] >> other & 1 for one in cheap for other in slow)
        if len(slow) > 1 and not waits:
            rows = np.flatnonzero(
                alive & ~np.logical_or.reduce([masks >> one & 1 == 1 for one in cheap], initial=False)
            )
            part = sum((masks[rows] >> one & 1) << at for at, one in enumerate(slow))
            before = np.array(
                [sum(int(required[one] >> other & 1) << at for at, other in enumerate(slow)) for one in slow]
            )
            branches, about = branches_of(
                np.asarray(part, np.int64),
                costs[slow],
                before,
                {name: column.take(pa.array(rows)) for name, column in values.items() if name not in untold},
            )
            about["pruned"] |= untold
            found.append({"conditions": slow, **about, **(branches.to_dict() if branches else {})})
        for one in stage:
            alive &= masks >> one & 1 == 0
    return found


def untestable(kind: Any) -> str | None:  # noqa: ANN401 - a Spark type
    """Why Spark cannot be told classes by columns of a type, or None if it can."""
    if kind.typeName() in {"binary", "timestamp_ntz", "time"} or "interval" in kind.typeName():
        return f"classes in Spark are not told by a {kind.typeName()}"
    return None


def _is_of(branch: Branch, attributes: Sequence[str], types: Mapping[str, Any]) -> Column:
    """Whether a row is of a class."""
    if len(attributes) == 1:  # all values in one list
        name, tests = attributes[0], [test for (test,) in branch.cells]
        kind = types[name]
        values = [_literal(test[1], kind) for test in tests if _is_value(test)]
        listed = [_number(name, kind).isin(values)] if values else []
        return reduce(operator.or_, [*listed, *(_test(name, kind, test) for test in tests if not _is_value(test))])
    cells = [
        reduce(operator.and_, (_test(name, types[name], one) for name, one in zip(attributes, cell, strict=True)))
        for cell in branch.cells
    ]
    return reduce(operator.or_, cells)


def _test(name: str, kind: Any, test: Test) -> Column:  # noqa: ANN401 - a Spark type
    """Whether a column has a value, or lies in a range."""
    from pyspark.sql import functions as f

    column: Column = _number(name, kind)
    if _is_value(test):
        return column.eqNullSafe(_literal(test[1], kind))
    if test[0] == "is":
        return column.isNull() if test[1] is None else f.isnan(column)
    low, high = test[1:]
    if low is None and high is None:  # what is no number
        return column.isNull() | f.isnan(column) if kind.typeName() in FRACTIONS else column.isNull()
    above, below = f.lit(low) <= column, column < f.lit(high)
    return below if low is None else above if high is None else above & below


def _number(name: str, kind: Any) -> Column:  # noqa: ANN401 - a Spark type
    """A column, as a number if it is a time."""
    from pyspark.sql import functions as f

    function = NUMBERS.get(kind.typeName())
    return f.col(name) if function is None else f.call_function(function, f.col(name))


def _literal(value: Any, kind: Any) -> Column:  # noqa: ANN401 - a plain value and a Spark type
    from pyspark.sql import functions as f

    return f.lit(value).cast(kind) if kind.typeName() == "decimal" else f.lit(value)


def _is_value(test: Test) -> bool:
    """Whether a test is for a value that equals itself: neither a range nor NULL nor NaN."""
    return test[0] == "is" and test[1] is not None and not (isinstance(test[1], float) and math.isnan(test[1]))
