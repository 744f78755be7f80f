"""What a session would choose from: for each query its plans, and the charts over assumed rates and selectivities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import indent

from thalweg.charts import ByChart, Chart, Dimension, PlanCosts, PlanNode, RoundStatistics, TupleRates, build_charts
from thalweg.charts.draw import LETTERS, as_text, heat_map
from thalweg.charts.query_charts import first_ranges
from thalweg.spark.session.rates import known_rates
from thalweg.spark.session.session import Session
from thalweg.spark.session.standing import StandingQuery

ASSUMED_RATE = 1_000.0  # rows a second of every stream: the charts go from 0 to twice that
ASSUMED_SELECTIVITY = 0.5  # of every input with conditions: the middle of the charts, which go from 0 to 1
ASSUMED_ROWS = 1_000.0  # of every table


def dry_run_text(session: Session) -> str:
    """The plans and charts of all queries of a session that has not started."""
    measured = known_rates(session.spark)
    speed = "operators of usual speed, since none was measured on this machine yet"
    if measured is not None:
        speed = "but operators as fast as they were measured on this machine"
    assumed = (
        f"Nothing has run. Charts are drawn for assumed numbers: {ASSUMED_RATE:,.0f} rows a second in every stream, "
        f"{ASSUMED_ROWS:,.0f} rows in every table, conditions that keep {ASSUMED_SELECTIVITY:.0%}, "
        f"{speed}; @ marks this point. While a session runs, its charts follow what is measured."
    )
    rates = measured or TupleRates()
    return "\n\n".join([assumed, *(_query_text(query, rates) for query in session.queries)])


def _query_text(query: StandingQuery, rates: TupleRates) -> str:
    costs = query.scheduler(ByChart, rates).costs
    statistics = assumed_statistics(query)
    ranges = {name: _wide(dimension) for name, dimension in first_ranges(costs, statistics).items()}
    charts = build_charts(costs, query.partitions, ranges, statistics)
    points = [point for _, point in charts.points(statistics)]
    drawn = "\n".join(
        f"{title}\n{chart_text(chart, point, plans)}"
        for (title, chart, plans), point in zip(_titled(costs, charts.by_alias, charts.of_joins), points, strict=True)
    )
    plan = costs.space.plan(costs.best(statistics))
    first = "the plan at this point:" if points else "the only plan:"
    return "\n".join(
        [query.name, indent(query.text.strip(), "  "), f"  {first}", indent(str(plan), "    "), indent(drawn, "  ")]
    ).rstrip()


def assumed_statistics(query: StandingQuery) -> RoundStatistics:
    """The statistics that are assumed of a query that has not run."""
    inputs = query.compiled.query.inputs
    selected = {selection.alias for selection in query.compiled.query.selections}
    return RoundStatistics(
        rates={each.alias: ASSUMED_RATE for each in inputs if each.is_stream},
        selectivities=dict.fromkeys(sorted(selected), ASSUMED_SELECTIVITY),
        table_sizes={each.alias: ASSUMED_ROWS for each in inputs if not each.is_stream},
    )


def _titled(
    costs: PlanCosts, by_alias: Mapping[str, Chart], of_joins: Chart | None
) -> Iterator[tuple[str, Chart, Sequence[PlanNode]]]:
    """Each chart with a title and the plans that it chooses from."""
    leaves = dict(zip(costs.space.aliases, costs.space.leaves, strict=True))
    for alias, chart in by_alias.items():
        yield f"chart: selection or projection of {alias} first", chart, leaves[alias]
    if of_joins is not None:
        yield "chart: the order of joins", of_joins, costs.space.joins


def chart_text(chart: Chart, point: Sequence[float], plans: Sequence[PlanNode]) -> str:
    """A chart with its plans; only a sentence, if one plan is the cheapest everywhere.

    >>> from thalweg.charts import Scan, build_chart
    >>> dimensions = [Dimension("selectivity of T", 0.0, 1.0), Dimension("rate of T", 0.0, 100.0)]
    >>> chart = build_chart(dimensions, 4, lambda points: [points[0], 0.5 + 0.0 * points[1]])
    >>> print(chart_text(chart, (0.9, 80.0), [Scan("T", "TCP"), Scan("T", "UDP")]))
      selectivity of T
         1 BBB@
           BBBB
           AAAA
         0 AAAA
           0  100  rate of T
      A is
        Scan stream TCP as T
      B is
        Scan stream UDP as T
    """
    picture = heat_map(chart, point)
    if len(picture.numbers) == 1:
        return "  the same plan is the cheapest everywhere"
    legend = "\n".join(
        f"{LETTERS[number % len(LETTERS)]} is\n{indent(str(plans[number]), '  ')}" for number in picture.numbers
    )
    return indent(f"{as_text(picture)}\n{legend}", "  ")


def _wide(dimension: Dimension) -> Dimension:
    """A range that has the value in its middle: from 0, or from a tenth of it to ten times it."""
    twice = dimension.low + dimension.high
    if dimension.is_logarithmic:
        return replace(dimension, low=twice / 2 / 10, high=twice / 2 * 10)
    return replace(dimension, low=0.0, high=min(twice, dimension.largest))
