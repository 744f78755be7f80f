"""`tw.adapt` with Spark Connect: works on the relations that the client holds, before the server has seen them.

A filter and the filters right below it become the relation that `tw.where` would make of their conditions. Relations
keep their numbers, by which columns such as `df.a` find them. The text of `spark.sql` is analysed at the server alone:
filters in it stay as they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.left_alone import ALL_CHEAP, CACHED, IN_TEXT, ONE_SLOW, SINGLE, SUBQUERY, Left, LeftFilter
from thalweg.spark.filters.lower import lower
from thalweg.spark.filters.query import FilterOptions, ask
from thalweg.spark.filters.sample_worth import pays_unsampled
from thalweg.spark.filters.split.names import client_sql
from thalweg.spark.filters.where import look, record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXTS = ("SQL", "CachedRelation")  # relations of `spark.sql`
OURS = ("thalweg:", "thalweg_")  # in the text of a condition that Thalweg has made


def is_refused(frame: Any) -> bool:  # noqa: ANN401 - as above
    """Whether Spark cannot analyse a DataFrame, which Connect finds out when it runs, not when it is made."""
    from pyspark.errors import AnalysisException

    try:
        _ = frame.select("*").schema  # of a filter, PySpark takes the schema for that of its input
    except AnalysisException:
        return True
    return False


class Relations:
    """A DataFrame's relations on their way to adaptive filters."""

    def __init__(self, frame: Any, sample: bool | None) -> None:  # noqa: ANN401, FBT001 - of Connect; as `adapt` has it
        self._frame = frame
        self._spark = frame.sparkSession
        self._sample = sample
        left: list[LeftFilter] = []
        self._left = left
        self.tell: Callable[[DataFrame], Left] = lambda _: left  # which filters were left alone
        self._done: dict[int, tuple[Any, Any]] = {}  # by identity: a relation may be held in several places

    def run(self) -> DataFrame:
        """The DataFrame with adaptive filters; the same object if nothing changes."""
        plan = self._frame._plan  # noqa: SLF001 - no public way
        adapted = self.relation(plan)
        found: DataFrame = self.frame_of(adapted) if adapted is not plan else self._frame
        return found

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
        if type(node).__name__ in TEXTS:
            return self._leave(node, node, IN_TEXT)
        if self._is_cached(node):
            return self._leave(node, node, CACHED) if type(node).__name__ == "Filter" else node
        filters, below = list[Any](), node
        while type(below).__name__ == "Filter" and _may_change(below) and not (filters and self._is_cached(below)):
            filters.append(below)
            below = below._child  # noqa: SLF001 - no public way
        if not filters:
            if type(below).__name__ == "Filter" and not _is_ours(below):
                self._leave(below, below.filter, SUBQUERY)
            return self._with_children(below)
        child = self.relation(below)
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
        frame, condition = self.frame_of(child), reduce(operator.and_, conditions)
        query = ask(frame, [condition], FilterOptions(), may_join=False)
        if not query.has_choice:
            return self._leave(None, condition, "; ".join(query.notes) or SINGLE)
        evidence, notes = look(query, frame, sample=self._sample)
        if evidence is None and not query.runs_in_python and not pays_unsampled(query, frame):
            few = ONE_SLOW if any(not form.is_cheap for form in query.forms) else ALL_CHEAP
            return self._leave(None, condition, "; ".join([*query.notes, *notes]) or few)
        run = record(query, evidence, notes)
        lowered: Any = lower(query, run.plan, frame)
        return lowered._plan  # noqa: SLF001 - no public way

    def _leave(self, node: Any, what: Any, reason: str) -> Any:  # noqa: ANN401 - a relation; a relation or a condition
        """Leave a relation as it is, and note why."""
        self._left.append(LeftFilter(lambda: _text_of(what), lambda: reason))
        return node

    def _is_cached(self, node: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the rows of a relation are cached at the server; another relation would not find them there."""
        level = self.frame_of(node).storageLevel
        return bool(level.useMemory or level.useDisk or level.useOffHeap)


def _may_change(node: Any) -> bool:  # noqa: ANN401 - a filter of Connect
    """Whether a filter has no subqueries, and was not made by Thalweg."""
    return not node._references and not _is_ours(node)  # noqa: SLF001 - no public way


def _is_ours(node: Any) -> bool:  # noqa: ANN401 - a filter of Connect
    text = str(node.filter)
    return any(mark in text for mark in OURS)


def _text_of(what: Any) -> str:  # noqa: ANN401 - a relation or a condition
    if type(what).__name__ in TEXTS:
        try:
            return str(what._query if type(what).__name__ == "SQL" else what._plan.sql.query)  # noqa: SLF001 - no public way
        except AttributeError:  # a version of PySpark that keeps it elsewhere
            return "spark.sql"
    condition = what.filter if type(what).__name__ == "Filter" else what
    return client_sql(condition._expr)  # noqa: SLF001 - as above


def _on_top(child: Any, node: Any) -> Any:  # noqa: ANN401 - relations of Connect
    """The same filter on another relation."""
    changed = copy(node)
    changed._child = child  # noqa: SLF001 - no public way
    return changed
