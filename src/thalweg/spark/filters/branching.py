"""Branches of a conjunction that Spark evaluates: an order for each class of rows, in one CASE.

Spark keeps the order of a conjunction within a branch, and evaluates no branch but the row's own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.branches import Branch, Branches, Test, branches_of
from thalweg.spark.filters.forms import Place
from thalweg.spark.operators import all_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from thalweg.spark.filters.plan import Stage
    from thalweg.spark.filters.query import FilterQuery

# Where a value stands on a line, for types that Arrow and Spark number alike.
NUMBERS = {"date": "unix_date", "timestamp": "unix_micros"}
FRACTIONS = ("float", "double")


@dataclass(frozen=True)
class Branching:
    """The evidence of a sample about branches for some conditions, and the branches if they pay."""

    conditions: tuple[int, ...]  # the numbers of the predicates
    branches: Branches | None
    considered: Mapping[str, Any] = field(default_factory=dict)  # candidates, pruned columns and counts, for explain

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "conditions": list(self.conditions),
            "branches": None if self.branches is None else self.branches.to_dict(),
            "considered": dict(self.considered),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], attributes: Sequence[str]) -> Branching:
        """The branching that `to_dict` gave, for a query with these attributes; checked."""
        conditions, branches = tuple(saved["conditions"]), saved["branches"]
        found = None if branches is None else Branches.from_dict(branches, len(conditions), attributes)
        return cls(conditions, found, dict(saved["considered"]))


def branched(
    branches: Branches, types: Mapping[str, Any], conditions: Sequence[Column], overall: Sequence[int]
) -> Column:
    """The conjunction of conditions in the order of each row's class; `types` are the attributes' types."""
    from pyspark.sql import functions as f

    def in_order(order: Sequence[int]) -> Column:
        return all_of([conditions[place] for place in order])

    case: Any = f
    for branch in branches.branches:
        is_of = _is_of(branch, branches.attributes, types)
        # `is_of` is true here. Without it all branches would be the same to Spark, which knows that AND commutes, and
        # it would keep only a single branch.
        case = case.when(is_of, in_order(branch.order) & is_of)
    column: Column = case.otherwise(in_order(overall))
    return column


def branchings_of(
    stages: Sequence[Stage],
    query: FilterQuery,
    judged: tuple[Integers, Floats],
    values: Mapping[str, pa.Array],
    pruning: Collection[int] = (),
) -> tuple[Branching, ...]:
    """The evidence of a sample about branches for the conditions of each stage.

    Conditions that reach the data's source, and those by which Spark prunes partitions, stay ahead of all branches:
    Spark hands no branch to a source. `judged` are drop masks and costs of all predicates; `values` belong to the
    columns that may tell classes apart.
    """
    types = query.routes.types if query.routes is not None else {}
    untold = {name: reason for name, kind in types.items() if (reason := untestable(kind))}
    masks, costs = judged
    required = query.required
    alive = np.ones(masks.size, np.bool_)  # rows that the stages before keep
    found = []
    for stage in stages:
        conditions = stage.predicates if stage.place is Place.SPARK else ()
        ahead = [number for number in conditions if query.forms[number].reaches_source or number in pruning]
        slow = sorted(number for number in conditions if number not in ahead)
        waits = any(required[number] >> other & 1 for number in ahead for other in slow)
        if len(slow) > 1 and not waits:
            dropped = np.logical_or.reduce([masks >> number & 1 == 1 for number in ahead], initial=False)
            rows = np.flatnonzero(alive & ~dropped)
            part = sum((masks[rows] >> number & 1) << place for place, number in enumerate(slow))
            before = np.array(
                [sum(int(required[number] >> other & 1) << at for at, other in enumerate(slow)) for number in slow]
            )
            columns = {name: column.take(pa.array(rows)) for name, column in values.items() if name not in untold}
            branches, considered = branches_of(np.asarray(part, np.int64), costs[slow], before, columns)
            considered["pruned"] |= untold
            found.append(Branching(tuple(slow), branches, considered))
        for number in stage.predicates:
            alive &= masks >> number & 1 == 0
    return tuple(found)


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
        all_of([_test(name, types[name], test) for name, test in zip(attributes, cell, strict=True)])
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
    if low is None and high is None:  # values that are no numbers
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
