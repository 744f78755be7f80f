"""BCS: the cumulative sum of beta log-likelihoods, online.

The first m estimates of a series train it: a beta distribution is fitted to them by maximum likelihood, with an
interval of confidence zeta for either parameter. From then on the parameters that the running mean and variance imply
are compared with it. Where they leave the intervals, the log-likelihood ratio of the newest estimate, implied against
trained, is added to a sum that never falls below zero; above h it is a change, begun nu estimates ago.
(bcs-change-detection-2012, section III; equations 4 and 5 print a standard deviation where the variance belongs)

The paper trains on so few estimates that the fit errs, and the sum of a series where nothing changes creeps up to h.
So here a sum above h is a suspicion. It becomes a change if the means of the estimates before and after some point
differ by more than chance explains for all series together; that point is then where it began. And the paper's running
mean and variance cover all estimates, and move more slowly the longer nothing happened; here they cover the newest 256.
`confirm=0` is the paper's method. (docs/decisions/0010 and 0075)
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from thalweg.drift import beta
from thalweg.drift.detector import Alarm, Detector, K
from thalweg.kernels import inlined, kernel
from thalweg.ordering.checked import LARGEST
from thalweg.ordering.types import Floats

RECENT = 256  # estimates of each series that are remembered: of these are mean and variance, and a change began there
ALL = 1 << 62  # more estimates than there ever are
SPLITS = 6  # looks at a suspicion that are worth as many independent looks: at the newest 5, 10, ... 160 estimates
# Least variance of the estimates, as a share of that of a proportion of k tuples: constant estimates have none.
LEAST_VARIANCE = 0.25
LEAST_PARAMETERS = 0.01  # of alpha and beta together: a variance beyond a beta distribution's implies none
FEW = 10  # estimates to train on where few tuples are profiled
DOUBT = 0.5  # of h: where the sum goes on after a suspicion that was none


# The state of each series. A record array instead of many arrays: passing each of them to a kernel takes time.
RECORD = np.dtype(
    [
        ("count", np.int64),  # estimates since training began
        ("mean", np.float64),  # of the estimates that are remembered; in the paper's method, of all estimates
        ("squares", np.float64),  # sum of their squared differences from the mean
        ("logs", np.float64),  # sum of log x
        ("rest_logs", np.float64),  # sum of log(1 - x)
        ("alpha", np.float64),  # of the trained distribution
        ("beta", np.float64),
        ("log_constant", np.float64),  # the logarithm of its beta function
        ("low_alpha", np.float64),  # the intervals of confidence
        ("high_alpha", np.float64),
        ("low_beta", np.float64),
        ("high_beta", np.float64),
        ("ratio_sum", np.float64),  # the cumulative sum of log-likelihood ratios
    ]
)
CHANGE = np.dtype(
    [
        ("series", np.int64),
        ("back", np.int64),  # estimates since the change
        ("before", np.float64),  # the mean estimate until then
        ("after", np.float64),  # the mean estimate since then
        ("strength", np.float64),  # by how many standard errors they differ
    ]
)

Records: TypeAlias = NDArray[np.void]


class Series(NamedTuple):
    """The state of all series, as kernels share it."""

    records: Records  # a `RECORD` for each series
    recent: Floats  # the newest estimates of each series, a ring for each column
    changes: Records  # a `CHANGE` for each series that changed in the last step


class Settings(NamedTuple):
    """The parameters, as kernels share them."""

    h: float
    m: int
    nu: int
    gate: float  # standard errors that span the interval of confidence zeta
    sure: float  # standard errors by which means must differ; 0 without confirmation
    k: int
    span: int  # estimates of which mean and variance are taken


@kernel
def step(series: Series, settings: Settings, estimates: Floats) -> int:
    """Learn one estimate of each series; returns how many series changed, and writes their changes."""
    changed = 0
    last = log = rest_log = 0.0
    for i in range(estimates.size):
        x = estimates[i]
        if math.isnan(x):
            continue
        record = series.records[i]
        if x == record["mean"] and record["squares"] == 0.0 and record["count"] > settings.m:
            series.recent[record["count"] % RECENT, i] = x  # constant as ever, as most probabilities of an order are
            record["count"] += 1
            continue
        if x != last:
            last, log, rest_log = x, math.log(x), math.log(1.0 - x)
        learn(series, i, x, log, rest_log, settings.span)
        if record["count"] < settings.m:
            continue
        mean = record["mean"]
        proportions = mean * (1.0 - mean)
        least = proportions / settings.k * LEAST_VARIANCE
        variance = record["squares"] / min(record["count"], settings.span)
        if record["count"] == settings.m:
            train(series, settings, i, variance, least)
            continue
        both = max(proportions / max(variance, least) - 1.0, LEAST_PARAMETERS)  # equations 4 and 5
        new_alpha, new_beta = both * mean, both * (1.0 - mean)
        if (
            record["low_alpha"] <= new_alpha <= record["high_alpha"]
            and record["low_beta"] <= new_beta <= record["high_beta"]
        ):
            continue
        ratio = (new_alpha - record["alpha"]) * log + (new_beta - record["beta"]) * rest_log
        ratio += record["log_constant"] - beta.log_beta(new_alpha, new_beta)
        record["ratio_sum"] = max(0.0, record["ratio_sum"] + ratio)
        if record["ratio_sum"] > settings.h:
            if confirm(series, settings, i, changed):
                changed += 1
            else:
                record["ratio_sum"] = DOUBT * settings.h
    return changed


@inlined
def learn(series: Series, i: int, x: float, log: float, rest_log: float, span: int) -> None:
    """Add an estimate to the running moments (equations 2 and 3) and to the sums that training needs."""
    record = series.records[i]
    place = record["count"] % RECENT
    difference = x - record["mean"]
    if record["count"] < span:
        record["mean"] += difference / (record["count"] + 1)
        record["squares"] += difference * (x - record["mean"])
    else:  # it takes the place of the oldest
        oldest = series.recent[place, i]
        record["mean"] += (x - oldest) / span
        record["squares"] = max(record["squares"] + (x - oldest) * (difference + oldest - record["mean"]), 0.0)
    series.recent[place, i] = x
    record["count"] += 1
    record["logs"] += log
    record["rest_logs"] += rest_log


@kernel
def train(series: Series, settings: Settings, i: int, variance: float, least: float) -> None:
    """Learn the base distribution of a series; that of constant estimates has the least variance."""
    record = series.records[i]
    count, mean = record["count"], record["mean"]
    if variance < least:
        both = mean * (1.0 - mean) / least - 1.0
        fitted_alpha, fitted_beta = both * mean, both * (1.0 - mean)
        alpha_error = beta_error = math.sqrt(2.0 / count)
    else:
        fitted_alpha, fitted_beta, alpha_error, beta_error = beta.fit(
            record["logs"] / count, record["rest_logs"] / count, mean, variance, count
        )
    alpha_span, beta_span = math.exp(settings.gate * alpha_error), math.exp(settings.gate * beta_error)
    record["alpha"], record["beta"] = fitted_alpha, fitted_beta
    record["low_alpha"], record["high_alpha"] = fitted_alpha / alpha_span, fitted_alpha * alpha_span
    record["low_beta"], record["high_beta"] = fitted_beta / beta_span, fitted_beta * beta_span
    record["log_constant"] = beta.log_beta(fitted_alpha, fitted_beta)
    record["ratio_sum"] = 0.0


@kernel
def confirm(series: Series, settings: Settings, i: int, place: int) -> bool:
    """Find where the change of a series began, and write it down; returns whether it is more than chance."""
    record, change = series.records[i], series.changes[place]
    newest, mean = record["count"], record["mean"]
    count = min(newest, settings.span)
    is_paper = settings.sure == 0.0
    longest = min(settings.nu if is_paper else RECENT, count - 1)
    total, after = mean * count, 0.0
    best = surest = -1.0
    for back in range(1, longest + 1):
        after += series.recent[(newest - back) % RECENT, i]
        if is_paper and back < longest:
            continue
        mean_after, mean_before = after / back, (total - after) / (count - back)
        between = back * (count - back) / count * (mean_after - mean_before) ** 2
        within = max((record["squares"] - between) / count, mean * (1.0 - mean) / settings.k)
        strength = math.sqrt(between / within)
        if min(back, count - back) >= settings.nu:  # the mean of fewer is no normal variable
            surest = max(surest, strength)
        if strength > best:
            best = strength
            change["series"], change["back"], change["strength"] = i, back, strength
            change["before"], change["after"] = mean_before, mean_after
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
        if not 0 < h <= LARGEST:
            raise ValueError(f"h is a threshold above 0 and at most {LARGEST}, not {h!r:.80}")
        if not 1 <= nu <= RECENT:
            raise ValueError(f"nu is between 1 and {RECENT} estimates, not {nu}")
        if m < 2:  # noqa: PLR2004 - the fewest that have a variance
            raise ValueError(f"at least 2 estimates are needed to train on, not {m}")
        if not 0 < zeta < 1 or not 0 <= confirm < 1:
            raise ValueError(f"zeta is between 0 and 1 and confirm from 0 to below 1, not {zeta} and {confirm}")
        self.h, self.nu, self.m, self.zeta, self.confirm = h, nu, m, zeta, confirm
        self.training = m

    @classmethod
    def for_few_tuples(cls) -> Self:
        """Train on half as many estimates as the paper: a fit that errs more makes more suspicions, not changes."""
        return cls(m=FEW)

    def _begin(self, series: int) -> None:
        split = self.confirm / (2 * SPLITS * max(series, 1))
        self._settings = Settings(
            h=float(self.h),
            m=self.m,
            nu=self.nu,
            gate=NormalDist().inv_cdf((1 + self.zeta) / 2),
            sure=NormalDist().inv_cdf(1 - split) if self.confirm else 0.0,
            k=self.k,
            span=RECENT if self.confirm else ALL,
        )
        self._series = Series(
            records=np.zeros(series, RECORD),
            recent=np.zeros((RECENT, series)),
            changes=np.zeros(series, CHANGE),
        )

    def _take(self, estimates: Floats) -> list[Alarm]:
        changed = step(self._series, self._settings, estimates)
        alarms = [Alarm(*change) for change in self._series.changes[:changed].tolist()]
        for alarm in alarms:
            self._retrain(alarm.series, alarm.back)
        return alarms

    def _retrain(self, i: int, back: int) -> None:
        """Begin a series anew with its newest estimates, fewer than training takes."""
        series = self._series
        count = int(series.records["count"][i])
        kept = [series.recent[(count - age) % RECENT, i] for age in range(min(back, self.m - 1), 0, -1)]
        series.records[i] = 0
        for x in kept:
            learn(series, i, x, math.log(x), math.log(1.0 - x), self._settings.span)
