"""Asks a service for a row or a batch of rows: in turn, again after an error, never longer than the user allows.

A call needs a free place among the calls under way, a service that is not known to be down, its turn by the rate, and
its cost within the budget.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from thalweg.spark.filters.worker.judges import describe
from thalweg.spark.filters.worker.waiting.breaker import TRIAL_PAUSE, CircuitBreaker
from thalweg.spark.filters.worker.waiting.budget import Budget
from thalweg.spark.filters.worker.waiting.judged import Judged
from thalweg.spark.filters.worker.waiting.options import Waiting
from thalweg.spark.filters.worker.waiting.rate import TokenBucket

FIRST_DELAY = 0.1  # seconds before the first retry; doubled with every retry
LONGEST_DELAY = 10.0  # seconds
TRIALS_APART = 2.0  # seconds by which a row makes its next trial later, for each that it has made
LOOK_AGAIN = 1.0  # seconds after which such a row looks whether another row has made the trial
JITTER = 0.5  # a delay is longer or shorter by up to this share, so that retries do not come all at once

Function = Callable[..., Awaitable[Any]]


class Answered(NamedTuple):
    """The answer for a row, or the reason why there is none."""

    value: Any = None
    reason: str | None = None
    seconds: float = 0.0  # that its calls took together
    cost: float = 0.0  # as told


@dataclass
class Calls:
    """Counts of calls so far."""

    calls: int = 0  # attempts, all of them
    errors: int = 0  # attempts that failed
    cost: float = 0.0  # as told
    tells_cost: bool = False
    answered: int = 0

    @property
    def expected_cost(self) -> float:
        """The mean cost of a call; 1 as long as none was told."""
        return self.cost / max(self.answered, 1) if self.tells_cost else 1.0


class ServiceDownError(Exception):
    """The service has been down for longer than rows wait for it."""


class DeadlineError(Exception):
    """The deadline of a row came before it could be asked for again."""


class FunctionStoppedError(Exception):
    """The function raised what stops a program or a task, and not an error."""


class Asker:
    """Asks a coroutine function for one row, or one batch of rows, a call, with many calls at once."""

    def __init__(
        self,
        waiting: Waiting,
        bucket: TokenBucket | None = None,
        budget: Budget | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.waiting = waiting
        self.budget = budget
        self.breaker = CircuitBreaker(waiting.outage, clock)
        self.calls = Calls()
        self._bucket = bucket
        self._clock = clock
        self._sleep = sleep
        self._places = asyncio.Semaphore(waiting.concurrency)
        self._first = asyncio.Lock()  # of the call that tells the price
        self._next = asyncio.Lock()  # of the row that waits for the bucket's token; the others stand behind it

    async def ask(self, function: Function, row: tuple[Any, ...]) -> Answered:
        """Ask until there is an answer, or no attempt is left, or the deadline has come."""
        ends: float | None = None  # the moment of the deadline; it counts from the first attempt on
        delay, seconds = FIRST_DELAY, 0.0
        attempt = trials = 0  # calls of the row; trials are also made on behalf of other rows
        retries = self.waiting.retries
        while True:
            async with self._places, self._alone_until_priced():
                try:
                    await self._turn(ends, trials, is_last=0 < retries <= attempt + trials)
                except (ServiceDownError, DeadlineError) as error:
                    return Answered(reason=str(error), seconds=seconds)
                expected = self.calls.expected_cost
                if self.budget is not None and not self.budget.set_aside(expected):
                    return Answered(reason=_spent(self.budget), seconds=seconds)
                if ends is None and self.waiting.deadline is not None:
                    ends = self._clock() + self.waiting.deadline
                is_trial = self.breaker.begin()
                answered = await self._attempt(function, row, ends, is_trial=is_trial)
            if self.budget is not None:
                self.budget.correct((answered.cost if self.calls.tells_cost else 1.0) - expected)
            seconds += answered.seconds
            if answered.reason is None:
                return answered._replace(seconds=seconds)
            if is_trial and self.breaker.is_down and retries:  # no row fails by a trial, unless it is asked once at all
                trials += 1
                continue
            attempt += 1
            late = ends is not None and self._clock() + delay > ends
            if attempt + trials > retries or late:
                last = "" if attempt + trials == 1 else f", in the last of {attempt + trials} attempts"
                return Answered(reason=f"{answered.reason}{last}", seconds=seconds)
            await self._sleep(delay * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - no secret
            delay = min(2 * delay, LONGEST_DELAY)

    @asynccontextmanager
    async def _alone_until_priced(self) -> AsyncIterator[None]:
        """With a budget, let calls come one by one until one was answered: the price of a call is not known before."""
        async with AsyncExitStack() as alone:
            if self.budget is not None and not self.calls.answered:
                await alone.enter_async_context(self._first)
                if self.calls.answered:
                    await alone.aclose()
            yield

    async def _turn(self, ends: float | None, trials: int, *, is_last: bool) -> None:
        """Wait until a call may begin; not beyond the deadline of a row that was asked for before.

        A row whose trials have failed lets other rows make the next, and a row with a last call left keeps that for
        when the service is up: no row fails by a trial, or is asked for more often than its retries allow.
        """
        while True:
            if ends is not None and self._clock() >= ends:
                raise DeadlineError(self._late(ends))
            if pause := self.breaker.pause(trials * TRIALS_APART, is_last=is_last):
                if self.breaker.gives_up:
                    raise ServiceDownError(
                        f"ServiceDownError: the service has been down for {self.waiting.outage:g} seconds or more"
                    )
                pause = min(pause, self.breaker.patience + TRIAL_PAUSE, LOOK_AGAIN if trials or is_last else pause)
                await self._sleep(pause if ends is None else min(pause, max(ends - self._clock(), 0.0)))
                continue
            if self._bucket is not None:
                async with self._next:
                    while wait := self._bucket.take():
                        await self._sleep(wait)
                if self.breaker.pause(trials * TRIALS_APART, is_last=is_last):
                    continue
            return

    def _allowed(self, ends: float | None) -> float | None:
        """The seconds that an attempt may take that begins now."""
        limits = [self.waiting.timeout, None if ends is None else ends - self._clock()]
        return min((limit for limit in limits if limit is not None), default=None)

    def _late(self, ends: float | None) -> str:
        """Why a call that was cut has no answer: because of the deadline, if that has come, else of the timeout."""
        if ends is not None and self._clock() >= ends:
            return f"TimeoutError: no answer within the deadline of {self.waiting.deadline:g} seconds"
        return f"TimeoutError: no answer within {self.waiting.timeout:g} seconds"

    async def _attempt(
        self, function: Function, row: tuple[Any, ...], ends: float | None, *, is_trial: bool
    ) -> Answered:
        """One call, for as long as an attempt may take, and not beyond the deadline."""
        self.calls.calls += 1
        before = self._clock()
        limit = asyncio.timeout(self._allowed(ends))
        try:
            async with limit:
                value = await _called(function, row)
        except TimeoutError as error:
            reason = self._late(ends) if limit.expired() else describe(error)
            self.breaker.failed()
        except FunctionStoppedError as error:
            reason = str(error)
            self.breaker.succeeded(is_trial=is_trial)
        except Exception as error:  # noqa: BLE001 - any error of the user's function
            reason = describe(error)
            if is_of_service(error):
                self.breaker.failed()
            else:
                self.breaker.succeeded(is_trial=is_trial)
        else:
            self.breaker.succeeded(is_trial=is_trial)
            self.calls.answered += 1
            cost = 0.0
            if isinstance(value, Judged):
                value, cost = value
                self.calls.tells_cost = True
                self.calls.cost += cost
            return Answered(value, None, self._clock() - before, cost)
        self.calls.errors += 1
        return Answered(reason=reason, seconds=self._clock() - before)


def _spent(budget: Budget) -> str:
    return f"BudgetSpentError: the budget of {budget.limit:g} is spent, pass a higher budget= for more calls"


async def _called(function: Function, row: tuple[Any, ...]) -> Any:  # noqa: ANN401 - as the function answers
    """The function's answer. Exceptions that would stop the event loop, or cancel all calls, fail this call alone."""
    try:
        return await function(*row)
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # by the timeout, or as nobody waits for the answer any more
        raise FunctionStoppedError(describe(error)) from error


def is_of_service(error: Exception) -> bool:
    """Whether an error may be the service's: errors of networks and of client libraries are, a `ValueError` is not.

    >>> is_of_service(ConnectionError()), is_of_service(KeyError())
    (True, False)
    """
    return isinstance(error, OSError | EOFError) or type(error).__module__ != "builtins"
