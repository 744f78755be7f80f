"""The plans of each query, round by round.

A round runs after its end, when its rows have been counted. So its plan is looked up by the rates and selectivities of
the round itself. In the paper a round runs while its tuples arrive, and its plan is looked up by estimates from the
rounds before. Join selectivities are estimates still: keys are sampled, and not in each micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.charts import ByChart, CostModel, PlanCosts, PlanScheduler, TupleRates, Weights
from thalweg.charts.plan import QueryPlan
from thalweg.charts.statistics import RoundStatistics
from thalweg.spark.session.endings import rows_in_rounds
from thalweg.spark.session.input_sizes import InputSizes
from thalweg.spark.session.panes import Panes
from thalweg.spark.session.program import ProgramQuery

MICROSECONDS = 1e6  # in a second
NO_SIZES = InputSizes()  # all rows count the same, projected or not


def scheduler_of(
    kind: type[PlanScheduler],
    query: ProgramQuery,
    weights: Weights,
    parts: int,
    rates: TupleRates,
    sizes: InputSizes = NO_SIZES,
) -> PlanScheduler:
    """A scheduler for the plans of a query."""
    model = CostModel(
        window=query.query.window.length / MICROSECONDS,
        tuple_rates=rates,
        column_sizes=sizes.columns,
        input_sizes=sizes.rows,
    )
    costs = PlanCosts(query.space, model, weights, alike_is_same=True)
    return ByChart(costs, parts=parts) if kind is ByChart else kind(costs)


def round_statistics(
    query: ProgramQuery,
    panes: Panes,
    numbers: Sequence[int],
    join_selectivities: Mapping[str, float],
    table_sizes: Mapping[str, float],
    groups: float,
) -> list[RoundStatistics]:
    """What was observed in each of some rounds; the number of groups is that of rounds before."""
    window = query.query.window
    counted = {
        each.alias: rows_in_rounds(panes.get(each.source, {}), window, query.conjunctions[each.alias].name)
        for each in query.streams
    }
    found = []
    for number in numbers:
        rates, selectivities = {}, {}
        for alias, rounds in counted.items():
            rows, kept = rounds.get(number, (0, 0))
            rates[alias] = rows / (window.length / MICROSECONDS)
            if rows:
                selectivities[alias] = kept / rows
        found.append(RoundStatistics(rates, selectivities, join_selectivities, table_sizes, groups))
    return found


def plan_of_rounds(scheduler: PlanScheduler, statistics: Sequence[RoundStatistics]) -> QueryPlan:
    """The plan of rounds that end together: each has its own, and the most frequent runs.

    To plan and start a second plan takes Spark longer than it can save.
    """
    scheduler.prepare(statistics)
    chosen: dict[object, list[QueryPlan]] = {}
    for observed in statistics:
        plan = scheduler.choose(observed)
        scheduler.observe(observed)
        chosen.setdefault(plan.root.runs_alike, []).append(plan)
    return max(chosen.values(), key=len)[-1]
