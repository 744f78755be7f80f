from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.spark.filters.worker import waiting as module
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting import Waiting, WaitingJudge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.0)


class Service:
    """Answers whether a number is even; fails for a number as often as told, and counts."""

    def __init__(self, failures: dict[int | None, int] | None = None) -> None:
        self.calls: Counter[int | None] = Counter()
        self.at_once = self.most_at_once = 0
        self._failures = failures or {}

    async def is_even(self, number: int | None) -> bool | None:
        self.calls[number] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.calls[number] <= self._failures.get(number, 0):
            raise ConnectionError("busy")
        return None if number is None else number % 2 == 0


def judge_of(service: Service, **options: Any) -> WaitingJudge:  # noqa: ANN401
    return WaitingJudge("even", service.is_even, Waiting(**options), [0])


@given(st.lists(st.none() | st.integers(0, 5), min_size=1), st.integers(1, 4))
def test_answers_come_to_their_rows_and_equal_rows_are_asked_for_once(
    numbers: list[int | None], concurrency: int
) -> None:
    service = Service()
    verdict = judge_of(service, concurrency=concurrency).judge(View([pa.array(numbers, pa.int64())]))
    assert verdict.true.tolist() == [number is not None and number % 2 == 0 for number in numbers]
    assert (verdict.null is not None) == (None in numbers)
    assert service.calls == Counter(set(numbers))
    assert service.most_at_once == min(concurrency, len(set(numbers)))


def test_retries_end_and_say_so() -> None:
    service = Service({2: 1, 4: 9, 6: 9})
    verdict = judge_of(service, retries=2).judge(View([pa.array([2, 3, 4])]))
    assert verdict.true.tolist() == [True, False, False]
    assert verdict.reasons == {2: "ConnectionError: busy, in the last of 3 attempts"}
    assert service.calls == {2: 2, 3: 1, 4: 3}
    assert judge_of(service).judge(View([pa.array([6])])).reasons == {0: "ConnectionError: busy"}


def test_a_call_that_hangs_is_given_up() -> None:
    async def hangs(number: int) -> bool:
        if number == 1:
            await asyncio.Event().wait()
        return True

    verdict = WaitingJudge("hangs", hangs, Waiting(timeout=0.01), [0]).judge(View([pa.array([0, 1, 2])]))
    assert verdict.true.tolist() == [True, False, True]
    assert verdict.reasons == {1: "TimeoutError: no answer within 0.01 seconds"}


def test_rows_that_cannot_be_hashed_are_asked_for_one_by_one() -> None:
    async def is_long(values: list[int]) -> bool:
        return len(values) > 1

    verdict = WaitingJudge("long", is_long, Waiting(), [0]).judge(View([pa.array([[1], [1, 2], [1]])]))
    assert verdict.true.tolist() == [False, True, False]


def test_wrong_options() -> None:
    async def waits(a: int) -> bool:
        return a > 0

    assert tw.predicate(waits).takes == "async"
    assert tw.predicate(waits, concurrency=8, retries=1).waiting == Waiting(concurrency=8, retries=1)
    with pytest.raises(TypeError, match="waits is a coroutine function: takes='async' and async def go together"):
        tw.predicate(waits, takes="rows")
    with pytest.raises(TypeError, match="is no coroutine function"):
        tw.predicate(lambda a: a, takes="async")
    with pytest.raises(TypeError, match="retries= is for a predicate that waits: write async def"):
        tw.predicate(lambda a: a, retries=2)
    for options, message in (({"concurrency": 0}, "1 or more"), ({"timeout": 0}, "above 0"), ({"retries": -1}, "0 or")):
        with pytest.raises(ValueError, match=message):
            tw.predicate(waits, **options)  # type: ignore[call-overload]


def test_on_spark(spark: SparkSession) -> None:
    async def is_even(id: int) -> bool:  # noqa: A002 - the column's name
        await asyncio.sleep(0.001)
        return 12 // (id - 7) != 0 and id % 2 == 0

    frame = spark.range(40)
    kept = tw.where(frame, is_even, frame.id.between(8, 30))
    assert sorted(row["id"] for row in kept.collect()) == list(range(8, 20, 2))
    assert tw.where(frame, is_even, on_error="drop").count() == 10
