"""Learns the thresholds of a cascade from rows that the score and the costly predicate have both judged.

Rows with a score of at least `accept` are kept, and rows with a score below `reject` are not; nobody asks the costly
predicate for them. So precision is lost among accepted rows alone, and recall among rejected rows alone. A threshold is
used only if an exact binomial test says that its precision or recall holds; all tests together are wrong with a chance
of at most one minus the confidence. (The setting is that of SUPG, Kang et al., VLDB 2020; the tests are our own.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from thalweg.ordering.types import Booleans, Floats

CANDIDATES = 12  # thresholds that are tested on each side: shares of the rows, spread evenly


@dataclass(frozen=True)
class Thresholds:
    """From which score rows are kept, and below which they are not; between them the costly predicate decides."""

    accept: float = math.inf
    reject: float = -math.inf


@dataclass(frozen=True)
class Promise:
    """What a cascade promises, against the costly predicate alone."""

    precision: float
    recall: float
    confidence: float


def learn(scores: Floats, truths: Booleans, promise: Promise, doubt: float) -> Thresholds:
    """The thresholds that spare most rows; `doubt` is the chance that a threshold does not hold what is promised.

    >>> scores = np.linspace(0, 1, 2000)
    >>> found = learn(scores, scores > 0.5, Promise(precision=0.9, recall=0.9, confidence=0.95), doubt=0.05)
    >>> round(found.reject, 2), round(found.accept, 2)
    (0.46, 0.46)
    """
    candidates = np.quantile(scores, np.arange(1, CANDIDATES + 1) / (CANDIDATES + 1))
    alpha = doubt / (2 * CANDIDATES)
    of_true = scores[truths]
    rejects = [
        float(candidate)
        for candidate in candidates
        if surely_above(int((of_true >= candidate).sum()), of_true.size, promise.recall, alpha)
    ]
    accepts = [
        float(candidate)
        for candidate in candidates
        if surely_above(int((of_true >= candidate).sum()), int((scores >= candidate).sum()), promise.precision, alpha)
    ]
    accept = min(accepts, default=math.inf)
    return Thresholds(accept, max((reject for reject in rejects if reject <= accept), default=-math.inf))


def surely_above(successes: int, trials: int, share: float, alpha: float) -> bool:
    """Whether so many successes have a chance of at most `alpha` if a trial succeeds with a chance of `share`.

    >>> surely_above(100, 100, share=0.95, alpha=0.01), surely_above(99, 100, share=0.95, alpha=0.01)
    (True, False)
    """
    return trials > 0 and _chance_of_as_many(successes, trials, share) <= alpha


def surely_below(successes: int, trials: int, share: float, alpha: float) -> bool:
    """Whether so few successes have a chance of at most `alpha` if a trial succeeds with a chance of `share`.

    >>> surely_below(80, 100, share=0.95, alpha=0.01), surely_below(94, 100, share=0.95, alpha=0.01)
    (True, False)
    """
    return surely_above(trials - successes, trials, 1 - share, alpha)


def _chance_of_as_many(successes: int, trials: int, share: float) -> float:
    """The chance of at least so many successes."""
    if successes <= 0:
        return 1.0
    if not 0 < share < 1:
        return float(share >= 1)
    counts = np.arange(successes, trials + 1)
    log_factorials = np.cumsum(np.log(np.maximum(np.arange(trials + 1), 1)))
    logs = log_factorials[trials] - log_factorials[counts] - log_factorials[trials - counts]
    return float(np.exp(logs + counts * math.log(share) + (trials - counts) * math.log1p(-share)).sum())
