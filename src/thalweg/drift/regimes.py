"""Remembers the profiles of earlier regimes, so that a regime that returns is recognised at once.

Regimes are told apart by the share of their profile tuples that each filter drops. Must not know why a regime ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import sqrt

import numpy as np

from thalweg.ordering.cost import drop_counts
from thalweg.ordering.types import Floats, Integers

SAME = 2.326  # standard deviations from the expected distance: 99 of 100 times that a regime returns, it is less
MOST_REGIMES = 1000
LONGEST = 1000  # profile tuples that are remembered of each


@dataclass(frozen=True, eq=False)
class Regime:
    """The profile tuples of a stretch without change."""

    number: int  # which of all that there ever were
    masks: Integers
    drops: Floats  # how many of them each filter drops


class Regimes:
    """The last regimes there were.

    Parameters
    ----------
    filters
        How many filters the profile tuples describe.
    room
        How many regimes are remembered; 0 remembers none.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> day, night = ((random.random((500, 2)) < drops) @ [1, 2] for drops in ([0.9, 0.2], [0.3, 0.6]))
    >>> regimes = Regimes(filters=2)
    >>> regimes.remember(day), regimes.remember(night)
    (0, 1)
    >>> again = (random.random((100, 2)) < [0.9, 0.2]) @ [1, 2]
    >>> regimes.recognise(again).number
    0
    >>> regimes.recognise((random.random((100, 2)) < [0.5, 0.5]) @ [1, 2]) is None
    True
    """

    def __init__(self, filters: int, room: int = 8) -> None:
        if not 0 <= room <= MOST_REGIMES:
            raise ValueError(f"the number of regimes to remember is from 0 to {MOST_REGIMES:,}, not {room}")
        self._filters = filters
        self._known: deque[Regime] = deque(maxlen=room)
        self._next = 0

    def remember(self, masks: Integers, returned: Regime | None = None) -> int:
        """Store a regime that ended, and replace its earlier profile if it had returned; returns its number."""
        if returned in self._known:
            self._known.remove(returned)  # type: ignore[arg-type]  # None is never in it
        if returned is None:
            self._next += 1
        number = self._next - 1 if returned is None else returned.number
        newest = masks[-LONGEST:].copy()
        self._known.append(Regime(number, newest, drop_counts(newest, self._filters)))
        return number

    def recognise(self, masks: Integers, *, but: int | None = None) -> Regime | None:
        """The regime that these profile tuples are most likely of, if of any; `but` is not considered."""
        others = [regime for regime in self._known if regime.number != but]
        if not masks.size or not others:
            return None
        drops = drop_counts(masks, self._filters)
        distances = [self._distance(drops, masks.size, regime) for regime in others]
        nearest = int(np.argmin(distances))
        # The 99% quantile of a chi-square distribution, by Wilson and Hilferty.
        part = 2 / (9 * self._filters)
        limit = self._filters * (1 - part + SAME * sqrt(part)) ** 3
        return others[nearest] if distances[nearest] <= limit else None

    def _distance(self, drops: Floats, size: int, regime: Regime) -> float:
        """The sum, over filters, of squared standard errors between the shares they drop."""
        other = regime.masks.size
        pooled = (drops + regime.drops + 1) / (size + other + 2)
        error = pooled * (1 - pooled) * (1 / size + 1 / other)
        return float(((drops / size - regime.drops / other) ** 2 / error).sum())
