"""The base class of all detectors: a detector watches many series of estimates at once and says which changed.

A series is the estimates of one drop probability, segment by segment, each strictly between 0 and 1; NaN where a
segment says nothing of it, and that series then waits. `Monitor` makes the estimates, and `Watched` decides
what to do about a change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import numbers_of
from thalweg.ordering.types import Floats

K = 20  # profile tuples in a segment (bcs-change-detection-2012, section V-A)

MOST_TUPLES, MOST_SERIES = 1_000_000, 100_000  # beyond these the arrays of a detector would take gigabytes


@dataclass(frozen=True)
class Alarm:
    """A series that changed."""

    series: int
    back: int  # how many of its newest estimates are thought to be of after the change
    before: float  # the mean estimate until then
    after: float  # and since
    strength: float  # by how many standard errors they differ


class Detector(ABC):
    """Watches series of estimates. Concrete detectors say how.

    A series that changed is forgotten, but for the estimates since the change, and learnt anew.

    Parameters
    ----------
    k
        How many tuples an estimate is made of: the least variance of an estimate follows from it.
    """

    name: ClassVar[str]
    is_blind: ClassVar[bool] = False  # whether it never finds anything
    # Segments that are learnt before detection begins: the m of bcs-change-detection-2012.
    training: int = 20
    # Whether a policy's own analysis rests while nothing changes, as in the paper.
    lets_rest: ClassVar[bool] = True
    # Segments of the window that it is shown, at most, when it begins to watch an order.
    history: ClassVar[int] = 20

    @classmethod
    def for_few_tuples(cls) -> Self:
        """The detector for an executor that profiles few tuples, so that training must not take long."""
        return cls()

    def __init__(self, *, k: int = K) -> None:
        if not (1 <= k <= MOST_TUPLES and not k % 1):
            raise ValueError(f"a segment has at least 1 profile tuple and at most {MOST_TUPLES:,}, not {k!r:.80}")
        self.k = k
        self.series = 0

    def watch(self, series: int) -> None:
        """Forget everything, and watch so many series from now on."""
        if not (0 <= series <= MOST_SERIES and not series % 1):
            raise ValueError(f"a detector watches from 0 to {MOST_SERIES:,} series, not {series!r:.80}")
        self.series = series
        self._begin(series)

    def update(self, estimates: ArrayLike) -> tuple[Alarm, ...]:
        """Learn the next estimate of each series; returns the series that changed, the surest first."""
        checked = numbers_of(estimates, "estimates are numbers strictly between 0 and 1, or NaN")
        if checked.shape != (self.series,):
            raise ValueError(f"this detector watches {self.series} series, not {checked.shape}: call watch() first")
        if (checked <= 0.0).any() or (checked >= 1.0).any():
            raise ValueError("estimates are strictly between 0 and 1, or NaN: thalweg.drift.estimate makes them")
        alarms = self._take(checked) if self.series else []
        return tuple(sorted(alarms, key=lambda alarm: -alarm.strength)) if alarms else ()

    @abstractmethod
    def _begin(self, series: int) -> None:
        """Set up the state for so many series."""

    @abstractmethod
    def _take(self, estimates: Floats) -> list[Alarm]:
        """Learn one estimate of each series."""


def estimate(dropped: ArrayLike, k: int = K) -> Floats:
    """Estimates of drop probabilities from how many of a segment's k tuples were dropped.

    Half a tuple is added on either side, so that a probability of exactly 0 or 1 has an estimate whose logarithm
    exists.

    >>> estimate([0, 10, 20]).round(3).tolist()
    [0.024, 0.5, 0.976]
    """
    estimates: Floats = (np.asarray(dropped, np.float64) + 0.5) / (k + 1)
    return estimates


def change_point(estimates: Floats, k: int) -> tuple[int, float, float, float]:
    """Where a series changed most surely: estimates since, mean before, mean after, standard errors between them.

    The variance is at least that of a proportion of k tuples, so that constant estimates have a variance.

    >>> back, before, after, _ = change_point(np.array([0.2, 0.3, 0.2, 0.6, 0.7]), k=20)
    >>> back, round(before, 2), round(after, 2)
    (2, 0.23, 0.65)
    """
    if estimates.size < 2:  # noqa: PLR2004 - nothing to compare
        return estimates.size, float(estimates.mean()), float(estimates.mean()), 0.0
    count, total = estimates.size, float(estimates.sum())
    back = np.arange(1, count)
    after = np.cumsum(estimates[::-1])[:-1]
    means_after, means_before = after / back, (total - after) / (count - back)
    between = back * (count - back) / count * (means_after - means_before) ** 2
    mean = total / count
    within = np.maximum(estimates.var() - between / count, max(mean * (1 - mean) / k, 1e-12))
    strengths = np.sqrt(between / within)
    best = int(strengths.argmax())
    return best + 1, float(means_before[best]), float(means_after[best]), float(strengths[best])
