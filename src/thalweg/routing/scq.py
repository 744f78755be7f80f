"""SCQ: to the operator of greatest benefit, by selectivity, cost and queue length.

(content-based-routing-2004, section 6, footnote 3, which leaves the formula to its source)
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.router import Router


class SCQ(Router):
    """Routes by the share of tuples dropped, per time until the tuple would be served.

    >>> router = SCQ(2, costs=[1, 2])
    >>> router.count(seen=[100, 100], passed=[50, 20])
    >>> router.next([0, 1]), router.next([0, 1], queues=[0, 1]), router.next([0, 1], queues=[9, 1])
    (0, 0, 1)
    """

    name: ClassVar[str] = "scq"

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """The benefit: (1 - selectivity) / (cost of all that wait, and of the tuple itself)."""
        return np.tile((1.0 - self.selectivities) / (self.costs * (queues + 1.0)), (len(contents), 1))
