"""The charts of one query, and how they pick one whole plan.

Every input with two sub-plans has a sel-λ chart (om-plan-charts-2005, section 4.4.1), over the selectivity of its
selections and its arrival rate, which picks the order of σ and π. A query with several join trees has a λ-λ chart
(section 4.4.2), which picks the tree. The λ-λ chart's dimensions are the rates at which streams reach the joins, after
their selections: so it stays true when selectivities of selections change, and without selections these are the
arrival rates, as in the paper. Join selectivities, table sizes and the number of groups are constants of the chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import TypeAlias

from thalweg.charts.candidates import PlanChoice, PlanSpace
from thalweg.charts.chart import Chart, Dimension, build_chart
from thalweg.charts.cost import Amount, CostModel, Weights
from thalweg.charts.plan import PlanNode, Project, node_cost
from thalweg.charts.statistics import RoundStatistics
from thalweg.ordering.types import Floats

Regions: TypeAlias = tuple[tuple[int, ...], ...]  # one of each chart: those by alias, then that of joins

TIE = 1.0 + 1e-9  # costs that differ by less are equal but for rounding


@dataclass(frozen=True)
class PlanCosts:
    """What a query's plans cost, and how to weigh it: pure functions of statistics.

    `alike_is_same` says that plans which Spark would run identically count as one, as in a session. The paper counts
    both orders of σ and π.
    """

    space: PlanSpace
    model: CostModel
    weights: Weights
    alike_is_same: bool = False

    def of_leaves(self, alias: str, selectivity: Amount, rate: Amount) -> list[Amount]:
        """The cost of each sub-plan of an input; of the whole plan, if the query has no other input."""
        statistics = RoundStatistics({alias: rate}, {alias: selectivity})
        return [node_cost(leaf, statistics, self.model, self.weights) for leaf in self._competing_leaves[alias]]

    @cached_property
    def _competing_leaves(self) -> dict[str, tuple[PlanNode, ...]]:
        leaves = dict(zip(self.space.aliases, self.space.leaves, strict=True))
        if len(leaves) > 1:
            return leaves
        whole = self.space.joins[0]
        return {alias: tuple(whole.with_leaves({alias: leaf}) for leaf in each) for alias, each in leaves.items()}

    @cached_property
    def _join_model(self) -> CostModel:
        """The model of what reaches the joins: tuples that are projected already."""
        sizes = dict(self.model.input_sizes)
        for leaves in self.space.leaves:
            if isinstance(leaf := leaves[0], Project):
                size = self.model.projected_size(leaf.alias, leaf.columns)
                sizes[leaf.alias] = sizes.get(leaf.alias, 1.0) * size
        return replace(self.model, input_sizes=sizes)

    def of_joins(self, rates: Mapping[str, Amount], statistics: RoundStatistics) -> list[Amount]:
        """The cost of each join tree, for the rates at which streams reach the joins."""
        reached = RoundStatistics(
            rates,
            join_selectivities=statistics.join_selectivities,
            table_sizes=self.rows_of_tables(statistics),
            groups=statistics.groups,
        )
        return [node_cost(join, reached, self._join_model, self.weights) for join in self.space.joins]

    def rates_into_joins(self, statistics: RoundStatistics) -> dict[str, float]:
        """The rate at which each stream reaches the joins."""
        return {
            alias: float(self.space.leaves[place][0].flow(statistics, self.model).rate)
            for place, alias in enumerate(self.space.aliases)
            if alias in self.space.streams
        }

    def rows_of_tables(self, statistics: RoundStatistics) -> dict[str, float]:
        """The rows of each static table that reach the joins."""
        return {
            alias: float(self.space.leaves[place][0].flow(statistics, self.model).rows)
            for place, alias in enumerate(self.space.aliases)
            if alias not in self.space.streams
        }

    def best(self, statistics: RoundStatistics) -> PlanChoice:
        """The cheapest plan for some statistics, costed directly."""
        leaves = tuple(_first_least(costs) for costs in self._leaves_at(statistics))
        return PlanChoice(_first_least(self._joins_at(statistics)), leaves)

    def is_best(self, choice: PlanChoice, statistics: RoundStatistics) -> bool:
        """Whether no plan is cheaper for some statistics; equals are all the best."""
        costs = [(self._joins_at(statistics), choice.join)]
        costs += zip(self._leaves_at(statistics), choice.leaves, strict=True)
        return all(each[number] <= min(each) * TIE for each, number in costs)

    def _leaves_at(self, statistics: RoundStatistics) -> Iterator[list[float]]:
        """The costs of each input's sub-plans at one point; an input with a single sub-plan has no cost to compare."""
        for alias, leaves in zip(self.space.aliases, self.space.leaves, strict=True):
            if len(leaves) > 1 and alias in self.space.streams:
                selectivity, rate = statistics.selectivities.get(alias, 1.0), statistics.rates[alias]
                yield [float(cost) for cost in self.of_leaves(alias, selectivity, rate)]
            else:
                yield [0.0] * len(leaves)

    def _joins_at(self, statistics: RoundStatistics) -> list[float]:
        if len(self.space.joins) == 1:
            return [0.0]
        return [float(cost) for cost in self.of_joins(self.rates_into_joins(statistics), statistics)]


@dataclass(frozen=True, eq=False)
class QueryCharts:
    """The charts of a query: a sel-λ chart for each alias with a choice, and a λ-λ chart if there are several joins."""

    costs: PlanCosts
    by_alias: Mapping[str, Chart]
    of_joins: Chart | None

    def regions(self, statistics: RoundStatistics) -> Regions:
        """The region of some statistics in each chart (Algorithm 2, line 1)."""
        return tuple(chart.region(point) for chart, point in self.points(statistics))

    def choice(self, regions: Regions) -> PlanChoice:
        """The plan that the charts have for some regions (Algorithm 2, lines 2 and 3)."""
        leaves = {
            alias: int(chart.plans[region])
            for (alias, chart), region in zip(self.by_alias.items(), regions, strict=False)
        }
        join = int(self.of_joins.plans[regions[-1]]) if self.of_joins else 0
        return PlanChoice(join, tuple(leaves.get(alias, 0) for alias in self.costs.space.aliases))

    def points(self, statistics: RoundStatistics) -> Iterator[tuple[Chart, tuple[float, ...]]]:
        """Each chart with the point at which statistics lie in it."""
        for alias, chart in self.by_alias.items():
            yield chart, _selection_point(alias, statistics)
        if self.of_joins:
            yield self.of_joins, self._join_point(statistics)

    def _join_point(self, statistics: RoundStatistics) -> tuple[float, ...]:
        return tuple(self.costs.rates_into_joins(statistics).values())


def build_charts(
    costs: PlanCosts, parts: int, ranges: Mapping[str, Dimension], statistics: RoundStatistics
) -> QueryCharts:
    """All charts of a query, over ranges by the names of dimensions; `first_ranges` has names and ranges to start from.

    Of the statistics, only join selectivities, table sizes, selectivities of tables and groups matter.
    """
    by_alias = {
        alias: build_chart(
            [ranges[_selectivity_name(alias)], ranges[_rate_name(alias)]],
            parts,
            partial(_costs_of_leaves, costs, alias),
        )
        for alias in _aliases_with_choice(costs.space)
    }
    if len(costs.space.joins) == 1:
        return QueryCharts(costs, by_alias, None)
    streams = costs.space.streams

    def of_joins(points: Sequence[Floats]) -> list[Amount]:
        return costs.of_joins(dict(zip(streams, points, strict=True)), statistics)

    dimensions = [ranges[_join_rate_name(alias)] for alias in streams]
    return QueryCharts(costs, by_alias, build_chart(dimensions, parts, of_joins))


def first_ranges(costs: PlanCosts, statistics: RoundStatistics) -> dict[str, Dimension]:
    """Ranges around the first statistics of a query, for each dimension of its charts."""
    return {
        name: Dimension.around(name, value, inf if is_rate else 1.0, is_logarithmic=is_rate)
        for name, value, is_rate in _values(costs, statistics)
    }


def extended_ranges(
    costs: PlanCosts, ranges: Mapping[str, Dimension], statistics: RoundStatistics
) -> dict[str, Dimension]:
    """The ranges, extended where they do not cover the statistics."""
    return {name: ranges[name].extended(value) for name, value, _ in _values(costs, statistics)}


def _costs_of_leaves(costs: PlanCosts, alias: str, points: Sequence[Floats]) -> list[Amount]:
    selectivity, rate = points
    return costs.of_leaves(alias, selectivity, rate)


def _values(costs: PlanCosts, statistics: RoundStatistics) -> Iterator[tuple[str, float, bool]]:
    """Name and value of each dimension of a query's charts, and whether it is a rate, not a selectivity."""
    for alias in _aliases_with_choice(costs.space):
        selectivity, rate = _selection_point(alias, statistics)
        yield _selectivity_name(alias), selectivity, False
        yield _rate_name(alias), rate, True
    if len(costs.space.joins) > 1:
        for alias, rate in costs.rates_into_joins(statistics).items():
            yield _join_rate_name(alias), rate, True


def _aliases_with_choice(space: PlanSpace) -> Iterator[str]:
    """The streams that have more than one sub-plan."""
    pairs = zip(space.aliases, space.leaves, strict=True)
    return (alias for alias, leaves in pairs if len(leaves) > 1 and alias in space.streams)


def _selection_point(alias: str, statistics: RoundStatistics) -> tuple[float, float]:
    return float(statistics.selectivities.get(alias, 1.0)), float(statistics.rates[alias])


def _selectivity_name(alias: str) -> str:
    return f"selectivity of {alias}"


def _rate_name(alias: str) -> str:
    return f"rate of {alias}"


def _join_rate_name(alias: str) -> str:
    return f"rate of {alias} into the join"


def _first_least(costs: Sequence[float]) -> int:
    """The first of the least costs, those that differ by rounding taken as equal."""
    least = min(costs) * TIE
    return next(number for number, cost in enumerate(costs) if cost <= least)
