"""Queue length (Q): to the operator with the shortest queue.

(content-based-routing-2004, section 6, footnote 3)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.router import Router


class QueueLength(Router):
    """Routes to the shortest queue, and knows nothing else.

    >>> QueueLength(3).next([0, 1, 2], queues=[4, 2, 7])
    1
    """

    name: ClassVar[str] = "queue-length"

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """The shorter the queue, the better; chance decides between equal queues."""
        return -queues - 0.5 * self.random.random((len(contents), self.operators))
