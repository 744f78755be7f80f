"""Limits how often a service is asked, for all workers together: a token bucket.

The bucket is kept as one number, the time at which the next call is due (the generic cell rate algorithm of ATM
networks, ITU-T I.371). It holds a single token: calls are never closer than the rate allows, also after a pause.
Networks deliver them less evenly, so calls are begun a little more slowly than that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from thalweg.spark.filters.worker.waiting.shared_number import SharedNumber

SHARE = 0.95  # of the rate that is used: in any second, calls may arrive earlier or later by a twentieth of it


class TokenBucket:
    """Says when the next call may begin.

    >>> from thalweg.spark.filters.worker.waiting.shared_number import OwnNumber
    >>> now = 100.0
    >>> bucket = TokenBucket(rate=4 / SHARE, due=OwnNumber(), clock=lambda: now)
    >>> bucket.take(), bucket.take()
    (0.0, 0.25)
    >>> now = 100.25
    >>> bucket.take()
    0.0
    """

    def __init__(self, rate: float, due: SharedNumber, clock: Callable[[], float] = time.time) -> None:
        self._interval = 1 / (SHARE * rate)  # seconds from call to call
        self._due = due
        self._clock = clock

    def take(self) -> float:
        """Take the token, if it is there: 0; otherwise the seconds after which to try again."""
        now = self._clock()
        due = self._due.change(lambda due: now + self._interval if due <= now else due)
        return max(due - now, 0.0)
