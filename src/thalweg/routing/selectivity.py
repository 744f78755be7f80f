"""Selectivity: a lottery in which an operator's chances are inverse to the share of tuples that it passes.

The routing of TelegraphCQ's Eddy, blind to content and to costs. (content-based-routing-2004, section 4.2)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.router import Router


class Selectivity(Router):
    """Routes at random, selective operators first more often.

    >>> router = Selectivity(2)
    >>> router.count(seen=[1000, 1000], passed=[900, 100])
    >>> first = router.orders(np.zeros((10_000, 0)))[:, 0]
    >>> round(float(np.mean(first == 1)), 1)
    0.9
    """

    name: ClassVar[str] = "selectivity"
    is_lottery: ClassVar[bool] = True

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """The inverse of the selectivity."""
        return np.tile(1.0 / self.selectivities, (len(contents), 1))
