"""The plans of each query, round by round: rates and selectivities of the rounds before choose the next plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.charts import ByChart, CostModel, PlanCosts, PlanScheduler, TupleRates, Weights
from thalweg.charts.plan import QueryPlan
from thalweg.charts.statistics import RoundStatistics
from thalweg.spark.session.endings import rows_in_round
from thalweg.spark.session.panes import Panes
from thalweg.spark.session.program import ProgramQuery

MICROSECONDS = 1e6  # in a second


def scheduler_of(
    kind: type[PlanScheduler], query: ProgramQuery, weights: Weights, parts: int, rates: TupleRates
) -> PlanScheduler:
    """A scheduler for the plans of a query."""
    model = CostModel(window=query.query.window.length / MICROSECONDS, tuple_rates=rates)
    costs = PlanCosts(query.space, model, weights)
    return ByChart(costs, parts=parts) if kind is ByChart else kind(costs)


def round_statistics(
    query: ProgramQuery,
    panes: Panes,
    number: int,
    join_selectivities: Mapping[str, float],
    table_sizes: Mapping[str, float],
) -> RoundStatistics:
    """What was observed in a round."""
    window = query.query.window
    rates, selectivities = {}, {}
    for each in query.streams:
        conjunction = query.conjunctions[each.alias]
        rows, kept = rows_in_round(panes.get(each.source, {}), number, window, conjunction.name)
        rates[each.alias] = rows / (window.length / MICROSECONDS)
        if rows:
            selectivities[each.alias] = kept / rows
    return RoundStatistics(rates, selectivities, join_selectivities, table_sizes)


def plan_of_rounds(scheduler: PlanScheduler, statistics: Sequence[RoundStatistics]) -> QueryPlan:
    """The plan of rounds that end together: each has its own, chosen by the rounds before, and the most frequent runs.

    To plan and start a second one takes Spark longer than it can save.
    """
    chosen: dict[object, list[QueryPlan]] = {}
    for observed in statistics:
        plan = scheduler.choose(observed)
        scheduler.observe(observed)
        chosen.setdefault(plan.root.runs_alike, []).append(plan)
    return max(chosen.values(), key=len)[-1]
