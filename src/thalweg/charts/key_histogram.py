"""Join selectivity from histograms of hashed keys (om-plan-charts-2005, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from thalweg.ordering.types import Integers
from thalweg.tables.codes import mixed

BUCKETS = 4096  # of a histogram: 32 KiB; two keys of any kind share a bucket once in 4096 times


@dataclass(frozen=True, eq=False)
class KeyHistogram:
    """How many keys of an input fall into each bucket of a hash.

    Histograms of parts of an input are added up, so that each task can make its own.

    >>> left = KeyHistogram.of(np.array([1, 2, 3, 4]))
    >>> right = KeyHistogram.of(np.array([1, 1])) + KeyHistogram.of(np.array([2, 9]))
    >>> round(left.selectivity_with(right), 2)  # 3 of 16 pairs are equal
    0.19
    """

    counts: Integers

    @classmethod
    def of(cls, codes: NDArray[np.integer]) -> Self:
        """The histogram of keys, given as whole numbers or as 64-bit hash codes."""
        hashed = mixed(codes.astype(np.int64).view(np.uint64))
        return cls(np.bincount((hashed % np.uint64(BUCKETS)).astype(np.int64), minlength=BUCKETS))

    def __add__(self, other: KeyHistogram) -> KeyHistogram:
        return KeyHistogram(self.counts + other.counts)

    def selectivity_with(self, other: KeyHistogram) -> float:
        """The share of all pairs of keys that are equal, about.

        Pairs in one bucket are equal, or share it by chance, which a pair of unequal keys does once in `BUCKETS`
        times; the expected number of chance pairs is taken off.
        """
        pairs = float(self.counts.sum()) * float(other.counts.sum())
        if pairs == 0.0:
            return 0.0
        together = float(self.counts.astype(np.float64) @ other.counts) / pairs
        return max(0.0, (together - 1.0 / BUCKETS) / (1.0 - 1.0 / BUCKETS))
