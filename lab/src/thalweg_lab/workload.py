"""Synthetic streams with set selectivities and correlations: the model of a-greedy-2004, section 9.2.

Filters come in groups. Filters of a group agree on 80% of the tuples; filters of different groups are independent.
A stream is generated as drop masks: bit ``i`` is set if filter ``i`` drops the tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from thalweg.kernels import kernel
from thalweg.ordering.types import Floats, Integers

AGREEMENT = 0.8  # share of the tuples on which two filters of a group decide alike
CHUNK = 100_000  # tuples generated at a time: long enough to time, short enough for policies to take turns


@dataclass(frozen=True)
class Workload:
    """Filters with their drop rates, in groups of correlated filters.

    Parameters
    ----------
    drops
        The unconditional drop probability of each filter: 1 less its selectivity.
    gamma
        The correlation factor: how many filters a group has; 1 makes all independent.
    agreement
        The share of tuples on which two filters of a group decide alike. Where the drop rates do not allow it,
        the nearest possible share: never below that of independent filters.

    Examples
    --------
    >>> workload = Workload((0.5,) * 4, gamma=2)
    >>> masks = workload.masks(100_000, np.random.default_rng(0))
    >>> bits = (masks[:, None] >> np.arange(4)) & 1
    >>> [round(float(np.mean(bits[:, 0] == bits[:, i])), 2) for i in (1, 2)]
    [0.8, 0.5]
    """

    drops: tuple[float, ...]
    gamma: int = 2
    agreement: float = AGREEMENT

    @property
    def filters(self) -> int:
        """How many filters there are."""
        return len(self.drops)

    def masks(self, tuples: int, random: np.random.Generator) -> Integers:
        """The drop masks of a stretch of the stream."""
        groups = np.arange(self.filters) // self.gamma
        sharing = np.array([self._sharing(group) for group in range(groups[-1] + 1)])
        masks = np.empty(tuples, np.int64)
        _draw(np.array(self.drops), groups, sharing, np.empty_like(sharing), random, masks)
        return masks

    def chunks(self, tuples: int, random: np.random.Generator) -> Iterator[Integers]:
        """The drop masks of a stretch of the stream, in chunks."""
        for start in range(0, tuples, CHUNK):
            yield self.masks(min(CHUNK, tuples - start), random)

    def permuted(self, random: np.random.Generator) -> Workload:
        """The workload after a change: the same drop rates, at other filters."""
        return replace(self, drops=tuple(random.permutation(self.drops).tolist()))

    def _sharing(self, group: int) -> float:
        """The probability with which a filter decides by its group's common number instead of a number of its own.

        Two filters with drop rates d and e agree on 1 - |d - e| of the tuples if both use the common number, and
        on de + (1-d)(1-e) otherwise; the probability that both do is chosen so that they meet the agreement
        wanted, on average over the group's neighbours.
        """
        drops = self.drops[group * self.gamma : (group + 1) * self.gamma]
        together = [1 - abs(d - e) for d, e in pairwise(drops)]
        apart = [d * e + (1 - d) * (1 - e) for d, e in pairwise(drops)]
        if sum(together) <= sum(apart):
            return 0.0
        both = (self.agreement * len(together) - sum(apart)) / (sum(together) - sum(apart))
        return float(np.sqrt(np.clip(both, 0.0, 1.0)))


@kernel
def _draw(
    drops: Floats,
    groups: Integers,
    sharing: Floats,
    common: Floats,
    random: np.random.Generator,
    masks: Integers,
) -> None:
    for k in range(masks.size):
        for group in range(common.size):
            common[group] = random.random()
        mask = 0
        for i in range(drops.size):
            group = groups[i]
            number = common[group]
            if sharing[group] < 1.0 and random.random() >= sharing[group]:
                number = random.random()
            if number < drops[i]:
                mask |= 1 << i
        masks[k] = mask
