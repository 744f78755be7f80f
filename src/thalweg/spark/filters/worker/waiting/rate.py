"""Limits how often a service is asked, for all workers together: a token bucket.

The bucket is kept as one number, the time at which the next call is due (the generic cell rate algorithm of ATM
networks, ITU-T I.371). The bucket holds a single token, so calls are spaced evenly. Networks and schedulers deliver
them less evenly: calls are begun a little more slowly than the rate allows, so that no second has more calls than that
where they arrive.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from thalweg.spark.filters.worker.waiting.shared_number import SharedNumber

SHARE = 0.95  # of the rate that is used; calls may arrive earlier or later than begun by a fortieth of a second


class TokenBucket:
    """Tells each call how long to wait.

    >>> from thalweg.spark.filters.worker.waiting.shared_number import OwnNumber
    >>> bucket = TokenBucket(rate=4 / SHARE, due=OwnNumber(), clock=lambda: 100.0)
    >>> [bucket.take() for _ in range(3)]
    [0.0, 0.25, 0.5]
    """

    def __init__(self, rate: float, due: SharedNumber, clock: Callable[[], float] = time.time) -> None:
        self.rate = rate  # calls a second
        self._due = due
        self._clock = clock

    def take(self) -> float:
        """Take a place in the queue of calls; returns the seconds until it is due."""
        now = self._clock()
        due = self._due.change(lambda due: max(due, now) + 1 / (SHARE * self.rate))
        return max(due - now, 0.0)
