"""The martingale test of Ho and Wechsler: whether the estimates of a series could have come in any order.

The strangeness of an estimate is its distance from the mean. The p-value of a new estimate says how many are stranger:
uniform as long as estimates are exchangeable, small when a strange estimate comes. The randomised power martingale
multiplies epsilon * p^(epsilon - 1) over the estimates; by chance it exceeds h with a probability of at most 1/h.
As long as nothing changes it falls, and after 5000 quiet estimates no change would bring it back up to h. So here it
never falls below 1, and h bounds the mean number of estimates from one false alarm to the next instead;
`reflect=False` is the original. (S.-S. Ho and H. Wechsler, "A martingale framework for detecting changes in data
streams by testing exchangeability", IEEE TPAMI 32, 2010; bcs-change-detection-2012, section V-A, for m and nu)
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from thalweg.drift.detector import Alarm, Detector, K, change_point
from thalweg.ordering.checked import LARGEST
from thalweg.ordering.types import Floats, Integers

REMEMBERED = 500  # newest estimates among which a new estimate is ranked: the test takes time in proportion
EPSILON = 0.92  # as Ho and Wechsler recommend


class Martingale(Detector):
    """The randomised power martingale of each series.

    Parameters
    ----------
    h
        The threshold of the martingale of a single series; of n series, n times that.
    nu
        How many estimates back a change began.
    m
        Estimates before the test begins.
    epsilon
        The exponent of the power martingale.
    reflect
        Whether the martingale goes on from 1 where it would fall below.
    k
        How many tuples an estimate is made of.
    seed
        Seed of how ties are broken.

    Examples
    --------
    >>> from thalweg.drift.detector import estimate
    >>> random = np.random.default_rng(0)
    >>> detector = Martingale()
    >>> detector.watch(1)
    >>> for segment in range(200):
    ...     for alarm in detector.update(estimate(random.binomial(20, [0.3 if segment < 100 else 0.7]))):
    ...         print(segment, segment + 1 - alarm.back, round(alarm.before, 2), round(alarm.after, 2))
    111 102 0.33 0.68
    """

    name: ClassVar[str] = "martingale"

    def __init__(
        self,
        *,
        h: float = 25.0,
        nu: int = 10,
        m: int = 20,
        epsilon: float = EPSILON,
        reflect: bool = True,
        k: int = K,
        seed: int = 0,
    ) -> None:
        super().__init__(k=k)
        if not 1 < h <= LARGEST:
            raise ValueError(
                f"h is a threshold above 1, where a martingale begins, and at most {LARGEST}, not {h!r:.80}"
            )
        if not 1 <= nu <= REMEMBERED or not 1 <= m <= REMEMBERED:
            raise ValueError(f"nu and m are between 1 and {REMEMBERED} estimates, not {nu} and {m}")
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is between 0 and 1, not {epsilon}")
        self.h, self.nu, self.m, self.epsilon, self.reflect = h, nu, m, epsilon, reflect
        self._random = np.random.default_rng(seed)

    def _begin(self, series: int) -> None:
        self._logs = np.zeros(series)  # the logarithm of the martingale of each series
        self._counts: Integers = np.zeros(series, np.int64)
        self._estimates = np.full((REMEMBERED, series), np.nan)  # a ring each, NaN where empty

    def _take(self, estimates: Floats) -> list[Alarm]:
        came = np.flatnonzero(~np.isnan(estimates))
        if not came.size:
            return []
        new = estimates[came]
        self._estimates[self._counts[came] % REMEMBERED, came] = new
        self._counts[came] += 1
        filled = int(min(self._counts.max(), REMEMBERED))
        known = self._estimates[:filled, came]
        present = ~np.isnan(known)
        numbers = present.sum(axis=0)
        means = np.where(present, known, 0.0).sum(axis=0) / numbers
        strangeness = np.abs(known - means)
        newest = np.abs(new - means)
        stranger = (strangeness > newest).sum(axis=0)
        tied = (strangeness == newest).sum(axis=0)
        p = (stranger + self._random.random(came.size) * tied) / numbers
        p = np.maximum(p, 1.0 / REMEMBERED**2)  # a theta of 0 has a probability of 0, and no logarithm
        tested = self._counts[came] > self.m
        self._logs[came] += np.where(tested, math.log(self.epsilon) + (self.epsilon - 1.0) * np.log(p), 0.0)
        if self.reflect:
            self._logs[came] = np.maximum(self._logs[came], 0.0)
        limit = math.log(self.h * max(self.series, 1))
        return [self._change(int(i)) for i in came[self._logs[came] > limit]]

    def _change(self, i: int) -> Alarm:
        """Begin a series anew with its newest estimates."""
        count = int(self._counts[i])
        places = np.arange(max(count - REMEMBERED, 0), count) % REMEMBERED
        known = self._estimates[places, i]
        back = min(self.nu, known.size - 1)
        before, after = float(known[:-back].mean()), float(known[-back:].mean())
        *_, strength = change_point(known, self.k)
        self._logs[i] = 0.0
        self._estimates[:, i] = np.nan
        self._estimates[:back, i] = known[-back:]
        self._counts[i] = back
        return Alarm(i, back, before, after, strength)
