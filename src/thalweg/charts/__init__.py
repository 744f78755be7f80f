"""Which whole plan to run in the next round, by selectivities and arrival rates (om-plan-charts-2005).

`plan_space(query)` has a query's plans, `PlanCosts` costs them, and a scheduler chooses a plan for each round.
`SCHEDULERS` lists every scheduler. A join of two streams, A.k = B.k, with a condition on A:

>>> from thalweg.sql.query import (
...     ContinuousQuery, EquiJoin, Expression, QueryInput, Output, Position, RoundWindow, Selection
... )
>>> def written(sql, alias, column):
...     return Expression(sql, frozenset([alias]), frozenset([(alias, column)]), Position(1, 1))
>>> left, right = written("`A`.`k`", "A", "k"), written("`B`.`k`", "B", "k")
>>> query = ContinuousQuery(
...     text="", digest="",
...     inputs=(QueryInput("A", "clicks", True, ("k", "v")), QueryInput("B", "views", True, ("k",))),
...     outputs=(Output("k", left, False),),
...     selections=(Selection("A", written("`A`.`v` > 5", "A", "v"), "`v` > 5", "range"),),
...     equi_joins=(EquiJoin(left, right),), residuals=(), group_by=(), having=None, is_distinct=False,
...     window=RoundWindow(1_000_000, 1_000_000),
... )
>>> space = plan_space(query)
>>> costs = PlanCosts(space, CostModel(space.window, projected_sizes={"A": 0.5}), Weights())
>>> plans = scheduler("by-chart", costs, parts=20)
>>> for rate in (100.0, 120.0, 90.0):
...     plan = plans.choose()
...     record = plans.observe(RoundStatistics({"A": rate, "B": 50.0}, {"A": 0.9}))
>>> print(plan)
Join on `A`.`k` = `B`.`k`
  Select `A`.`v` > 5
    Project A: k, v
      Scan stream clicks as A
  Scan stream views as B
>>> plans.counts
ScheduleCounts(decisions=3, rounds=3, moves=1, switches=1, hits=2)
"""

from __future__ import annotations

from typing import Any

from thalweg.charts.at_random import AtRandom
from thalweg.charts.by_chart import ByChart
from thalweg.charts.by_first_estimate import ByFirstEstimate
from thalweg.charts.candidates import PlanChoice, PlanSpace, candidate_plans, plan_space
from thalweg.charts.chart import Chart, Dimension, build_chart
from thalweg.charts.clairvoyant import Clairvoyant
from thalweg.charts.cost import CostModel, TupleRates, Weights, utility
from thalweg.charts.equalities import equality_name
from thalweg.charts.estimate import DecayedMean
from thalweg.charts.held_estimate import HeldEstimate
from thalweg.charts.key_histogram import KeyHistogram
from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, Project, QueryPlan, Scan, Select, runs_alike
from thalweg.charts.query_charts import PlanCosts, QueryCharts, build_charts
from thalweg.charts.scheduler import PlanScheduler, RoundRecord, ScheduleCounts
from thalweg.charts.statistics import RoundStatistics
from thalweg.registry import find

SCHEDULERS: tuple[type[PlanScheduler], ...] = (ByChart, AtRandom, ByFirstEstimate, Clairvoyant)


def scheduler(name: str, costs: PlanCosts, **options: Any) -> PlanScheduler:  # noqa: ANN401 - the scheduler checks them
    """Make a scheduler by its name; the options are the parameters of its class."""
    return find(name, SCHEDULERS, "scheduler")(costs, **options)


__all__ = [
    "SCHEDULERS",
    "Aggregate",
    "AtRandom",
    "ByChart",
    "ByFirstEstimate",
    "Chart",
    "Clairvoyant",
    "CostModel",
    "DecayedMean",
    "Dimension",
    "HeldEstimate",
    "Join",
    "KeyHistogram",
    "MultiJoin",
    "PlanChoice",
    "PlanCosts",
    "PlanNode",
    "PlanScheduler",
    "PlanSpace",
    "Project",
    "QueryCharts",
    "QueryPlan",
    "RoundRecord",
    "RoundStatistics",
    "Scan",
    "ScheduleCounts",
    "Select",
    "TupleRates",
    "Weights",
    "build_chart",
    "build_charts",
    "candidate_plans",
    "equality_name",
    "plan_space",
    "runs_alike",
    "scheduler",
    "utility",
]
