"""Time is virtual here: the event loop jumps to the next moment at which something happens."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from thalweg.spark.filters.worker.waiting.asking import Answered, Asker
from thalweg.spark.filters.worker.waiting.breaker import FAILURES_IN_A_ROW
from thalweg.spark.filters.worker.waiting.budget import Budget
from thalweg.spark.filters.worker.waiting.options import Waiting
from thalweg.spark.filters.worker.waiting.rate import SHARE, TokenBucket
from thalweg.spark.filters.worker.waiting.shared_number import OwnNumber


class VirtualLoop(asyncio.SelectorEventLoop):
    now = 0.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)  # noqa: SLF001
        super()._run_once()  # type: ignore[misc]


Service = Callable[[int], Awaitable[bool]]


def ask_all(rows: int, service: Callable[[VirtualLoop], Service], **options: Any) -> tuple[list[Answered], VirtualLoop]:  # noqa: ANN401
    loop = VirtualLoop()
    waiting = Waiting(**options)
    bucket = None if waiting.rate is None else TokenBucket(waiting.rate, OwnNumber(), loop.time)

    async def run() -> list[Answered]:
        asker = Asker(waiting, bucket, clock=loop.time)
        return await asyncio.gather(*(asker.ask(service(loop), (row,)) for row in range(rows)))

    try:
        return loop.run_until_complete(run()), loop
    finally:
        loop.close()


def test_concurrency_bounds_calls_under_way() -> None:
    def service(loop: VirtualLoop) -> Service:  # noqa: ARG001
        async def answer(row: int) -> bool:  # noqa: ARG001
            await asyncio.sleep(1)
            return True

        return answer

    answers, loop = ask_all(100, service, concurrency=10)
    assert loop.now == pytest.approx(10)
    assert sum(answer.seconds for answer in answers) == pytest.approx(100)


def test_the_rate_spaces_calls_whatever_the_concurrency() -> None:
    begun: list[float] = []

    def service(loop: VirtualLoop) -> Service:
        async def answer(row: int) -> bool:  # noqa: ARG001
            begun.append(loop.time())
            return True

        return answer

    ask_all(50, service, concurrency=20, rate=10)
    assert begun == pytest.approx([number / (10 * SHARE) for number in range(50)])


def test_rows_outlast_an_outage_and_lose_no_attempt_while_the_service_is_down() -> None:
    calls: list[tuple[float, int]] = []

    def service(loop: VirtualLoop) -> Service:
        async def answer(row: int) -> bool:
            calls.append((loop.time(), row))
            await asyncio.sleep(0.05)
            if loop.time() < 10:
                raise ConnectionError("down")
            return True

        return answer

    answers, loop = ask_all(200, service, concurrency=20, retries=3)
    assert all(answer.value and answer.reason is None for answer in answers)
    assert sum(at < 10 for at, _ in calls) < 2 * FAILURES_IN_A_ROW + 20
    assert loop.now < 20


@pytest.mark.parametrize("rows", [1, 2, FAILURES_IN_A_ROW, 20, 40])
@pytest.mark.parametrize("retries", [1, 2, 5, 20])
def test_no_row_fails_by_a_trial_nor_is_asked_more_often_than_its_retries_allow(rows: int, retries: int) -> None:
    calls = Counter[int]()

    def service(loop: VirtualLoop) -> Service:
        async def answer(row: int) -> bool:
            calls[row] += 1
            await asyncio.sleep(0.05)
            if loop.time() < 10:
                raise ConnectionError("down")
            return True

        return answer

    answers, _ = ask_all(rows, service, concurrency=20, retries=retries)
    assert max(calls.values()) <= retries + 1
    if rows * retries >= FAILURES_IN_A_ROW:  # the service counts as down before all attempts have failed
        assert all(answer.value and answer.reason is None for answer in answers)


def test_late_answers_of_calls_from_before_an_outage_do_not_end_it() -> None:
    calls: list[float] = []

    def service(loop: VirtualLoop) -> Service:
        async def answer(row: int) -> bool:
            calls.append(loop.time())
            if 0.5 <= loop.time() < 5:
                raise ConnectionError("down")
            await asyncio.sleep(0.02 + row % 20 / 10)
            return True

        return answer

    answers, _ = ask_all(100, service, concurrency=20, retries=2)
    assert all(answer.value and answer.reason is None for answer in answers)
    assert sum(0.5 <= at < 5 for at in calls) < 2 * FAILURES_IN_A_ROW + 10


def test_rows_fail_at_once_when_a_service_stays_down() -> None:
    calls: list[int] = []

    def service(loop: VirtualLoop) -> Service:  # noqa: ARG001
        async def answer(row: int) -> bool:
            calls.append(row)
            raise ConnectionError("down")

        return answer

    answers, loop = ask_all(1000, service, concurrency=20, retries=3, outage=30)
    assert all(answer.reason for answer in answers)
    assert answers[-1].reason == "ServiceDownError: the service has been down for 30 seconds or more"
    assert len(calls) < 60
    assert 30 <= loop.now < 31


def test_an_error_of_the_row_does_not_count_as_an_outage() -> None:
    def service(loop: VirtualLoop) -> Service:  # noqa: ARG001
        async def answer(row: int) -> bool:
            raise ValueError(row)

        return answer

    answers, loop = ask_all(100, service)
    for row, answer in enumerate(answers):
        assert re.fullmatch(rf"ValueError: {row} \(line \d+ of test_asking.py\)", answer.reason or "")
    assert loop.now == 0


def hangs(loop: VirtualLoop) -> Service:  # noqa: ARG001
    async def answer(row: int) -> bool:  # noqa: ARG001
        await asyncio.sleep(100)
        return True

    return answer


@pytest.mark.parametrize("timeout", [None, 1, 3, 50])
def test_no_attempt_goes_on_after_the_deadline(timeout: float | None) -> None:
    (answer,), loop = ask_all(1, hangs, timeout=timeout, retries=50, deadline=5)
    assert answer.reason is not None
    assert answer.reason.startswith("TimeoutError: no answer within ")
    assert loop.now == pytest.approx(5, abs=2 if timeout == 1 else 1e-6)
    assert loop.now < 5 + 1e-6
    if timeout in {None, 50}:
        assert answer.reason == "TimeoutError: no answer within the deadline of 5 seconds"


def test_the_deadline_counts_from_the_first_attempt_and_not_while_other_rows_are_asked_for() -> None:
    def service(loop: VirtualLoop) -> Service:  # noqa: ARG001
        async def answer(row: int) -> bool:  # noqa: ARG001
            await asyncio.sleep(1)
            return True

        return answer

    answers, loop = ask_all(20, service, concurrency=1, deadline=5)
    assert all(answer.value and answer.reason is None for answer in answers)
    assert loop.now == pytest.approx(20)


def test_a_row_does_not_wait_beyond_its_deadline_for_a_service_that_is_down() -> None:
    def service(loop: VirtualLoop) -> Service:  # noqa: ARG001
        async def answer(row: int) -> bool:  # noqa: ARG001
            raise ConnectionError("down")

        return answer

    answers, loop = ask_all(FAILURES_IN_A_ROW, service, retries=100, deadline=3, outage=30)
    assert all(answer.reason for answer in answers)
    assert loop.now < 3.1


def test_a_service_whose_trial_call_cannot_be_paid_is_not_taken_for_one_under_trial() -> None:
    loop, calls = VirtualLoop(), 0

    async def answer(row: int) -> bool:  # noqa: ARG001
        nonlocal calls
        calls += 1
        raise ConnectionError("down")

    async def run() -> list[Answered]:
        waiting = Waiting(concurrency=1, outage=1000, budget=FAILURES_IN_A_ROW)
        asker = Asker(waiting, budget=Budget(FAILURES_IN_A_ROW, OwnNumber()), clock=loop.time)
        return await asyncio.gather(*(asker.ask(answer, (row,)) for row in range(2 * FAILURES_IN_A_ROW)))

    try:
        answers = loop.run_until_complete(run())
    finally:
        loop.close()
    assert calls == FAILURES_IN_A_ROW
    spent = f"BudgetSpentError: the budget of {FAILURES_IN_A_ROW} is spent, pass a higher budget= for more calls"
    assert answers[-1].reason == spent
    assert loop.now < 10
