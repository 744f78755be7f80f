"""Sorted 64-bit words that are searched many at a time, faster than `numpy.searchsorted` does."""

from __future__ import annotations

import numpy as np

from thalweg.ordering.types import Integers
from thalweg.tables.codes import WORD_BITS, Words

# The table of leading bits is at most 128 MB, enough for some eight million words; more take a step or two longer.
MOST_LEADING_BITS = 24


class SortedWords:
    """Sorted 64-bit words, searched from a table of their leading bits by halving the range that is left.

    Faster than `numpy.searchsorted`, which starts from all words and, word by word, waits for memory at each step.

    >>> SortedWords(np.array([3, 5, 5, 9], np.uint64)).rank(np.array([0, 5, 8, 10], np.uint64)).tolist()
    [0, 3, 3, 4]
    """

    def __init__(self, values: Words) -> None:
        bits = min(values.size.bit_length() + 1, MOST_LEADING_BITS)
        self._shift = np.uint64(WORD_BITS - bits)
        counts = np.bincount((values >> self._shift).view(np.int64), minlength=1 << bits)
        self._first = np.cumsum(counts) - counts
        steps = int(counts.max()).bit_length()
        self._strides = [1 << step for step in reversed(range(steps))]
        # A stride may look past the end, and must find nothing there.
        self._padded = np.append(values, np.full(1 << steps, np.iinfo(np.uint64).max, np.uint64))
        self.values = self._padded[: values.size]

    def rank(self, words: Words) -> Integers:
        """How many of the values are at most as great as each word."""
        ranks: Integers = self._first.take((words >> self._shift).view(np.int64))
        for stride in self._strides:
            ranks += (self._padded.take(ranks + (stride - 1)) <= words) * stride
        return np.minimum(ranks, self.values.size)
