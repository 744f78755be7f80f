"""Streams whose selectivities depend on an attribute: tables 2, 3, 5 and 6 of content-based-routing-2004.

A tuple has a class, told by the attribute ``attrC``; in each class each operator passes a set share of the tuples.
Other attributes tell nothing: a constant, a sequence number, and a random foreign key for each operator (section 7.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Floats, Integers

# Table 6: A of an operator for each class, in per cent, and B of the others, for 2, 4, 6 and 8 operators. Together they
# pass 5%.
A = (5, 15, 25, 35, 45, 55, 65, 75, 85, 95)
B = {
    2: (100, 33, 20, 14, 11, 9, 8, 7, 6, 5),
    4: (100, 69, 58, 52, 48, 45, 43, 41, 39, 37),
    6: (100, 80, 72, 68, 64, 62, 60, 58, 57, 55),
    8: (100, 85, 79, 76, 73, 71, 69, 68, 67, 66),
}
SKEWS = ((5, 100), (15, 58), (25, 45), (35, 38))  # table 3, in per cent; the first is table 2
TUPLES = 100_000  # of a stream (section 7.1)
KEYS = 10_000  # rows of a stored table
CLASSIFIER = 0  # the place of attrC among the attributes


def diagonal(operators: int, a: float, b: float) -> Floats:
    """Selectivities of class (row) and operator (column): A where they have the same number, B elsewhere (table 5).

    >>> diagonal(2, 0.05, 1.0).tolist()
    [[0.05, 1.0], [1.0, 0.05]]
    """
    selectivities = np.full((operators, operators), b)
    np.fill_diagonal(selectivities, a)
    return selectivities


@dataclass(frozen=True)
class Tuples:
    """A stretch of a stream."""

    masks: Integers  # which operators drop each tuple
    values: Integers  # of the attributes, a row each: attrC, constant, sequence number, foreign keys


class Stream:
    """Tuples of classes that are equally frequent.

    >>> stream = Stream(diagonal(2, 0.0, 1.0), seed=0)
    >>> tuples = stream.next(4)
    >>> tuples.masks.tolist(), tuples.values[:, :3].tolist()
    ([2, 2, 2, 1], [[1, 7, 0], [1, 7, 1], [1, 7, 2], [0, 7, 3]])
    """

    def __init__(self, selectivities: ArrayLike, seed: int = 0) -> None:
        self.selectivities: Floats = np.asarray(selectivities, np.float64)
        self.random = np.random.default_rng(seed)
        self._sequence = 0

    @property
    def operators(self) -> int:
        """How many operators there are."""
        return int(self.selectivities.shape[1])

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return ("attrC", "constant", "sequence", *(f"fk{number + 1}" for number in range(self.operators)))

    def next(self, size: int) -> Tuples:
        """The next tuples."""
        classes = self.random.integers(0, len(self.selectivities), size)
        drops = self.random.random((size, self.operators)) >= self.selectivities[classes]
        sequence = np.arange(self._sequence, self._sequence + size)
        self._sequence += size
        keys = self.random.integers(0, KEYS, (size, self.operators))
        values = np.column_stack([classes, np.full(size, 7), sequence, keys])
        return Tuples((drops << np.arange(self.operators)).sum(axis=1), values)
