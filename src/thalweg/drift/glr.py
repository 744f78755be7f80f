"""GLR: the generalised likelihood ratio of the newest estimates of a series against all since its last change.

An estimate is a share of k tuples. Let s be the share of the tuples of the newest w of n estimates, r the share of the
tuples before them, p the share of all tuples, and KL the divergence of Kullback and Leibler of two Bernoulli
distributions. The evidence for a change is k (w KL(s, p) + (n - w) KL(r, p)). No distribution has to be learnt first,
and the more estimates there are, the better p is known: quiet times do not make the delay longer.

The newest 1, 2, 3, 4, 5, 6, 7, 8, 10 ... 1024 estimates are tried, so a change is found with nearly the best window for
its size. Each length has a limit of its own: among N estimates there are about N / m windows of length m that do not
overlap, so long windows have few chances to raise a false alarm, and need less evidence. Of S series there is, on
average, at most one false alarm in N estimates of each series if

    h(m) = x + 3/2 log(1 + x) + log 2  with  x = log(N S / m)  and  m = min(w, n - w).

The form is that of Siegmund and Venkatraman for normal variables: evidence exceeds h in windows of lengths from m to
2 m about N / m h^(3/2) exp(-h) times, up to a constant. The constant is calibrated, not proven: in
simulations of one series there were 0.9 false alarms or fewer in N estimates, for N from 1 to 100,000 and shares from
0.02 to 0.5; for the largest N that rests on some twenty alarms. That false alarms of S series are
at most S times as many holds however they depend on each other. (D. Siegmund and E. S. Venkatraman,
"Using the generalized likelihood ratio statistic for sequential detection of a change-point", Annals of Statistics 23,
1995; T. L. Lai, "Sequential changepoint detection in quality control and dynamical systems", Journal of the Royal
Statistical Society B 57, 1995, for windows that grow by a factor; docs/decisions/0150)

All series and windows are tried at once in NumPy, not in a kernel: workers of short jobs never compile kernels.
"""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np

from thalweg.drift.detector import Alarm, Detector, K
from thalweg.ordering.checked import LARGEST
from thalweg.ordering.types import Floats, Integers

LONGEST = 1024  # estimates of a window
ROOM = LONGEST + 1  # sums that are remembered of each series
WINDOWS = np.unique(np.round(2.0 ** (np.arange(4 * round(math.log2(LONGEST)) + 1) / 4)).astype(np.int64))
QUIET, FEW = 30_000, 1000  # estimates for one false alarm: by default, and where few tuples are profiled
LEAST_TRIES = 3.0  # windows of a length that are counted, also where fewer do not overlap
LEAST_VARIANCE = 1e-12  # of a series whose estimates are not all 0, or all 1, but for rounding


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
    >>> random = np.random.default_rng(1)
    >>> detector = GLR()
    >>> detector.watch(2)  # two probabilities, of which the second changes after 1000 segments
    >>> for segment in range(2000):
    ...     for alarm in detector.update(estimate(random.binomial(20, [0.5, 0.3 if segment < 1000 else 0.5]))):
    ...         print(segment, alarm.series, segment + 1 - alarm.back, round(alarm.before, 2), round(alarm.after, 2))
    1006 1 1002 0.3 0.57
    """

    name: ClassVar[str] = "glr"
    training: int = 5
    lets_rest: ClassVar[bool] = False
    history: ClassVar[int] = LONGEST

    @classmethod
    def for_few_tuples(cls) -> Self:
        """The detector for an executor that makes some hundred estimates in a million rows: false alarms are rare."""
        return cls(quiet=FEW)

    def __init__(self, *, quiet: float = QUIET, k: int = K) -> None:
        super().__init__(k=k)
        if not 0 < quiet <= LARGEST:
            raise ValueError(f"quiet is a number of estimates, more than 0 and at most {LARGEST}, not {quiet!r:.80}")
        self.quiet = quiet

    def _begin(self, series: int) -> None:
        self._limits = limits(self.quiet * max(series, 1))
        self._counts: Integers = np.zeros(series, np.int64)  # estimates of each series since it began
        self._totals: Floats = np.zeros(series)  # and their sum, as shares of k tuples
        self._sums: Floats = np.zeros((ROOM, series))  # the newest of these sums, a ring for each series

    def _take(self, estimates: Floats) -> list[Alarm]:
        came = np.flatnonzero(~np.isnan(estimates))
        shares = (estimates[came] * (self.k + 1) - 0.5) / self.k  # `estimate` added half a tuple on either side
        self._totals[came] += np.clip(shares, 0.0, 1.0)
        self._counts[came] += 1
        self._sums[self._counts[came] % ROOM, came] = self._totals[came]
        suspects = self._suspects(came)
        alarms = []
        for series in suspects.tolist():
            backs: Integers = np.arange(1, min(int(self._counts[series]) - 1, LONGEST) + 1)
            evidence = self._evidence(series, backs)
            windows = WINDOWS[backs.size >= WINDOWS]
            lengths = np.minimum(windows, int(self._counts[series]) - windows)
            if (evidence[windows - 1] > self._limits[lengths]).any():
                best = int(evidence.argmax())
                alarms.append(self._change(series, int(backs[best]), float(evidence[best])))
        return alarms

    def _suspects(self, came: Integers) -> Integers:
        """The series for which some window may exceed the limit, by a bound of the evidence without logarithms.

        A divergence is at most a chi-square distance.
        """
        if not came.size:
            return came
        counts, totals = self._counts[came], self._totals[came]
        means = totals / counts
        if (counts == counts[0]).all():  # as usual: then the weights of windows are the same for all series
            counts = counts[:1]
        windows = WINDOWS[counts.max() > WINDOWS][:, None]
        older = counts - windows
        differences = (totals - self._sums[older % ROOM, came]) / windows - means
        least = self._limits[np.minimum(windows, older)] * older / (self.k * windows * counts)
        variances = np.maximum(means * (1.0 - means), LEAST_VARIANCE)
        suspects: Integers = came[((differences**2 > least * variances) & (older > 0)).any(axis=0)]
        return suspects

    def _evidence(self, series: int, backs: Integers) -> Floats:
        """How unlikely the shares of so many newest estimates of a series are, as logarithms, if nothing changed."""
        count, total = int(self._counts[series]), float(self._totals[series])
        newest = total - self._sums[(count - backs) % ROOM, series]
        after, before = newest / backs, (total - newest) / (count - backs)
        mean = total / count
        evidence: Floats = self.k * (backs * divergence(after, mean) + (count - backs) * divergence(before, mean))
        return evidence

    def _change(self, series: int, back: int, evidence: float) -> Alarm:
        """Begin a series anew, without any estimate.

        The estimates since the change were chosen for being extreme. If nothing had changed, all estimates after them
        would look like a change back: false alarms would come in pairs.
        """
        count, total = int(self._counts[series]), float(self._totals[series])
        earlier = float(self._sums[(count - back) % ROOM, series])
        self._counts[series], self._totals[series], self._sums[0, series] = 0, 0.0, 0.0
        strength = math.sqrt(2.0 * evidence)  # the standard errors of a normal variable that is as unlikely
        return Alarm(series, back, earlier / (count - back), (total - earlier) / back, strength)


def limits(quiet: float) -> Floats:
    """The evidence that windows of each length need, for one false alarm in so many estimates of all series.

    >>> limits(1000)[[1, 1024]].round(1).tolist()
    [10.7, 2.9]
    """
    lengths = np.maximum(np.arange(LONGEST + 1), 1)
    tries = np.log(np.maximum(quiet / lengths, LEAST_TRIES))
    most: Floats = tries + 1.5 * np.log1p(tries) + math.log(2.0)
    return most


def divergence(shares: Floats, mean: float) -> Floats:
    """The divergence of Bernoulli distributions from another, whose mean is neither 0 nor 1.

    >>> divergence(np.array([0.5, 1.0]), 0.5).round(3).tolist()
    [0.0, 0.693]
    """
    share = np.clip(shares, 0.0, 1.0)
    rest = 1.0 - share
    result: Floats = share * np.log(np.maximum(share, LEAST_VARIANCE) / mean)
    result += rest * np.log(np.maximum(rest, LEAST_VARIANCE) / (1.0 - mean))
    return result
