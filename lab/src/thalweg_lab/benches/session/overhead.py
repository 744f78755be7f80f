"""overhead: what choosing plans costs the driver, for each query and round, and how long charts take to build.

Calls what a session calls, without Spark, for the queries of `ten` over streams whose statistics wander.
"""

from __future__ import annotations

import time
from statistics import mean, median
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.session.work import COLUMNS, SECOND, STREAMS, TEN
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from thalweg.charts import PlanCosts, RoundStatistics

NAME = "overhead"
ROUNDS, BUILDS = 2_000, 20
PARTS = 40  # the paper's k, of the charts that are built
RATE, SELECTIVITY, JOIN_SELECTIVITY = 10_000.0, 0.3, 0.001  # around which statistics wander
VARIATION = 0.26  # coefficient of variation; the most erratic streams of the paper


def measure(spark: SparkSession | None, tick: Tick, *, rounds: int = ROUNDS, builds: int = BUILDS) -> list[Result]:  # noqa: ARG001
    """A round of all schedulers, by the number of queries, and the charts of the query that takes longest."""
    a_round: dict[str, list[float]] = {}
    a_build: dict[str, list[float]] = {}
    for number, (name, text) in enumerate(TEN.items()):
        costs = costs_of(text)
        statistics = wandering(costs, rounds, number)
        a_round[name] = seconds_of_rounds(costs, statistics)
        a_build[name] = seconds_of_builds(costs, statistics[0], builds)
        tick(number + 1, len(TEN))
    medians = {name: 1e3 * median(seconds) for name, seconds in a_round.items()}
    every = 1e3 * mean(mean(seconds) for seconds in a_round.values())
    slowest = max(medians, key=medians.__getitem__)
    built = {name: median(seconds) for name, seconds in a_build.items()}
    charted = max(built, key=built.__getitem__)
    return [
        at_most(
            NAME,
            "lookup, estimate and log, ms a query and round",
            mean(medians.values()),
            0.2,
            f"mean of {len(TEN)} queries, of each the median of {rounds:,} rounds; the slowest, {slowest!r}, takes "
            f"{medians[slowest]:.3f} ms; with the rounds in which charts are built again, the mean is {every:.3f} ms",
        ),
        at_most(
            NAME,
            f"charts for k = {PARTS} built, s",
            built[charted],
            0.5,
            f"median of {builds} builds of all charts for {charted!r}, which takes longest of {len(TEN)} queries",
        ),
    ]


def costs_of(text: str) -> PlanCosts:
    """The plans of a query and their costs, as a session has them."""
    from thalweg.charts import CostModel, PlanCosts, Weights, plan_space
    from thalweg.sql.parse import parse_query
    from thalweg.sql.query import Source

    query = parse_query(text, [Source(name, COLUMNS) for name in STREAMS])
    return PlanCosts(plan_space(query), CostModel(query.window.length / SECOND), Weights(), alike_is_same=True)


def wandering(costs: PlanCosts, rounds: int, seed: int) -> list[RoundStatistics]:
    """The statistics of rounds of a query's streams."""
    from thalweg.charts import equality_name
    from thalweg_lab.experiments.om.series import WanderingStream, series

    streams = [WanderingStream(alias, RATE, SELECTIVITY, VARIATION) for alias in costs.space.streams]
    shares = {equality_name(equality): JOIN_SELECTIVITY for equality in costs.space.joins[0].equalities}
    return [each.observed for each in series(streams, rounds, seed, shares)]


def seconds_of_rounds(costs: PlanCosts, statistics: list[RoundStatistics]) -> list[float]:
    """The time of each round: the plan is looked up, the round is observed and logged."""
    from thalweg.charts import ByChart
    from thalweg.spark.session.schedules import plan_of_rounds

    scheduler = ByChart(costs)
    spent = []
    for observed in statistics:
        start = time.perf_counter()
        plan_of_rounds(scheduler, [observed])
        spent.append(time.perf_counter() - start)
    return spent


def seconds_of_builds(costs: PlanCosts, statistics: RoundStatistics, builds: int) -> list[float]:
    """The time of each of several builds of the same charts."""
    from thalweg.charts import build_charts
    from thalweg.charts.query_charts import first_ranges

    spent = []
    for _ in range(builds):
        start = time.perf_counter()
        build_charts(costs, PARTS, first_ranges(costs, statistics), statistics)
        spent.append(time.perf_counter() - start)
    return spent
