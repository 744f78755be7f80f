"""What a cascade knows of its score: the thresholds in use, how they were learnt, and whether they still hold."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from thalweg.ordering.types import Booleans, Floats
from thalweg.spark.filters.worker.cascade.thresholds import Promise, Thresholds, learn, surely_above, surely_below

FIRST_ROWS = 1000  # that both judge before thresholds are first learnt; doubled each time that nothing could be spared
MOST_ROWS = 64_000  # of the last time
AUDITED_SHARE = 0.02  # of the rows that the score decides, for which the costly predicate is asked as well
AUDITED_ROWS = 2000  # after which earlier audits count no more: a change must not drown in them
DRIFT_CHANCE = 1e-4  # of a false alarm, with each look at the audits


class ProxyDecision(NamedTuple):
    """Which rows the score keeps, and for which rows the costly predicate is asked."""

    accepted: Booleans
    asked: Booleans


class Proxy:
    """Decides which rows the score decides. With thresholds that are given, nothing is learnt.

    Parameters
    ----------
    given
        Thresholds of the user; None to learn them.
    promise
        What learnt thresholds have to hold.
    """

    def __init__(self, given: Thresholds | None, promise: Promise | None, seed: int | None = None) -> None:
        self.thresholds = given or Thresholds()
        self.rows = self.spared = 0  # rows so far, and the rows for which the costly predicate was not asked
        self.drifts = 0  # times that thresholds held no more, and were learnt anew
        self._promise = promise
        self._random = np.random.default_rng(seed)
        self._looks = 0
        self._forget()

    def _forget(self) -> None:
        self._scores: list[Floats] = []
        self._truths: list[Booleans] = []
        self._labelled = 0
        self._next_look = FIRST_ROWS
        self._accepted = [0, 0]  # audited rows, and how many of them were true
        self._rejected = [0, 0]
        self._seen = np.zeros(3)  # rows since thresholds are used: rejected, kept, all

    def split(self, scores: Floats) -> ProxyDecision:
        """Which rows the score decides; NaN decides nothing."""
        accepted = scores >= self.thresholds.accept
        decided = accepted | (scores < self.thresholds.reject)
        asked = ~decided
        if self._promise is not None and decided.any():
            asked |= self._random.random(scores.size) < AUDITED_SHARE
        self.rows += scores.size
        self.spared += int(scores.size - np.count_nonzero(asked))
        return ProxyDecision(accepted & ~asked, asked)

    def note(self, scores: Floats, truths: Booleans) -> None:
        """Learn from rows for which the costly predicate was asked."""
        if self._promise is None:
            return
        known = ~np.isnan(scores)
        scores, truths = scores[known], truths[known]
        if self.thresholds == Thresholds():
            self._collect(scores, truths, self._promise)
        else:
            self._audit(scores, truths, self._promise)

    def _collect(self, scores: Floats, truths: Booleans, promise: Promise) -> None:
        self._scores.append(scores)
        self._truths.append(truths)
        self._labelled += scores.size
        if self._next_look <= self._labelled and self._next_look <= MOST_ROWS:
            self._looks += 1
            doubt = (1 - promise.confidence) / 2**self._looks  # all looks together stay within the confidence
            self.thresholds = learn(np.concatenate(self._scores), np.concatenate(self._truths), promise, doubt)
            self._next_look = 2 * self._labelled
        if self._labelled > MOST_ROWS or self.thresholds != Thresholds():
            self._scores, self._truths = [], []

    def _audit(self, scores: Floats, truths: Booleans, promise: Promise) -> None:
        """Look whether the thresholds still hold; if not, learn anew."""
        accepted, rejected = scores >= self.thresholds.accept, scores < self.thresholds.reject
        for counts, rows in ((self._accepted, accepted), (self._rejected, rejected)):
            counts[0] += int(np.count_nonzero(rows))
            counts[1] += int(np.count_nonzero(rows & truths))
        between = int(np.count_nonzero(truths & ~accepted & ~rejected))
        self._seen += [0, between, 0]
        audits, true = self._accepted
        missed_of, missed = self._rejected
        # Audited rows stand for the rows that were decided like them.
        kept = true / AUDITED_SHARE + self._seen[1]
        allowed = (1 - promise.recall) / promise.recall * kept * AUDITED_SHARE / max(missed_of, 1)
        if surely_below(true, audits, promise.precision, DRIFT_CHANCE) or surely_above(
            missed, missed_of, min(allowed, 1.0), DRIFT_CHANCE
        ):
            self.drifts += 1
            self.thresholds = Thresholds()
            self._forget()
        elif audits + missed_of > AUDITED_ROWS:
            self._accepted, self._rejected, self._seen = [0, 0], [0, 0], np.zeros(3)

    def report(self) -> dict[str, Any]:
        """What `tw.explain` tells."""
        return {
            "accept": _finite(self.thresholds.accept),
            "reject": _finite(self.thresholds.reject),
            "scored": self.rows,
            "spared": self.spared,
            "drifts": self.drifts,
        }


def _finite(threshold: float) -> float | None:
    return float(threshold) if math.isfinite(threshold) else None
