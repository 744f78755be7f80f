"""How much an attribute tells about whether an operator passes a tuple: gain ratio, or variance, from two matrices.

Selectivity matrix M and weight matrix W belong to one profiled operator: a row for each partition of an attribute's
values, a column for each attribute. (content-based-routing-2004, sections 3.2, 4.1 and 4.4, equations 2 to 5)

The gain ratios printed in the paper's example 3.2 (0.33, 0.63, 0.37) do not follow from its equations, which give
0.001, 0.264 and 0.003; the ranking is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import integers_of, numbers_of
from thalweg.ordering.types import Floats

MOST = 1_000_000  # partitions of an attribute, and operators
ENTRIES = 101  # of the table of entropies, for selectivities of 0.00, 0.01 .. 1.00 (section 7.1)


def check_parts(parts: Sequence[int]) -> None:
    """Refuse counts of partitions that no attribute has."""
    if not all(1 <= number <= MOST and not number % 1 for number in parts):
        raise ValueError(f"parts are counts of at least 1, a count for each attribute, not {list(parts)!r:.80}")


def entropy(selectivity: ArrayLike, *, look_up: bool = False) -> Floats:
    """The entropy of passing and dropping (equation 2); looked up, that of the nearest hundredth.

    >>> entropy([0.0, 0.5, 0.104]).round(3).tolist(), entropy(0.104, look_up=True).round(3).tolist()
    ([0.0, 1.0, 0.482], 0.469)
    """
    expected = "selectivities are numbers from 0 to 1"
    passed = np.clip(numbers_of(selectivity, expected).reshape(np.shape(selectivity)), 0.0, 1.0)
    if np.isnan(passed).any():
        raise ValueError(expected)
    if look_up:
        looked_up: Floats = TABLE[np.rint(passed * (ENTRIES - 1)).astype(np.int64)]
        return looked_up
    return bits(passed) + bits(1.0 - passed)


def bits(shares: Floats) -> Floats:
    """-p log p of each share, which is 0 for 0.

    >>> bits(np.array([0.0, 0.25, 1.0])).tolist()
    [0.0, 0.5, 0.0]
    """
    result: Floats = -shares * np.log2(np.where(shares > 0, shares, 1.0))
    return np.abs(result)  # 0, not -0


TABLE: Floats = entropy(np.linspace(0.0, 1.0, ENTRIES))


@dataclass(frozen=True)
class Gain:
    """A gain ratio with its parts."""

    entropy: float  # of the whole sample (equation 2)
    information: float  # the entropy that knowing the attribute takes away (equation 3)
    split: float  # information in the split itself (equation 4)

    @property
    def ratio(self) -> float:
        """Equation 5; 0 for an attribute with one value, which splits nothing."""
        return self.information / self.split if self.split > 0 else 0.0


def gain(selectivities: ArrayLike, weights: ArrayLike, *, look_up: bool = False) -> Gain:
    """The gain ratio of an attribute for an operator, from a column of M and the same column of W.

    Table 1, where the attribute takes each of three values as often:

    >>> table = {"O1": [0.32, 0.31, 0.27], "O2": [0.10, 0.20, 0.90], "O3": [0.55, 0.65, 0.60]}
    >>> gains = {name: gain(column, [1 / 3] * 3).ratio for name, column in table.items()}
    >>> {name: round(ratio, 3) for name, ratio in gains.items()}, max(gains, key=gains.get)
    ({'O1': 0.001, 'O2': 0.264, 'O3': 0.003}, 'O2')
    """
    expected = "an attribute has a selectivity and a weight, a share of the tuples, for each partition"
    shares, passed = numbers_of(weights, expected), numbers_of(selectivities, expected)
    if shares.ndim != 1 or shares.shape != passed.shape or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(expected)
    each = np.clip(np.where(shares > 0, passed, 0.0), 0.0, 1.0)
    whole = float(entropy(shares @ each, look_up=look_up))
    within = float(shares @ entropy(each, look_up=look_up))
    return Gain(whole, max(whole - within, 0.0), float(bits(shares).sum()))


class Matrices:
    """The selectivity and weight matrices of one operator, kept without storing the sample.

    Parameters
    ----------
    parts
        How many partitions each attribute has.

    Examples
    --------
    The first attribute tells whether the operator passes a tuple, the second does not:

    >>> matrices = Matrices([2, 2])
    >>> matrices.add([[0, 0], [0, 1], [1, 0], [1, 1]], outputs=[0, 0, 1, 1])
    >>> matrices.selectivities.tolist(), matrices.weights.tolist()
    ([[0.0, 0.5], [1.0, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    >>> [gain.ratio for gain in matrices.gains()], matrices.variances().tolist()
    ([1.0, 0.0], [0.25, 0.0])
    """

    def __init__(self, parts: Sequence[int]) -> None:
        check_parts(parts)
        shape = (max(parts, default=1), len(parts))
        self.counts = np.zeros(shape, np.int64)
        self.outputs = np.zeros(shape)
        self.tuples = 0
        self.produced = 0.0

    @property
    def selectivity(self) -> float:
        """Overall: tuples that come out for each that goes in; NaN without any."""
        return self.produced / self.tuples if self.tuples else np.nan

    @property
    def selectivities(self) -> Floats:
        """M: the selectivity of each partition (row) of each attribute (column); NaN where no tuple came."""
        with np.errstate(invalid="ignore"):
            matrix: Floats = self.outputs / self.counts
        return matrix

    @property
    def weights(self) -> Floats:
        """W: the share of the tuples in each partition of each attribute."""
        matrix: Floats = self.counts / max(self.tuples, 1)
        return matrix

    @property
    def nbytes(self) -> int:
        """The memory of both matrices."""
        return self.counts.nbytes + self.outputs.nbytes

    def add(self, contents: ArrayLike, outputs: ArrayLike) -> None:
        """Count tuples: the partition of each of their attributes, a row each, and the operator's outputs.

        A filter makes 0 or 1; other operators any number.
        """
        size, attributes = self.counts.shape
        expected = (
            f"contents have a row of {attributes} numbers below {size} for each of the outputs, which are 0 or more"
        )
        numbers, made = integers_of(contents, expected), numbers_of(outputs, expected)
        if not numbers.size:
            numbers = numbers.reshape(made.size, attributes)
        if made.ndim != 1 or numbers.shape != (made.size, attributes) or ((numbers < 0) | (numbers >= size)).any():
            raise ValueError(expected)
        if not ((made >= 0) & (made < np.inf)).all():
            raise ValueError(expected)
        for attribute in range(attributes):
            column = numbers[:, attribute]
            self.counts[:, attribute] += np.bincount(column, minlength=size)
            self.outputs[:, attribute] += np.bincount(column, made, size)
        self.tuples += made.size
        self.produced += float(made.sum())

    def gains(self, *, look_up: bool = False) -> list[Gain]:
        """The gain ratio of each attribute."""
        return [gain(m, w, look_up=look_up) for m, w in zip(self.selectivities.T, self.weights.T, strict=True)]

    def variances(self) -> Floats:
        """The variance of selectivity between each attribute's partitions, for operators that are not filters (4.4).

        >>> matrices = Matrices([2])
        >>> matrices.add([[0], [0], [1], [1]], outputs=[0, 2, 5, 7])
        >>> matrices.variances().tolist()
        [6.25]
        """
        squares = np.where(self.counts > 0, self.selectivities - self.selectivity, 0.0) ** 2
        variances: Floats = (self.weights * squares).sum(axis=0)
        return variances
