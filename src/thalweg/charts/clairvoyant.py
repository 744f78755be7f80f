"""The clairvoyant: the best plan for the round that lies ahead. No scheduler can do better by the cost model."""

from __future__ import annotations

from typing import ClassVar

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.query_charts import Regions
from thalweg.charts.scheduler import PlanScheduler
from thalweg.charts.statistics import RoundStatistics


class Clairvoyant(PlanScheduler):
    """Is told the statistics of each round before it chooses; needs `choose(ahead)`."""

    name: ClassVar[str] = "clairvoyant"

    def _choose(
        self, expected: RoundStatistics | None, regions: Regions | None, ahead: RoundStatistics | None
    ) -> PlanChoice:
        if ahead is None:
            raise ValueError("a clairvoyant scheduler needs the statistics of the next round: choose(ahead)")
        return self.costs.best(self.estimates.completed(ahead))
