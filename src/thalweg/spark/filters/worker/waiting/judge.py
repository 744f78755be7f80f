"""The judge of a predicate that waits: coroutines, asked for many rows at once on one event loop a worker process."""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from thalweg.spark.filters.worker.judges import Counts, FunctionJudge, Judge, NotJudge, Verdict, as_verdict, verdict_of
from thalweg.spark.filters.worker.values import python_values
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting.asking import Answered, Asker, Function
from thalweg.spark.filters.worker.waiting.budget import Budget
from thalweg.spark.filters.worker.waiting.cache import ROW_DIGEST, Cache, CacheSpec, WorkerCache, cache_of
from thalweg.spark.filters.worker.waiting.futures import then
from thalweg.spark.filters.worker.waiting.judged import Judged
from thalweg.spark.filters.worker.waiting.options import Waiting
from thalweg.spark.filters.worker.waiting.rate import TokenBucket
from thalweg.spark.filters.worker.waiting.shared_number import shared_number


class Waited(NamedTuple):
    """The outcome for some rows, and its price."""

    verdict: Verdict
    seconds: float  # of the predicate's concurrency, or of its rate, that the rows took
    cost: float | None  # as told by the function; None if it tells none


@runtime_checkable
class Waits(Judge, Protocol):
    """A judge that waits for a service, and can be asked to begin."""

    @property
    def waiting(self) -> Waiting:
        """How the service is asked."""
        ...

    def begin(self, view: View) -> Future[Waited]:
        """Begin to ask for all rows."""
        ...

    def report(self) -> dict[str, Any]:
        """The counts of its calls."""
        ...


class WaitingJudge(FunctionJudge):
    """A coroutine function of the values of a row, or of lists of values, a list for each column.

    Equal rows are asked for once, at least within an Arrow batch.
    """

    def __init__(
        self, name: str, function: Function, waiting: Waiting, columns: Sequence[int], *, folder: str, signature: str
    ) -> None:
        super().__init__(name, function, "async", columns)
        self.waiting = waiting
        self.remembered = 0  # rows that were not asked for, as an equal row was
        self._folder = folder
        self._signature = signature
        self._cache: Cache | None = None
        self._batch: Sequence[pa.Array] | None = None  # whose answers `_cache` holds if it is a cache within a batch
        self._under_way: dict[bytes, tuple[asyncio.Future[list[Answered]], int]] = {}  # the call, and the place in it

    @cached_property
    def asker(self) -> Asker:
        """Asks for single rows; it is made in the worker, as it belongs to an event loop."""
        rate, budget = self.waiting.rate, self.waiting.budget
        return Asker(
            self.waiting,
            None if rate is None else TokenBucket(rate, shared_number(self._folder, f"rate-{self._signature}")),
            None if budget is None else Budget(budget, shared_number(self._folder, f"budget-{self._signature}")),
        )

    def judge(self, view: View) -> Verdict:
        """Ask for all rows, as many at once as may be, and wait for the answers."""
        return self.begin(view).result().verdict

    def begin(self, view: View) -> Future[Waited]:
        """Begin to ask for all rows."""
        rows = list(zip(*(python_values(view.column(number)) for number in self.columns), strict=True))
        return asyncio.run_coroutine_threadsafe(self._ask_all(rows, self._cache_for(view)), event_loop())

    def _cache_for(self, view: View) -> Cache:
        if self.waiting.cache is not None:
            self._cache = self._cache or cache_of(self.waiting.cache, self._signature)
        elif self._cache is None or view.batch is not self._batch:
            self._batch, self._cache = view.batch, WorkerCache(CacheSpec())
        return self._cache

    async def _ask_all(self, rows: Sequence[tuple[Any, ...]], cache: Cache) -> Waited:
        keys = [blake2b(repr(row).encode(), digest_size=ROW_DIGEST).digest() for row in rows]
        distinct = dict(zip(keys, rows, strict=True))
        known = {key: Answered(answer) for key, answer in cache.get(distinct).items()}
        mine = {key: row for key, row in distinct.items() if key not in known and key not in self._under_way}
        others = {key: self._under_way[key] for key in distinct if key not in known and key not in mine}
        asked = dict(zip(mine, await self._ask_for(mine, cache), strict=True))
        answers = asked | known | {key: (await call)[place] for key, (call, place) in others.items()}
        self.remembered += len(rows) - len(mine)
        return self._waited([answers[key] for key in keys], list(asked.values()))

    async def _ask_for(self, rows: dict[bytes, tuple[Any, ...]], cache: Cache) -> list[Answered]:
        """Ask for rows; rows of other slices that are equal wait for the same answers."""
        keys, size = list(rows), self.waiting.batch or 1
        batches = [keys[start : start + size] for start in range(0, len(keys), size)]
        calls = [asyncio.ensure_future(self._ask_together([rows[key] for key in batch])) for batch in batches]
        for batch, call in zip(batches, calls, strict=True):
            self._under_way |= {key: (call, place) for place, key in enumerate(batch)}
        try:
            answers = [answer for answered in await asyncio.gather(*calls) for answer in answered]
            cache.put({key: each.value for key, each in zip(keys, answers, strict=True) if _can_be_kept(each)})
            return answers
        finally:
            for call in calls:
                call.cancel()  # does nothing to a call that is done
            for key in keys:
                del self._under_way[key]

    async def _ask_together(self, rows: Sequence[tuple[Any, ...]]) -> list[Answered]:
        """Ask for some rows in one call; each takes an equal share of its time and cost."""
        if self.waiting.batch is None:
            (row,) = rows
            return [await self.asker.ask(self._function, row)]
        answered = await self.asker.ask(self._function_of_lists, tuple(map(list, zip(*rows, strict=True))))
        values = [None] * len(rows) if answered.reason is not None else answered.value
        seconds, cost = answered.seconds / len(rows), answered.cost / len(rows)
        return [Answered(value, answered.reason, seconds, cost) for value in values]

    async def _function_of_lists(self, *columns: list[Any]) -> Any:  # noqa: ANN401 - as the function answers
        """The answers for a batch of rows, an answer for each row."""
        answer = await self._function(*columns)
        keep, cost = answer if isinstance(answer, Judged) else (answer, None)
        if not isinstance(keep, Sequence | np.ndarray) or len(keep) != len(columns[0]):
            raise TypeError(
                f"with batch= return a list of {len(columns[0])} booleans, a boolean for each row, not {keep!r}"
            )
        return list(keep) if cost is None else Judged(list(keep), cost)

    def _waited(self, found: Sequence[Answered], asked: Sequence[Answered]) -> Waited:
        verdict = as_verdict([answer.value for answer in found], len(found), self.name)
        reasons = {place: answer.reason for place, answer in enumerate(found) if answer.reason is not None}
        null = None if verdict.null is None else verdict.null & ~np.isin(np.arange(len(found)), list(reasons))
        seconds = sum(answer.seconds for answer in asked) / self.waiting.concurrency
        if self.waiting.rate is not None:
            calls = math.ceil(len(asked) / (self.waiting.batch or 1))
            seconds = max(seconds, calls / self.waiting.rate)
        cost = sum(answer.cost for answer in asked) if self.asker.calls.tells_cost else None
        return Waited(verdict_of(verdict.true, null, reasons), seconds, cost)

    def counts(self) -> Counts:
        """The counts of its calls under its name."""
        return {self.name: self.report()}

    def report(self) -> dict[str, Any]:
        """The counts of its calls."""
        calls, budget = self.asker.calls, self.asker.budget
        return {
            "calls": calls.calls,
            "errors": calls.errors,
            "remembered": self.remembered,
            "outages": self.asker.breaker.outages,
            "cost": calls.cost if calls.tells_cost else None,
            "budget": None if budget is None else budget.limit,
            "spent": None if budget is None else budget.spent,
        }


class NotWaitingJudge(NotJudge):
    """The negation of a predicate that waits."""

    negated: Waits

    @property
    def waiting(self) -> Waiting:
        """How it is asked."""
        return self.negated.waiting

    def begin(self, view: View) -> Future[Waited]:
        """Begin to ask for all rows."""
        return then(self.negated.begin(view), lambda waited: waited._replace(verdict=self.negation_of(waited.verdict)))

    def report(self) -> dict[str, Any]:
        """The counts of its calls."""
        return self.negated.report()


def _can_be_kept(answer: Answered) -> bool:
    return answer.reason is None and isinstance(answer.value, bool | np.bool_ | None)


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


def waiting_judge(
    name: str,
    function: Function,
    waiting: Waiting,
    folder: str,
    signature: str,
    columns: Sequence[int],
    codes: Sequence[int],  # noqa: ARG001 - as all makers of judges
) -> WaitingJudge:
    """The judge of a coroutine function of the columns at these places."""
    return WaitingJudge(name, function, waiting, columns, folder=folder, signature=signature)
