"""Predicates that wait for a service: coroutines, asked for many rows at once on one event loop a worker process."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thalweg.spark.filters.worker.judges import FunctionJudge, Verdict, as_verdict, describe, verdict_of
from thalweg.spark.filters.worker.values import python_values
from thalweg.spark.filters.worker.view import View

FIRST_DELAY = 0.1  # seconds before the first retry; doubled with every retry
LONGEST_DELAY = 10.0  # seconds
JITTER = 0.5  # a delay is longer or shorter by up to this share, so that retries do not come all at once


@dataclass(frozen=True)
class Waiting:
    """How a predicate that waits is asked."""

    concurrency: int = 32  # rows that a worker asks for at once
    timeout: float | None = None  # seconds of an attempt
    retries: int = 0  # attempts after the first

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise ValueError(f"concurrency= is a number of rows, 1 or more, not {self.concurrency!r}")
        if self.timeout is not None and (type(self.timeout) not in {int, float} or not self.timeout > 0):
            raise ValueError(f"timeout= is a number of seconds above 0, not {self.timeout!r}")
        if type(self.retries) is not int or self.retries < 0:
            raise ValueError(f"retries= is how often to ask again, 0 or more, not {self.retries!r}")


class Answered(NamedTuple):
    """The answer for a row, or the reason why there is none."""

    value: Any = None
    reason: str | None = None


class WaitingJudge(FunctionJudge):
    """A coroutine function of the values of a row. Equal rows of a slice are asked for once."""

    def __init__(
        self, name: str, function: Callable[..., Awaitable[Any]], waiting: Waiting, columns: Sequence[int]
    ) -> None:
        super().__init__(name, function, "async", columns)
        self._waiting = waiting

    def judge(self, view: View) -> Verdict:
        """Ask for all rows, as many at once as may be."""
        rows = list(zip(*(python_values(view.column(number)) for number in self.columns), strict=True))
        keys: list[Hashable] = [row if _is_hashable(row) else place for place, row in enumerate(rows)]
        distinct = dict(zip(keys, rows, strict=True))
        asked = self._ask_all(list(distinct.values()))
        answers = dict(zip(distinct, asyncio.run_coroutine_threadsafe(asked, event_loop()).result(), strict=True))
        found = [answers[key] for key in keys]
        verdict = as_verdict([answer.value for answer in found], len(rows), self.name)
        reasons = {place: answer.reason for place, answer in enumerate(found) if answer.reason is not None}
        null = None if verdict.null is None else verdict.null & ~np.isin(np.arange(len(rows)), list(reasons))
        return verdict_of(verdict.true, null, reasons)

    async def _ask_all(self, rows: Sequence[tuple[Any, ...]]) -> list[Answered]:
        free = asyncio.Semaphore(self._waiting.concurrency)

        async def ask(row: tuple[Any, ...]) -> Answered:
            async with free:
                return await self._ask(row)

        return await asyncio.gather(*map(ask, rows))

    async def _ask(self, row: tuple[Any, ...]) -> Answered:
        """Ask until there is an answer, or no attempt is left."""
        delay, reason = FIRST_DELAY, ""
        for attempt in range(self._waiting.retries + 1):
            if attempt:
                await asyncio.sleep(delay * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - no secret
                delay = min(2 * delay, LONGEST_DELAY)
            try:
                return Answered(await asyncio.wait_for(self._function(*row), self._waiting.timeout))
            except TimeoutError:
                reason = f"TimeoutError: no answer within {self._waiting.timeout:g} seconds"
            except Exception as error:  # noqa: BLE001 - any error of the user's function
                reason = describe(error)
        attempts = self._waiting.retries + 1
        return Answered(reason=reason if attempts == 1 else f"{reason}, in the last of {attempts} attempts")


_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a process that was forked does not have the thread


def event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process, which runs in a thread of its own."""
    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="thalweg-waiting", daemon=True).start()
        return loop


def _is_hashable(row: tuple[Any, ...]) -> bool:
    try:
        hash(row)
    except TypeError:
        return False
    return True


def waiting_judge(
    name: str,
    function: Callable[..., Awaitable[Any]],
    waiting: Waiting,
    columns: Sequence[int],
    codes: Sequence[int],  # noqa: ARG001 - as all makers of judges
) -> WaitingJudge:
    """The judge of a coroutine function of the columns at these places."""
    return WaitingJudge(name, function, waiting, columns)
