"""BCS: the cumulative sum of beta log-likelihoods, online.

The first m estimates of a series train it: a beta distribution is fitted to them by maximum likelihood, with an
interval of confidence zeta for either parameter. From then on the parameters that the running mean and variance imply
are compared with it. Where they leave the intervals, the log-likelihood ratio of the newest estimate, implied against
trained, is added to a sum that never falls below zero; above h it is a change, begun nu estimates ago.
(bcs-change-detection-2012, section III; equations 4 and 5 print a standard deviation where the variance belongs)

The paper trains on so few estimates that the fit errs, and the sum of a series where nothing changes creeps up to h.
So here a sum above h is a suspicion. It becomes a change if the means of the estimates before and after some point
differ by more than chance explains for all series together; that point is then where it began. `confirm=0` leaves
this out. (docs/decisions/0010)
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np

from thalweg.drift import beta
from thalweg.drift.detector import Alarm, Detector, K
from thalweg.kernels import inlined, kernel
from thalweg.ordering.types import Floats, Integers

RECENT = 256  # estimates of each series that are remembered, among which a change may have begun
SPLITS = 6  # looks at a suspicion that are worth as many independent ones: at the newest 5, 10, ... 160 estimates
# Least variance of the estimates, as a share of that of a proportion of k tuples: constant estimates have none.
LEAST_VARIANCE = 0.25
LEAST_PARAMETERS = 0.01  # of alpha and beta together: a variance beyond a beta distribution's implies none
DOUBT = 0.5  # of h: where the sum goes on after a suspicion that was none

MEAN, SQUARES, LOGS, REST_LOGS, ALPHA, BETA, CONSTANT, LOW_ALPHA, HIGH_ALPHA, LOW_BETA, HIGH_BETA, SUM = range(12)


class Series(NamedTuple):
    """The state of all series, as kernels share it."""

    sums: Floats  # a row of each of the above, a column a series
    counts: Integers  # estimates since training began
    recent: Floats  # the newest estimates of each series, a ring
    found: Floats  # what changed: series, back, before, after, strength, a column each
    fitted: Floats  # room for a fit


class Settings(NamedTuple):
    """The parameters, as kernels share them."""

    h: float
    m: int
    nu: int
    gate: float  # standard errors that span the interval of confidence zeta
    sure: float  # standard errors by which means must differ; 0 without confirmation
    k: int


@kernel
def step(series: Series, settings: Settings, estimates: Floats) -> int:
    """Take in one estimate of each series; returns how many changed."""
    sums, counts = series.sums, series.counts
    changed = 0
    last = log = rest_log = 0.0
    for i in range(estimates.size):
        x = estimates[i]
        if math.isnan(x):
            continue
        if x == sums[MEAN, i] and sums[SQUARES, i] == 0.0 and counts[i] > settings.m:
            series.recent[counts[i] % RECENT, i] = x  # constant as ever: what hardly ever happens, most of an order
            counts[i] += 1
            continue
        if x != last:
            last, log, rest_log = x, math.log(x), math.log(1.0 - x)
        learn(series, i, x, log, rest_log)
        if counts[i] < settings.m:
            continue
        mean = sums[MEAN, i]
        proportions = mean * (1.0 - mean)
        least = proportions / settings.k * LEAST_VARIANCE
        variance = sums[SQUARES, i] / counts[i]
        if counts[i] == settings.m:
            train(series, settings, i, variance, least)
            continue
        both = max(proportions / max(variance, least) - 1.0, LEAST_PARAMETERS)  # equations 4 and 5
        alpha, other = both * mean, both * (1.0 - mean)
        if sums[LOW_ALPHA, i] <= alpha <= sums[HIGH_ALPHA, i] and sums[LOW_BETA, i] <= other <= sums[HIGH_BETA, i]:
            continue
        ratio = (alpha - sums[ALPHA, i]) * log + (other - sums[BETA, i]) * rest_log
        ratio += sums[CONSTANT, i] - beta.log_beta(alpha, other)
        sums[SUM, i] = max(0.0, sums[SUM, i] + ratio)
        if sums[SUM, i] > settings.h:
            if confirm(series, settings, i, changed):
                changed += 1
            else:
                sums[SUM, i] = DOUBT * settings.h
    return changed


@inlined
def learn(series: Series, i: int, x: float, log: float, rest_log: float) -> None:
    """Add an estimate to the running moments (equations 2 and 3) and to what training needs."""
    sums, counts = series.sums, series.counts
    series.recent[counts[i] % RECENT, i] = x
    counts[i] += 1
    difference = x - sums[MEAN, i]
    sums[MEAN, i] += difference / counts[i]
    sums[SQUARES, i] += difference * (x - sums[MEAN, i])
    sums[LOGS, i] += log
    sums[REST_LOGS, i] += rest_log


@kernel
def train(series: Series, settings: Settings, i: int, variance: float, least: float) -> None:
    """Learn the base distribution of a series; that of constant estimates has the least variance."""
    sums, count, fitted = series.sums, series.counts[i], series.fitted
    mean = sums[MEAN, i]
    if variance < least:
        both = mean * (1.0 - mean) / least - 1.0
        fitted[0], fitted[1] = both * mean, both * (1.0 - mean)
        fitted[2] = fitted[3] = math.sqrt(2.0 / count)
    else:
        beta.fit(sums[LOGS, i] / count, sums[REST_LOGS, i] / count, mean, variance, count, fitted)
    alpha_span, beta_span = math.exp(settings.gate * fitted[2]), math.exp(settings.gate * fitted[3])
    sums[ALPHA, i], sums[LOW_ALPHA, i], sums[HIGH_ALPHA, i] = fitted[0], fitted[0] / alpha_span, fitted[0] * alpha_span
    sums[BETA, i], sums[LOW_BETA, i], sums[HIGH_BETA, i] = fitted[1], fitted[1] / beta_span, fitted[1] * beta_span
    sums[CONSTANT, i] = beta.log_beta(fitted[0], fitted[1])
    sums[SUM, i] = 0.0


@kernel
def confirm(series: Series, settings: Settings, i: int, place: int) -> bool:
    """Find where the change of a series began, and write it down if it is no chance."""
    sums, found, count = series.sums, series.found, series.counts[i]
    is_paper = settings.sure == 0.0
    longest = min(settings.nu if is_paper else RECENT, count - 1)
    total, after = sums[MEAN, i] * count, 0.0
    best = surest = -1.0
    for back in range(1, longest + 1):
        after += series.recent[(count - back) % RECENT, i]
        if is_paper and back < longest:
            continue
        mean_after, mean_before = after / back, (total - after) / (count - back)
        between = back * (count - back) / count * (mean_after - mean_before) ** 2
        within = max((sums[SQUARES, i] - between) / count, sums[MEAN, i] * (1.0 - sums[MEAN, i]) / settings.k)
        strength = math.sqrt(between / within)
        if min(back, count - back) >= settings.nu:  # the mean of fewer is no normal variable
            surest = max(surest, strength)
        if strength > best:
            best = strength
            found[0, place], found[1, place], found[2, place] = i, back, mean_before
            found[3, place], found[4, place] = mean_after, strength
    return is_paper or surest > settings.sure


class BCS(Detector):
    """The cumulative sum of beta log-likelihoods.

    Parameters
    ----------
    h
        The threshold of the sum.
    nu
        How many estimates back a change began; with confirmation, the fewest whose mean is believed.
    m
        Estimates to train on.
    zeta
        The confidence of the parameters' intervals. The paper's 0.05 is taken at its word: of nearly every estimate
        the likelihood counts. Read as intervals of 95%, recall is lower (`thalweg lab run bcs-tuning` has both).
    confirm
        How likely, in all series together, chance may explain a change that is reported; 0 reports every suspicion.
    k
        How many tuples an estimate is made of.

    Examples
    --------
    >>> from thalweg.drift.detector import estimate
    >>> random = np.random.default_rng(0)
    >>> detector = BCS()
    >>> detector.watch(2)  # two probabilities, of which the second changes after 100 segments
    >>> for segment in range(200):
    ...     for alarm in detector.update(estimate(random.binomial(20, [0.5, 0.3 if segment < 100 else 0.6]))):
    ...         print(segment, alarm.series, segment + 1 - alarm.back, round(alarm.before, 2), round(alarm.after, 2))
    117 1 100 0.32 0.62
    """

    name: ClassVar[str] = "bcs"

    def __init__(
        self, *, h: float = 25.0, nu: int = 5, m: int = 20, zeta: float = 0.05, confirm: float = 0.002, k: int = K
    ) -> None:
        super().__init__(k=k)
        if not h > 0:
            raise ValueError(f"h is a positive threshold, not {h}")
        if not 1 <= nu <= RECENT:
            raise ValueError(f"nu is between 1 and {RECENT} estimates, not {nu}")
        if m < 2:  # noqa: PLR2004 - the fewest that have a variance
            raise ValueError(f"at least 2 estimates are needed to train on, not {m}")
        if not 0 < zeta < 1 or not 0 <= confirm < 1:
            raise ValueError(f"zeta is between 0 and 1 and confirm from 0 to below 1, not {zeta} and {confirm}")
        self.h, self.nu, self.m, self.zeta, self.confirm = h, nu, m, zeta, confirm

    def _begin(self, series: int) -> None:
        split = self.confirm / (2 * SPLITS * max(series, 1))
        self._settings = Settings(
            h=float(self.h),
            m=self.m,
            nu=self.nu,
            gate=NormalDist().inv_cdf((1 + self.zeta) / 2),
            sure=NormalDist().inv_cdf(1 - split) if self.confirm else 0.0,
            k=self.k,
        )
        self._series = Series(
            sums=np.zeros((12, series)),
            counts=np.zeros(series, np.int64),
            recent=np.zeros((RECENT, series)),
            found=np.zeros((5, series)),
            fitted=np.zeros(4),
        )

    def _take(self, estimates: Floats) -> list[Alarm]:
        changed = step(self._series, self._settings, estimates)
        alarms = []
        for place in range(changed):
            which, back, before, after, strength = self._series.found[:, place].tolist()
            alarms.append(Alarm(int(which), int(back), before, after, strength))
            self._retrain(int(which), int(back))
        return alarms

    def _retrain(self, i: int, back: int) -> None:
        """Begin a series anew with its newest estimates, fewer than training takes."""
        count = int(self._series.counts[i])
        kept = [self._series.recent[(count - one) % RECENT, i] for one in range(min(back, self.m - 1), 0, -1)]
        self._series.sums[:, i] = 0.0
        self._series.counts[i] = 0
        for x in kept:
            learn(self._series, i, x, math.log(x), math.log(1.0 - x))
