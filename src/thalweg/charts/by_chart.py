"""OM: the plan of the region in which the expected statistics lie (om-plan-charts-2005, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.chart import PARTS, Dimension, checked_parts
from thalweg.charts.estimate import DECAY, ROUNDS
from thalweg.charts.held_estimate import THRESHOLD
from thalweg.charts.query_charts import PlanCosts, QueryCharts, Regions, build_charts, extended_ranges, first_ranges
from thalweg.charts.scheduler import PlanScheduler
from thalweg.charts.statistics import RoundStatistics


class ByChart(PlanScheduler):
    """Looks the plan up in charts that are built ahead.

    Charts are built around the first statistics. They are built again when statistics leave their ranges, when join
    selectivities, table sizes or numbers of groups stray from their estimates, and when weights or `parts` are changed.

    Parameters
    ----------
    parts
        How many parts each dimension of a chart has, the paper's k.
    """

    name: ClassVar[str] = "by-chart"

    def __init__(
        self,
        costs: PlanCosts,
        *,
        parts: int = PARTS,
        rounds: int = ROUNDS,
        decay: float = DECAY,
        threshold: float = THRESHOLD,
    ) -> None:
        super().__init__(costs, rounds=rounds, decay=decay, threshold=threshold)
        self.parts = checked_parts(parts)
        self.charts: QueryCharts | None = None
        self.extensions = 0  # how often statistics left the ranges
        self.builds = 0
        self._ranges: dict[str, Dimension] = {}
        self._looked_up: tuple[QueryCharts | None, RoundStatistics | None, Regions] = (None, None, ())

    def divide(self, parts: int) -> None:
        """Cut the dimensions into another number of parts from now on."""
        self.parts = checked_parts(parts)
        self._rebuild()

    def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
        return self.charts.choice(regions) if self.charts and regions is not None else self._first

    def _regions(self, expected: RoundStatistics) -> Regions | None:
        """The regions; those that were looked up last are remembered, since the next round compares with them."""
        if self.charts is None:
            return None
        charts, statistics, regions = self._looked_up
        if charts is not self.charts or statistics is not expected:
            regions = self.charts.regions(expected)
            self._looked_up = (self.charts, expected, regions)
        return regions

    def _cover(self, *expected: RoundStatistics, renewed: bool = False) -> None:
        """Charts are built once for all of these statistics, however many of them are new."""
        is_first = self.charts is None
        ranges = before = first_ranges(self.costs, expected[0]) if is_first else self._ranges
        for each in expected:
            ranges = extended_ranges(self.costs, ranges, each)
        self._ranges = ranges
        self.extensions += ranges != before
        if is_first or renewed or ranges != before:
            self._build(expected[-1])

    def _rebuild(self) -> None:
        expected = self.estimates.expected
        if self.charts and expected:
            self._build(expected)

    def _build(self, expected: RoundStatistics) -> None:
        self.builds += 1
        self.charts = build_charts(self.costs, self.parts, self._ranges, expected)

    def save(self) -> dict[str, Any]:
        """The state with ranges and the number of parts; charts follow from them."""
        ranges = {name: [dimension.low, dimension.high] for name, dimension in self._ranges.items()}
        own = {"parts": self.parts, "ranges": ranges, "extensions": self.extensions, "builds": self.builds}
        return {**super().save(), **own}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        self.parts, self.extensions = checked_parts(state["parts"]), state["extensions"]
        expected = self.estimates.expected
        if expected:
            usual = first_ranges(self.costs, expected)
            bounds = state["ranges"]
            self._ranges = {name: replace(usual[name], low=bounds[name][0], high=bounds[name][1]) for name in usual}
            self._build(expected)
        self.builds = state["builds"]
