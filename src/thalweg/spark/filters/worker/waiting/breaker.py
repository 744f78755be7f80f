"""A circuit breaker: a service that is down is asked no more, except for a trial now and then.

Closed, it lets all calls through. After some failures in a row it opens: calls have to wait. When the pause is over it
lets a single trial through, which closes it or opens it for a longer pause. Rows wait for the service in the meantime
and lose no attempt; when it has been down for longer than an outage may take, they fail at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

FAILURES_IN_A_ROW = 10  # after which a service counts as down; by chance, with one error in two, 1 in 1000
FIRST_PAUSE = 0.25  # seconds until the first trial; doubled with every trial that fails
LONGEST_PAUSE = 5.0  # seconds; so long a service may be up again until it is noticed
TRIAL_PAUSE = 0.05  # seconds after which to look again whether the trial has succeeded


class CircuitBreaker:
    """Says how long a call has to wait for a service that may be down.

    >>> now = 0.0
    >>> breaker = CircuitBreaker(outage=30, clock=lambda: now)
    >>> for _ in range(FAILURES_IN_A_ROW):
    ...     is_trial = breaker.begin()
    ...     breaker.failed()
    >>> breaker.pause(), breaker.gives_up
    (0.25, False)
    >>> now = 0.25
    >>> breaker.pause()
    0.0
    >>> breaker.begin()  # the trial
    True
    >>> breaker.pause()
    0.05
    >>> breaker.succeeded(is_trial=True)
    >>> breaker.pause()
    0.0
    """

    def __init__(self, outage: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.outages = 0  # so far
        self._outage = outage
        self._clock = clock
        self._failures = 0  # in a row
        self._down_since: float | None = None
        self._opens_at = 0.0  # when the next trial may begin
        self._next_pause = FIRST_PAUSE
        self._is_trying = False

    @property
    def is_down(self) -> bool:
        """Whether the service counts as down."""
        return self._down_since is not None

    @property
    def gives_up(self) -> bool:
        """Whether the service has been down for longer than rows wait for it."""
        return self.patience <= 0

    @property
    def patience(self) -> float:
        """For how many seconds rows still wait for a service that is down."""
        return math.inf if self._down_since is None else self._down_since + self._outage - self._clock()

    def pause(self, later: float = 0.0, *, is_last: bool = False) -> float:
        """How many seconds to wait before looking again; 0 if a call may begin.

        A trial may have to begin some seconds later; by a row's last call, when half of an outage's time has passed.
        """
        if self._down_since is None:
            return 0.0
        if self._is_trying:
            return TRIAL_PAUSE
        begins = self._opens_at + later
        if is_last:
            begins = max(begins, self._down_since + self._outage / 2)
        return max(begins - self._clock(), 0.0)

    def begin(self) -> bool:
        """A call begins, for which `pause` was 0; returns whether it is a trial."""
        self._is_trying = self._down_since is not None
        return self._is_trying

    def succeeded(self, *, is_trial: bool) -> None:
        """A call was answered: the service is up, unless the call began before the service was known to be down."""
        if self.is_down and not is_trial:
            return
        self._failures, self._down_since, self._is_trying, self._next_pause = 0, None, False, FIRST_PAUSE

    def failed(self) -> None:
        """A call failed for a reason that may be the service's."""
        self._failures += 1
        now = self._clock()
        if self._down_since is None:
            if self._failures < FAILURES_IN_A_ROW:
                return
            self.outages += 1
            self._down_since = now
        elif not self._is_trying:
            return  # a call that began before the service was known to be down
        self._is_trying = False
        self._opens_at = now + self._next_pause
        self._next_pause = min(2 * self._next_pause, LONGEST_PAUSE)
