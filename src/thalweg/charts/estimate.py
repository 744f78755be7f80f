"""Estimates for the next round from the rounds before: decayed means (om-plan-charts-2005, section 4.3)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

ROUNDS = 5  # that an estimate remembers; the paper does not say its d
DECAY = 0.5  # the a of e^(-a·r); the paper does not say its value


class DecayedMean:
    """The mean of the last rounds' values, in which the value of r rounds ago has the weight e^(-decay · r).

    Parameters
    ----------
    rounds
        How many values are remembered, the paper's d.
    decay
        How fast older values lose weight, the paper's a; 0 gives the plain mean.
    values
        Values that are known already, the oldest first.

    Examples
    --------
    >>> mean = DecayedMean(rounds=2, decay=math.log(2))
    >>> for value in (7.0, 1.0, 4.0):
    ...     mean.observe(value)
    >>> mean.estimate  # (4 + 1/2) / (1 + 1/2): the 7 is forgotten
    3.0
    """

    def __init__(self, rounds: int = ROUNDS, decay: float = DECAY, values: Iterable[float] = ()) -> None:
        if rounds < 1:
            raise ValueError(f"an estimate remembers at least 1 round, not {rounds}")
        if not 0.0 <= decay < math.inf:
            raise ValueError(f"the decay is a number, 0 or more, not {decay}")
        self._weights = [math.exp(-decay * ago) for ago in range(rounds)]
        self._values = deque(values, maxlen=rounds)

    @property
    def values(self) -> tuple[float, ...]:
        """The values that are remembered, the oldest first."""
        return tuple(self._values)

    def observe(self, value: float) -> None:
        """Learn the value of the last round."""
        if not math.isfinite(value):
            raise ValueError(f"a round's value is a finite number, not {value}; leave out rounds without one")
        self._values.append(value)

    @property
    def estimate(self) -> float:
        """The value that is expected of the next round."""
        if not self._values:
            raise ValueError("nothing was observed yet; call observe() first")
        total = weights = 0.0
        for weight, value in zip(self._weights, reversed(self._values), strict=False):
            total += weight * value
            weights += weight
        return total / weights
