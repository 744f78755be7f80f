"""A budget for the calls of a service, for all workers together.

The expected cost of a call is set aside before the call, and corrected after it: the budget is overspent by no more
than the calls under way turn out dearer than the calls before them.
"""

from __future__ import annotations

from thalweg.spark.filters.worker.waiting.shared_number import SharedNumber


class Budget:
    """Says whether a call may still be paid.

    >>> from thalweg.spark.filters.worker.waiting.shared_number import OwnNumber
    >>> budget = Budget(limit=100, spent=OwnNumber())
    >>> budget.set_aside(60), budget.set_aside(60)
    (True, False)
    >>> budget.correct(-20)
    >>> budget.set_aside(60), budget.spent
    (True, 100.0)
    """

    def __init__(self, limit: float, spent: SharedNumber) -> None:
        self.limit = limit
        self._spent = spent

    @property
    def spent(self) -> float:
        """What has been spent or set aside so far."""
        return self._spent.change(lambda spent: spent)

    def set_aside(self, cost: float) -> bool:
        """Set the expected cost of a call aside; False if the budget does not hold so much any more."""
        limit = self.limit
        before = self._spent.change(lambda spent: spent + cost if spent + cost <= limit else spent)
        return before + cost <= limit

    def correct(self, difference: float) -> None:
        """Add what a call has cost more than was set aside, or take off what it has cost less."""
        if difference:
            self._spent.change(lambda spent: spent + difference)
