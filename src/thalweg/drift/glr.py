"""GLR: the generalised likelihood ratio of the newest estimates of a series against all since its last change.

An estimate is a share of k tuples. If nothing changed, the tuples of the newest w of n estimates are a random sample,
drawn without replacement, of the tuples of all n. Let s be their share, r the share of the tuples before them, p the
share of all tuples, and KL the divergence of Kullback and Leibler of two Bernoulli distributions. By Stirling's formula
the evidence k (w KL(s, p) + (n - w) KL(r, p)) exceeds h with a probability of at most 2 exp(-h). No distribution has to
be learnt first, and the more estimates there are, the better p is known: quiet times do not make the delay longer.

The newest 1, 2, 3, 4, 6, 8, 11, 16 ... 1024 estimates are tried, so a change is found with nearly the best window for
its size. The bound holds for each try: of S series with W windows there is, on average, at most one false alarm in N
estimates of each series if h = log(2 N S W). Windows overlap, so there are some thirty times fewer. (T. L. Lai,
"Sequential changepoint detection in quality control and dynamical systems", Journal of the Royal Statistical Society B
57, 1995, for windows that grow by a factor; docs/decisions/0071)
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from thalweg.drift.detector import Alarm, Detector, K
from thalweg.kernels import inlined, kernel
from thalweg.ordering.types import Floats, Integers

LONGEST = 1024  # estimates of a window
ROOM = LONGEST + 1  # sums that are remembered of each series
WINDOWS = np.unique(np.round(math.sqrt(2.0) ** np.arange(2 * round(math.log2(LONGEST)) + 1)).astype(np.int64))


class SeriesSums(NamedTuple):
    """The state of all series, as kernels share it."""

    counts: Integers  # estimates of each series since it began
    totals: Floats  # and their sum, as shares of k tuples
    sums: Floats  # the newest of these sums, a ring for each column
    changed: Integers  # the series that changed in the last step
    backs: Integers  # and how many of the newest estimates are of after the change


@inlined
def divergence(share: float, mean: float) -> float:
    """The divergence of a Bernoulli distribution from another, whose mean is neither 0 nor 1."""
    result = 0.0
    if share > 0.0:
        result += share * math.log(share / mean)
    if share < 1.0:
        result += (1.0 - share) * math.log((1.0 - share) / (1.0 - mean))
    return result


@kernel
def evidence(series: SeriesSums, i: int, back: int, k: int) -> float:
    """How unlikely the share of the newest estimates of a series is, as a logarithm, if nothing changed."""
    count, total = series.counts[i], series.totals[i]
    mean = total / count
    newest = total - series.sums[(count - back) % ROOM, i]
    after, before = min(max(newest / back, 0.0), 1.0), min(max((total - newest) / (count - back), 0.0), 1.0)
    return k * (back * divergence(after, mean) + (count - back) * divergence(before, mean))  # type: ignore[no-any-return]


@kernel
def step(series: SeriesSums, windows: Integers, estimates: Floats, k: int, h: float) -> int:
    """Learn one estimate of each series; returns how many series changed, and writes which and since when."""
    changed = 0
    for i in range(estimates.size):
        if math.isnan(estimates[i]):
            continue
        series.totals[i] += min(max((estimates[i] * (k + 1) - 0.5) / k, 0.0), 1.0)  # `estimate` added half a tuple
        series.counts[i] += 1
        count, total = series.counts[i], series.totals[i]
        series.sums[count % ROOM, i] = total
        mean = total / count
        variance = mean * (1.0 - mean)
        if variance < 1e-12:  # noqa: PLR2004 - all estimates are 0, or all are 1, but for rounding
            continue
        for window in windows:
            if window >= count:
                break
            difference = (total - series.sums[(count - window) % ROOM, i]) / window - mean
            # The evidence is never more than this, which takes no logarithm: a divergence is at most a chi-square.
            most = k * difference * difference / variance * window * count / (count - window)
            if most > h and evidence(series, i, window, k) > h:
                series.changed[changed], series.backs[changed] = i, change_point(series, i, k)
                changed += 1
                break
    return changed


@kernel
def change_point(series: SeriesSums, i: int, k: int) -> int:
    """How many of the newest estimates of a series are most likely of after its change."""
    best, surest = 1, 0.0
    for back in range(1, min(series.counts[i] - 1, LONGEST) + 1):
        sure = evidence(series, i, back, k)
        if sure > surest:
            best, surest = back, sure
    return best


class GLR(Detector):
    """The generalised likelihood ratio of binomial counts, over windows of many lengths.

    Parameters
    ----------
    quiet
        Estimates of each series for one false alarm of all series together, at the least, on average.
    k
        How many tuples an estimate is made of.

    Examples
    --------
    >>> from thalweg.drift.detector import estimate
    >>> random = np.random.default_rng(0)
    >>> detector = GLR()
    >>> detector.watch(2)  # two probabilities, of which the second changes after 1000 segments
    >>> for segment in range(2000):
    ...     for alarm in detector.update(estimate(random.binomial(20, [0.5, 0.3 if segment < 1000 else 0.5]))):
    ...         print(segment, alarm.series, segment + 1 - alarm.back, round(alarm.before, 2), round(alarm.after, 2))
    1008 1 1001 0.3 0.48
    """

    name: ClassVar[str] = "glr"
    training: ClassVar[int] = 5
    lets_rest: ClassVar[bool] = False
    history: ClassVar[int] = LONGEST

    def __init__(self, *, quiet: float = 1000, k: int = K) -> None:
        super().__init__(k=k)
        if not 1 <= quiet < math.inf:
            raise ValueError(f"quiet is a number of estimates, 1 or more, not {quiet}")
        self.quiet = quiet

    def _begin(self, series: int) -> None:
        self._h = math.log(2.0 * self.quiet * max(series, 1) * WINDOWS.size)
        self._series = SeriesSums(
            counts=np.zeros(series, np.int64),
            totals=np.zeros(series),
            sums=np.zeros((ROOM, series)),
            changed=np.zeros(series, np.int64),
            backs=np.zeros(series, np.int64),
        )

    def _take(self, estimates: Floats) -> list[Alarm]:
        changed = step(self._series, WINDOWS, estimates, self.k, self._h)
        return [
            self._change(int(i), int(back))
            for i, back in zip(self._series.changed[:changed], self._series.backs[:changed], strict=True)
        ]

    def _change(self, i: int, back: int) -> Alarm:
        """Begin a series anew with its estimates since the change."""
        series = self._series
        count, total = int(series.counts[i]), float(series.totals[i])
        earlier = float(series.sums[(count - back) % ROOM, i])
        before, after = earlier / (count - back), (total - earlier) / back
        strength = math.sqrt(2.0 * evidence(series, i, back, self.k))  # the standard errors of a normal variable
        newest = series.sums[(count - back + np.arange(back + 1)) % ROOM, i] - earlier
        series.sums[: back + 1, i] = newest
        series.counts[i], series.totals[i] = back, newest[-1]
        return Alarm(i, back, before, after, strength)
