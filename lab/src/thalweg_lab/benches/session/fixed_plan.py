"""Fixed plans, with which benchmarks compare plans that change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from thalweg.charts import PlanChoice, PlanNode, PlanScheduler, QueryPlan, RoundStatistics, Scan, plan_space, runs_alike
from thalweg.charts.plan import MultiJoin
from thalweg.charts.query_charts import Regions
from thalweg.sql.query import ContinuousQuery


def fixed_plan(join: int) -> type[PlanScheduler]:
    """A scheduler that always chooses the join tree with this number."""

    class FixedPlan(PlanScheduler):
        name: ClassVar[str] = "fixed"

        def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
            return self._first._replace(join=join)

    return FixedPlan


def join_trees(query: ContinuousQuery) -> dict[str, int]:
    """The numbers of a query's join trees that Spark runs differently, by the order of their streams.

    >>> from thalweg_lab.experiments.om.queries import q2
    >>> join_trees(q2())
    {'TCP ⋈ UDP ⋈ SF': 0, 'TCP ⋈ SF ⋈ UDP': 1, 'UDP ⋈ SF ⋈ TCP': 2, 'all at once': 3}
    """
    plans = {runs_alike(plan): (number, plan) for number, plan in enumerate(plan_space(query).candidates)}
    return {_order(plan): number for number, plan in plans.values()}


def _order(plan: QueryPlan) -> str:
    nodes = list(_nodes(plan.root))
    if any(isinstance(node, MultiJoin) for node in nodes):
        return "all at once"
    return " ⋈ ".join(node.alias for node in nodes if isinstance(node, Scan))


def _nodes(node: PlanNode) -> Iterator[PlanNode]:
    yield node
    for child in node.children:
        yield from _nodes(child)
