"""An estimate that is renewed only when observations stray from it (om-plan-charts-2005, section 4.3).

Charts are built for one value of every join selectivity. An estimate that moved a little each round would have them
built anew each round; this estimate stays where it is until it is wrong.
"""

from __future__ import annotations

from typing import Any

from thalweg.charts.estimate import DECAY, ROUNDS, DecayedMean

THRESHOLD = 0.5  # share of the estimate by which observations may differ from it; the paper does not say its threshold


class HeldEstimate:
    """The decayed mean of the last rounds at the time when the estimate was last renewed.

    Parameters
    ----------
    threshold
        The difference between an observation and the estimate that is tolerated, as a share of the estimate.
    rounds, decay
        Of the decayed mean that becomes the next estimate.

    Examples
    --------
    >>> selectivity = HeldEstimate(threshold=0.5)
    >>> [selectivity.observe(value) for value in (0.010, 0.012, 0.030)]
    [True, False, True]
    >>> selectivity.renewals
    2
    """

    def __init__(self, threshold: float = THRESHOLD, rounds: int = ROUNDS, decay: float = DECAY) -> None:
        if not threshold >= 0.0:
            raise ValueError(f"the threshold is a share of the estimate, 0 or more, not {threshold}")
        self.threshold, self.rounds, self.decay = threshold, rounds, decay
        self.renewals = 0
        self._estimate: float | None = None
        self._recent = DecayedMean(rounds, decay)

    @property
    def estimate(self) -> float:
        """The value that is expected of the next round."""
        return self._recent.estimate if self._estimate is None else self._estimate

    def observe(self, value: float) -> bool:
        """Learn the value of the last round; returns whether the estimate was renewed."""
        self._recent.observe(value)
        if self._estimate is not None and abs(value - self._estimate) <= self.threshold * self._estimate:
            return False
        self._estimate = self._recent.estimate
        self.renewals += 1
        return True

    def save(self) -> dict[str, Any]:
        """The state, for `load`."""
        return {"estimate": self._estimate, "renewals": self.renewals, "recent": list(self._recent.values)}

    def load(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self._estimate, self.renewals = state["estimate"], state["renewals"]
        self._recent = DecayedMean(self.rounds, self.decay, state["recent"])
