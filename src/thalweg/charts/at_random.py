"""RAND: a random plan each round (om-plan-charts-2005, section 5.2). A baseline."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.estimate import DECAY, ROUNDS
from thalweg.charts.held_estimate import THRESHOLD
from thalweg.charts.query_charts import PlanCosts, Regions
from thalweg.charts.scheduler import PlanScheduler
from thalweg.charts.statistics import RoundStatistics


class AtRandom(PlanScheduler):
    """Chooses among all plans, each as likely as any other.

    Parameters
    ----------
    seed
        Of the random numbers. A round's number and the seed decide its plan, so that a restart changes nothing.
    """

    name: ClassVar[str] = "at-random"

    def __init__(
        self,
        costs: PlanCosts,
        *,
        seed: int = 0,
        rounds: int = ROUNDS,
        decay: float = DECAY,
        threshold: float = THRESHOLD,
    ) -> None:
        super().__init__(costs, rounds=rounds, decay=decay, threshold=threshold)
        self.seed = seed

    def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
        random = np.random.default_rng([self.seed, self.counts.decisions])
        leaves = tuple(int(random.integers(len(each))) for each in self.costs.space.leaves)
        return PlanChoice(int(random.integers(len(self.costs.space.joins))), leaves)
