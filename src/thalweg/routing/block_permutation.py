"""Whether a candidate saves because of its values: a permutation test in blocks of time.

Profile tuples of one period share its luck. Where two regimes alternate, a class order that is wrong for the regime it
was learnt in may be right for the regime it is tried in, and then saves on every tuple of it: standard errors that take
tuples for independent of each other call that sure. So the values of a candidate are moved to other times, in blocks
that are long enough to keep neighbours together. Whatever the moved values save is luck, and a candidate has to save
surely more than that. (P. Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", 2005, chapter 9)
"""

from __future__ import annotations

import numpy as np

from thalweg.ordering.types import Integers
from thalweg.routing.benefit import surely
from thalweg.routing.classifier import Chooser, Estimate

BLOCKS = 16  # of a sample
PERMUTATIONS = 12
SEED = 0  # the same candidate of the same sample is always judged alike


def sure_saving(chooser: Chooser, estimate: Estimate, errors: float) -> float:
    """The saving, for each tuple, that a candidate exceeds by so many standard errors beyond luck.

    Two classes, each dropped by another filter, and a column of random values:

    >>> from thalweg.routing.classifier_sample import ClassifierSample
    >>> random = np.random.default_rng(0)
    >>> values = random.integers(0, 2, (1000, 2))
    >>> sample = ClassifierSample(2, 1000)
    >>> sample.insert(1 << values[:, 0], values, values.astype(float))
    >>> chooser = Chooser(sample, np.ones(2), np.zeros(2, np.int64))
    >>> [sure_saving(chooser, chooser.estimate(chooser.cells_of(place)), 3.0) > 0.3 for place in (0, 1)]
    [True, False]
    """
    random, size = np.random.default_rng(SEED), estimate.savings.size
    lucky = np.array([chooser.saving(estimate.cells, moved_blocks(size, random)) for _ in range(PERMUTATIONS)])
    by_luck = max(float(lucky.mean()), 0.0) + errors * float(lucky.std())
    return min(surely(estimate.savings, errors), estimate.saving - by_luck)


def moved_blocks(size: int, random: np.random.Generator) -> Integers:
    """The places of a sample with its blocks in random order, and all turned by a random number of places.

    >>> places = moved_blocks(100, np.random.default_rng(0))
    >>> sorted(places.tolist()) == list(range(100)), int((np.diff(places) == 1).sum()) >= 83
    (True, True)
    """
    blocks = np.array_split(np.roll(np.arange(size), int(random.integers(size))), BLOCKS)
    return np.concatenate([blocks[number] for number in random.permutation(BLOCKS)])
