"""Whether class orders pay: their saving, against the cost of telling classes apart and of splitting batches."""

from __future__ import annotations

import numpy as np

from thalweg.drift import Detector
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.benefit import CHECK_AFTER, Benefit, StopReason
from thalweg.routing.class_policies import ClassPolicies
from thalweg.routing.classifier import Estimate

WORTH = 0.002  # share of the cost that routing has to save
# Tuples over which the cost of splitting is measured, and after which it is compared with the saving.
OVERHEAD_TUPLES = 100_000


class Payoff:
    """Compares savings with the cost of splitting, both for each tuple that is dropped.

    Parameters
    ----------
    learners
        The policies, which know the costs of filters.
    detector
        Watches whether class orders still save; it must watch nothing else.
    """

    def __init__(self, learners: ClassPolicies, detector: Detector) -> None:
        self.benefit = Benefit(detector)
        self.tuples = self.dropped = 0
        self.price = 0.0  # the cost of splitting, for each dropped tuple, when it last did not pay
        self._learners = learners
        self._overhead, self._split = 0.0, 0  # the cost of splitting, and how many tuples were split

    @property
    def overhead_per_drop(self) -> float:
        """The cost of splitting for each tuple that is dropped."""
        dropped = self._split * (self.dropped / self.tuples if self.tuples else 1.0)
        return self._overhead / dropped if dropped else 0.0

    def saved_by_row(self) -> Floats:
        """The mean saving of a row of each class, whether it is dropped or not."""
        return self.benefit.means(len(self._learners.policies)) * (self.dropped / self.tuples if self.tuples else 1.0)

    def whole_cost(self, cost: float) -> float:
        """The cost of all tuples for each dropped tuple: tuples that no filter drops cost as much in any order."""
        passed = (self.tuples - self.dropped) / self.dropped if self.dropped else 0.0
        return cost + passed * float(self._learners.costs.sum())

    def least(self, cost: float | None = None) -> float:
        """The saving of a profile tuple that is worth routing for, given the cost of the tuple with one order."""
        if cost is None:
            cost = self.benefit.one_order or float(self._learners.costs.sum()) / 2
        return WORTH * self.whole_cost(cost)

    def worth(self, cost: float) -> float:
        """The saving of a profile tuple that is worth beginning to route for."""
        return self.least(cost) + self.price

    def observe(self, tuples: int, dropped: int) -> None:
        """Count the tuples of a batch, and the tuples that were dropped."""
        self.tuples += tuples
        self.dropped += dropped

    def observe_split(self, tuples: int, overhead: float) -> StopReason | None:
        """Add the cost of splitting a batch; returns why it does not pay, if so."""
        self._overhead += overhead
        self._split += tuples
        if self._split <= OVERHEAD_TUPLES:
            return None
        self._overhead, self._split = self._overhead / 2, self._split // 2
        return self.benefit.payment(self.least(), self.overhead_per_drop)

    def measure(self, masks: Integers, classes: Integers) -> None:
        """Measure the cost of profile tuples in their class's order and in the overall order."""
        self.benefit.measure(masks, classes, [policy.order for policy in self._learners.policies], self._learners.costs)

    def stop_reason(self) -> StopReason | None:
        """Why class orders no longer pay, by the measured savings; None if they do."""
        return self.benefit.stop_reason(self.least(), self.overhead_per_drop)

    def start_over(self) -> None:
        """Measure another classifier."""
        self.benefit.restart()
        self._overhead, self._split = 0.0, 0

    def lags(self, current: Estimate) -> bool:
        """Whether tuples cost more than with classes made now, because values are new or ranges have moved."""
        if len(self.benefit) < CHECK_AFTER:
            return False
        costs = self.benefit.costs
        error = float(np.hypot(current.error, costs.std() / np.sqrt(costs.size)))
        return float(costs.mean()) - (current.cost - current.saving) > 2.0 * error + self.least(current.cost)

    def shares(self) -> dict[str, float] | None:
        """The measured saving of class orders of late, as a share of the cost with one order; None if unmeasured.

        Each profile tuple is costed in its class's order and in the overall order before either learns from it; tuples
        that no filter drops cost the same in any order, and count.
        """
        if self.benefit.one_order is None:
            return None
        cost = self.whole_cost(self.benefit.one_order)
        return {
            "saving": self.benefit.mean / cost,
            "error": self.benefit.error / cost,
            "overhead": self.overhead_per_drop / cost,
            "profile_tuples": float(len(self.benefit)),
        }
