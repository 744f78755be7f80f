"""The clairvoyant: the best plan for the round that lies ahead. No scheduler can do better by the cost model."""

from __future__ import annotations

from typing import ClassVar

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.plan import QueryPlan
from thalweg.charts.query_charts import Regions
from thalweg.charts.scheduler import PlanScheduler
from thalweg.charts.statistics import RoundStatistics


class Clairvoyant(PlanScheduler):
    """Is told the statistics of each round before it chooses, and needs no charts."""

    name: ClassVar[str] = "clairvoyant"

    def choose(self, counted: RoundStatistics | None = None) -> QueryPlan:
        """The best plan for the round that has these statistics."""
        if counted is None:
            raise ValueError("a clairvoyant scheduler needs the statistics of the next round: choose(counted)")
        return super().choose(counted)

    def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
        return self._first if expected is None else self.costs.best(expected)
