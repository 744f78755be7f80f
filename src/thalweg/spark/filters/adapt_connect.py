"""`tw.adapt` with Spark Connect: works on the relations that the client holds, before the server has seen them.

A filter and the filters right below it become the relation that `tw.where` would make of their conditions. Relations
keep their numbers, by which columns such as `df.a` find them. The text of `spark.sql` is analysed at the server alone:
filters in it stay as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.lower import lower
from thalweg.spark.filters.query import FilterOptions, ask
from thalweg.spark.filters.sample_worth import pays_unsampled
from thalweg.spark.filters.where import look, record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OURS = ("thalweg:", "thalweg_")  # in the text of a condition that Thalweg has made


def adapt_relations(frame: Any) -> DataFrame:  # noqa: ANN401 - a DataFrame of Connect
    """The DataFrame with adaptive filters; the same object if nothing changes."""
    adaptation = _Relations(frame.sparkSession)
    adapted = adaptation.relation(frame._plan)  # noqa: SLF001 - no public way
    return adaptation.frame_of(adapted) if adapted is not frame._plan else frame  # type: ignore[no-any-return]  # noqa: SLF001


def is_refused(frame: Any) -> bool:  # noqa: ANN401 - as above
    """Whether Spark cannot analyse a DataFrame, which Connect finds out when it runs, not when it is made."""
    from pyspark.errors import AnalysisException

    try:
        _ = frame.select("*").schema  # of a filter, PySpark takes the schema for that of its input
    except AnalysisException:
        return True
    return False


class _Relations:
    """Relations on their way to adaptive filters."""

    def __init__(self, spark: Any) -> None:  # noqa: ANN401 - a session of Connect
        self._spark = spark
        self._done: dict[int, tuple[Any, Any]] = {}  # by identity: a relation may be held in several places

    def relation(self, node: Any) -> Any:  # noqa: ANN401 - relations of Connect
        """A relation whose filters are adaptive; the very same object if nothing changes."""
        if id(node) not in self._done:
            self._done[id(node)] = node, self._adapted(node)
        return self._done[id(node)][1]

    def frame_of(self, relation: Any) -> Any:  # noqa: ANN401 - a relation, a DataFrame
        """The DataFrame of a relation."""
        from pyspark.sql.connect.dataframe import DataFrame

        return DataFrame(relation, self._spark)

    def _adapted(self, node: Any) -> Any:  # noqa: ANN401 - as above
        if self._is_cached(node):
            return node
        filters, below = list[Any](), node
        while type(below).__name__ == "Filter" and _may_change(below) and not (filters and self._is_cached(below)):
            filters.append(below)
            below = below._child  # noqa: SLF001 - no public way
        child = self._with_children(below) if not filters else self.relation(below)
        if not filters:
            return child
        filtered = self._filtered([each.filter for each in reversed(filters)], child)
        if filtered is None:
            return node if child is below else reduce(_on_top, reversed(filters), child)
        filtered._root_plan_id = node._root_plan_id  # noqa: SLF001 - columns of the filter find it by this number
        return filtered

    def _with_children(self, node: Any) -> Any:  # noqa: ANN401 - as above
        from pyspark.sql.connect.plan import LogicalPlan

        children = {name: value for name, value in vars(node).items() if isinstance(value, LogicalPlan)}
        new = {name: self.relation(child) for name, child in children.items()}
        if all(new[name] is child for name, child in children.items()):
            return node
        changed = copy(node)
        vars(changed).update(new)
        return changed

    def _filtered(self, conditions: Sequence[Any], child: Any) -> Any:  # noqa: ANN401 - as above
        """The adaptive relation of conditions on a relation; None where there is nothing to gain."""
        frame = self.frame_of(child)
        query = ask(frame, [reduce(operator.and_, conditions)], FilterOptions(), may_join=False)
        if not query.has_choice:
            return None
        evidence, notes = look(query, frame)
        if evidence is None and not query.runs_in_python and not pays_unsampled(query, frame):
            return None
        run = record(query, evidence, notes)
        lowered: Any = lower(query, run.plan, frame)
        return lowered._plan  # noqa: SLF001 - no public way

    def _is_cached(self, node: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the rows of a relation are cached at the server; another relation would not find them there."""
        level = self.frame_of(node).storageLevel
        return bool(level.useMemory or level.useDisk or level.useOffHeap)


def _may_change(node: Any) -> bool:  # noqa: ANN401 - a filter of Connect
    """Whether a filter has no subqueries, and was not made by Thalweg."""
    text = str(node.filter)
    return not node._references and not any(mark in text for mark in OURS)  # noqa: SLF001 - no public way


def _on_top(child: Any, node: Any) -> Any:  # noqa: ANN401 - relations of Connect
    """The same filter on another relation."""
    changed = copy(node)
    changed._child = child  # noqa: SLF001 - no public way
    return changed
