"""RATE: the best plan for the first round's statistics, for ever (om-plan-charts-2005, section 5.2). A baseline."""

from __future__ import annotations

from typing import ClassVar

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.query_charts import Regions
from thalweg.charts.scheduler import PlanScheduler
from thalweg.charts.statistics import RoundStatistics


class ByFirstEstimate(PlanScheduler):
    """Chooses once, when the first statistics are known, and never switches again."""

    name: ClassVar[str] = "by-first-estimate"

    def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
        if expected is None:
            return self._first
        if self.expected is not None and self._last is not None:
            return self._last
        return self.costs.best(expected)
