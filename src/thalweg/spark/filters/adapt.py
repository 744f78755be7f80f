"""`tw.adapt`: the filters of a DataFrame as it is, wherever they are in its plan, made adaptive.

Works on the plan that Catalyst has analysed: a filter and the filters right below it become the plan that `tw.where`
would make of their conditions. Conditions on one side of a join go to that side first, as Spark's optimizer would move
them. Where nothing can be gained a filter stays as it is, and so does the whole DataFrame where Spark's objects are not
as expected.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from thalweg.keywords import checks_keywords
from thalweg.spark.analysis.harmless import Node
from thalweg.spark.analysis.trees import is_cheap, runs_python, tree_of
from thalweg.spark.filters.adapt_connect import OURS, Relations, is_refused
from thalweg.spark.filters.left_alone import (
    ALL_CHEAP,
    BEHIND_BLOCKING,
    ONE_SLOW,
    SINGLE,
    SUBQUERY,
    Left,
    LeftFilter,
    note_left,
)
from thalweg.spark.filters.lower import lower
from thalweg.spark.filters.query import FilterOptions, ask
from thalweg.spark.filters.sample_worth import WORTH_ORDERING, pays_unsampled
from thalweg.spark.filters.split.names import sql_name
from thalweg.spark.filters.where import check_frame, check_sample, look, record
from thalweg.spark.frames import is_streaming, schema_of
from thalweg.spark.jvm import CATALYST, java_class, java_method, java_value
from thalweg.spark.operators import analysed_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEFT, RIGHT = 0, 1
SIDES = {  # of a join that drop a row before or after it alike
    "INNER": (LEFT, RIGHT),
    "CROSS": (LEFT, RIGHT),
    "LEFT OUTER": (LEFT,),
    "LEFT SEMI": (LEFT,),
    "LEFT ANTI": (LEFT,),
    "RIGHT OUTER": (RIGHT,),
}
# Filters in the text of a plan, and calls of functions in them that may take time; a few too many do no harm.
FILTER, JOIN = re.compile(r"[\s:+\-|]*Filter (.*)"), re.compile(r"[\s:+\-|]*Join ")
SLOW = re.compile(
    r"\b(?:I?LIKE|RLIKE)\b|\bcast\([^()]*#[^()]* as (?:date|string|timestamp)|"
    r"\b(?!(?:abs|between|cast|char|coalesce|date_add|date_sub|datediff|decimal|isnan|isnotnull|isnull|nullif|nvl2?|outer|pmod|"
    r"varchar)\()"
    r"\w+\(",
    re.IGNORECASE,
)
BLOCKING = ("JOIN", "AGGREGATE", "SORT", "WINDOW")  # steps below a filter of which no sample is taken


@checks_keywords("tw.adapt")
def adapt(frame: DataFrame, *, sample: bool | None = None) -> DataFrame:
    """The same DataFrame with adaptive filters: the rows are the same, what is evaluated on them is not.

    Takes any DataFrame, such as the result of ``spark.sql`` or of somebody else's function. `tw.explain` tells of each
    filter that became adaptive, and of each that did not, with the reason. Filters stay as they are inside of what is
    cached, in subqueries, and where there is nothing to gain: with a single test, and where Spark evaluates all
    conditions and no sample is worth its price; with Spark Connect also in the text of ``spark.sql``, which the client
    does not analyse.

    Parameters
    ----------
    sample
        Whether to run a small job for each filter with several conditions, also for filters whose conditions are cheap
        and for short jobs. By default, where it is likely to pay; if False, never.

    Examples
    --------
    >>> adapted = adapt(spark.sql("SELECT * FROM orders WHERE score(body) > 0.5 AND url RLIKE 'x'"))  # doctest: +SKIP
    """
    check_frame(frame, "tw.adapt")
    check_sample(sample)
    is_classic = hasattr(frame, "_jdf")
    try:
        adaptation = _Adaptation(frame, sample) if is_classic else Relations(frame, sample)
        adapted = adaptation.run()
        is_same = adapted is not frame and schema_of(adapted) == schema_of(frame)
        return note_left(adapted if is_same else frame, adaptation.tell)
    except Exception as error:  # noqa: BLE001 - whatever another version of Spark has in its plans
        if is_classic or not is_refused(frame):  # else the error is the user's, and Spark will say so
            _warn(f"tw.adapt leaves the DataFrame as it is: {type(error).__name__}: {error}")
        failed = LeftFilter(lambda: "all filters", partial("it failed with {}: {}".format, type(error).__name__, error))
        return note_left(frame, lambda _: [failed])


class _Adaptation:
    """A classic DataFrame's plan on its way to adaptive filters."""

    def __init__(
        self,
        frame: Any,  # noqa: ANN401 - a classic DataFrame
        sample: bool | None = None,  # noqa: FBT001 - as `adapt` has it
        *,
        only_looks: bool = False,
    ) -> None:
        self._frame = frame
        self._sample = sample
        self._only_looks = only_looks  # for what is left alone; no filter becomes adaptive
        self._left: list[LeftFilter] = []
        self._spark = frame.sparkSession
        self._jvm = self._spark._jvm  # noqa: SLF001 - no public way
        self._runs_python = True  # whether a UDF is in the plan, as far as is known
        self._is_adaptive = False  # whether a filter has become adaptive
        self.tell: Callable[[DataFrame], Left] = _left_alone  # which filters were left alone

    def run(self) -> DataFrame:
        """The DataFrame with the plan that is adaptive; the same object if nothing changes."""
        written: DataFrame = self._frame
        execution = self._frame._jdf.queryExecution()  # noqa: SLF001 - no public way
        # With caches in place of the plans that fill them: a filter in there has run, or is to run once for all.
        plan = execution.analyzed() if is_streaming(self._frame) else execution.withCachedData()
        self._runs_python = self._contains(plan, "PYTHON_UDF", unless_known=True)
        if self._may_be_as_it_is(plan):
            return written  # most queries: to look at their plans step by step would take longer than all else
        left = self._left
        self.tell = lambda _: left
        adapted = self._plan(plan)
        return self._frame_of(adapted) if self._is_adaptive else written

    def _may_be_as_it_is(self, plan: Any) -> bool:  # noqa: ANN401 - a logical plan of the JVM
        """Whether nothing is to be gained, as far as the plan's text tells."""
        return not (self._runs_python or self._sample or self._only_looks or _may_take_time(plan.toString()))

    def _plan(self, node: Any) -> Any:  # noqa: ANN401 - logical plans of the JVM
        """A plan whose filters are adaptive; the very same object if nothing changes."""
        conditions: list[Any] = []  # of filters on top of one another, the innermost first
        below = node
        while (step := below.nodeName()) == "Filter" and not _is_ours(below):
            conditions.insert(0, below.condition())
            below = below.child()
        if not conditions:
            return self._with_children(node)
        has_subquery = java_method(self._jvm, f"{CATALYST}.expressions.SubqueryExpression", "hasSubquery")
        if step == "Join" or any(map(has_subquery, conditions)):  # which take some conjuncts apart from the others
            conditions = [conjunct for condition in conditions for conjunct in self._conjuncts(condition)]
        pushed = self._pushed_into_join(below, conditions) if step == "Join" else None
        child, rest = pushed or (self._with_children(below), conditions)
        plain: list[Any] = []
        with_subquery: list[Any] = []
        for condition in rest:
            (with_subquery if has_subquery(condition) else plain).append(condition)
        self._left += [self._left_filter(condition, SUBQUERY) for condition in with_subquery]
        filtered = self._filtered(plain, child) if plain else None
        if filtered is None:
            return node if child is below else self._filter(rest, child)
        return self._filter(with_subquery, filtered)

    def _with_children(self, node: Any) -> Any:  # noqa: ANN401 - as above
        if not self._contains(node, "FILTER", unless_known=True):
            return node
        children = node.children()
        old = [children.apply(place) for place in range(children.size())]
        new = [self._plan(child) for child in old]
        if all(after is before for after, before in zip(new, old, strict=True)):
            return node
        return self._made_of(node, new)

    def _made_of(self, node: Any, children: list[Any]) -> Any:  # noqa: ANN401 - as above
        return node.withNewChildren(java_class(self._jvm, "org.apache.spark.api.python.PythonUtils").toSeq(children))

    def _pushed_into_join(self, node: Any, conditions: Sequence[Any]) -> tuple[Any, list[Any]] | None:  # noqa: ANN401
        """A join whose sides have got the conditions on them, and the conditions that are left; None if none moves."""
        sides: list[Any] = [node.left(), node.right()]
        pushed: tuple[list[Any], list[Any]] = [], []
        rest = []
        for condition in conditions:
            for side in SIDES.get(node.joinType().sql(), ()):
                if condition.deterministic() and condition.references().subsetOf(sides[side].outputSet()):
                    pushed[side].append(condition)
                    break
            else:
                rest.append(condition)
        if not any(pushed):
            return None
        new = [self._plan(self._filter(own, side) if own else side) for own, side in zip(pushed, sides, strict=True)]
        return self._made_of(node, new), rest

    def _filtered(self, conditions: Sequence[Any], child: Any) -> Any:  # noqa: ANN401 - as above
        """The adaptive plan of conditions on a plan; None where there is nothing to gain."""
        condition = self._conjunction(conditions)
        in_python = self._runs_python and self._contains(condition, "PYTHON_UDF", unless_known=True)
        if not in_python and any(self._contains(child, step, unless_known=False) for step in BLOCKING):
            return self._leave(condition, lambda: _without_choice(tree_of(condition.toJSON())) or BEHIND_BLOCKING)
        reason = None if in_python else _without_choice(tree_of(condition.toJSON()))
        if self._only_looks:
            return self._leave(condition, reason or ONE_SLOW)
        if reason is not None and (reason == SINGLE or not self._sample):
            return self._leave(condition, reason)
        frame = self._frame_of(child)
        column = analysed_column(self._jvm, condition)
        query = ask(frame, [column], FilterOptions(), may_join=False)
        if not query.has_choice:
            return self._leave(condition, "; ".join(query.notes) or SINGLE)
        evidence, notes = look(query, frame, sample=self._sample)
        if evidence is None and not query.runs_in_python and not pays_unsampled(query, frame):
            return self._leave(condition, "; ".join([*query.notes, *notes]) or ONE_SLOW)
        self._is_adaptive = True
        run = record(query, evidence, notes)
        lowered: Any = lower(query, run.plan, frame)
        return lowered._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way

    def _leave(self, condition: Any, reason: str | Callable[[], str]) -> None:  # noqa: ANN401 - as above
        """Leave a filter as it is, and note why."""
        self._left.append(self._left_filter(condition, reason))

    def _left_filter(self, condition: Any, reason: str | Callable[[], str]) -> LeftFilter:  # noqa: ANN401 - as above
        return LeftFilter(lambda: _sql_of(condition), reason if callable(reason) else lambda: reason)

    def look(self) -> Left:
        """The filters of a plan that stays as it is."""
        self.run()
        return self._left

    def _contains(self, node: Any, pattern: str, *, unless_known: bool) -> bool:  # noqa: ANN401 - objects of the JVM
        """Whether a plan or an expression has a step or an expression of a kind in it."""
        from py4j.protocol import Py4JError

        try:
            return bool(node.containsPattern(java_value(self._jvm, f"{CATALYST}.trees.TreePattern", pattern)))
        except (Py4JError, TypeError):  # a version of Spark without this kind
            return unless_known

    def _conjuncts(self, condition: Any) -> list[Any]:  # noqa: ANN401 - expressions of the JVM
        if condition.nodeName() != "And":
            return [condition]
        return [*self._conjuncts(condition.left()), *self._conjuncts(condition.right())]

    def _filter(self, conditions: Sequence[Any], child: Any) -> Any:  # noqa: ANN401 - objects of the JVM
        """A filter as Spark has it; none where there is no condition."""
        if not conditions:
            return child
        return java_class(self._jvm, f"{CATALYST}.plans.logical.Filter")(self._conjunction(conditions), child)

    def _conjunction(self, conditions: Sequence[Any]) -> Any:  # noqa: ANN401 - as above
        return reduce(java_class(self._jvm, f"{CATALYST}.expressions.And"), conditions)

    def _frame_of(self, plan: Any) -> DataFrame:  # noqa: ANN401 - a logical plan of the JVM
        from pyspark.sql.classic.dataframe import DataFrame

        rows = java_method(self._jvm, "org.apache.spark.sql.classic.Dataset", "ofRows")
        return DataFrame(rows(self._spark._jsparkSession, plan), self._spark)  # noqa: SLF001 - no public way


def _may_take_time(plan_text: str) -> bool:
    r"""Whether some filter of a plan has several conditions that may take time, as far as the plan's text tells.

    Filters on top of one another are one filter, also with a join between them, into which conditions move.

    >>> _may_take_time("Filter ((a#1 > cast(5 as decimal(9,2))) AND b#2 LIKE x%)\n+- Range (0, 9)")
    False
    >>> _may_take_time("Project [a#1]\n+- Filter (length(b#2) > 3)\n   +- Filter RLIKE(b#2, x)\n      +- Range (0, 9)")
    True
    >>> _may_take_time("Filter (length(b#2) > 3)\n+- Project [b#2]\n   +- Filter RLIKE(b#2, x)\n      +- Range (0, 9)")
    False
    """
    slow = 0
    for line in plan_text.splitlines():
        if (found := FILTER.match(line)) is not None:
            slow += len(SLOW.findall(found[1]))
            if slow >= WORTH_ORDERING:
                return True
        elif JOIN.match(line) is None:
            slow = 0
    return False


def _without_choice(tree: Node) -> str | None:
    """Why no order of the parts of a condition is the best; None if some run in Python, or several take time."""
    parts, tests, slow = [tree], 0, 0
    while parts:
        part = parts.pop()
        if part.kind in {"And", "Or", "Not"}:
            parts.extend(part.children)
        else:
            tests += 1
            slow += not is_cheap(part)
    if slow >= WORTH_ORDERING or runs_python(tree):
        return None
    return SINGLE if tests == 1 else ONE_SLOW if slow else ALL_CHEAP


def _left_alone(frame: DataFrame) -> Left:
    """The filters of a DataFrame that was left as it is by the text of its plan, with the reasons."""
    return _Adaptation(frame, only_looks=True).look()


def _sql_of(condition: Any) -> str:  # noqa: ANN401 - an expression of the JVM
    from py4j.protocol import Py4JError

    try:
        return sql_name(str(condition.sql()))
    except Py4JError:  # an expression that has no SQL text
        return str(condition.toString())


def _is_ours(filter_node: Any) -> bool:  # noqa: ANN401 - a plan of the JVM
    text = filter_node.condition().toString()
    return any(mark in text for mark in OURS)


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=3)
