from __future__ import annotations

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting import asking as module
from thalweg.spark.filters.worker.waiting.judge import NotWaitingJudge, WaitingJudge
from thalweg.spark.filters.worker.waiting.options import Waiting

SPENT = "BudgetSpentError: the budget of {} is spent, pass a higher budget= for more calls"

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


def without_line(reason: str) -> str:
    """A reason without the line of this file in which the error was raised."""
    return re.sub(r" \(line \d+ of test_judge.py\)", "", reason)


def judge_of(function: Any, **options: Any) -> WaitingJudge:  # noqa: ANN401
    return WaitingJudge("even", function, Waiting(**options), [0], folder=tempfile.mkdtemp(), signature="even")


class Panic(BaseException):
    """As Rust's extensions raise it."""


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, Panic])
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_function_that_stops_its_program_fails_its_own_row_alone(
    raised: type[BaseException], timeout: float | None
) -> None:
    async def is_even(number: int) -> bool:
        if number == 1:
            raise raised("enough")
        return number % 2 == 0

    begun = judge_of(is_even, timeout=timeout).begin(View([pa.array([0, 1, 2, 3])]))
    verdict = begun.result(timeout=10).verdict  # it waited for ever where the event loop had ended
    assert verdict.true.tolist() == [True, False, True, False]
    assert {row: without_line(reason) for row, reason in (verdict.reasons or {}).items()} == {
        1: f"{raised.__name__}: enough"
    }


@given(st.lists(st.none() | st.integers(0, 5), min_size=1), st.integers(1, 4))
def test_answers_come_to_their_rows_and_equal_rows_are_asked_for_once(
    numbers: list[int | None], concurrency: int
) -> None:
    service = Service()
    verdict = judge_of(service.is_even, concurrency=concurrency).judge(View([pa.array(numbers, pa.int64())]))
    assert verdict.true.tolist() == [number is not None and number % 2 == 0 for number in numbers]
    assert (verdict.null is not None) == (None in numbers)
    assert service.calls == Counter(set(numbers))
    assert service.most_at_once == min(concurrency, len(set(numbers)))


@given(st.lists(st.none() | st.integers(0, 9), min_size=1), st.integers(1, 4), st.booleans())
def test_a_batch_of_rows_is_asked_for_in_one_call(numbers: list[int | None], batch: int, tells_cost: bool) -> None:  # noqa: FBT001
    asked: list[list[int | None]] = []

    async def are_even(them: list[int | None]) -> Any:  # noqa: ANN401 - a list, or a list with its cost
        asked.append(them)
        answers = [None if number is None else number % 2 == 0 for number in them]
        return tw.judged(answers, cost=3) if tells_cost else answers

    judge = judge_of(are_even, batch=batch)
    waited = judge.begin(View([pa.array(numbers, pa.int64())])).result()
    assert waited.verdict.true.tolist() == [number is not None and number % 2 == 0 for number in numbers]
    assert sorted(map(str, (number for call in asked for number in call))) == sorted(map(str, set(numbers)))
    assert len(asked) == -(-len(set(numbers)) // batch)
    assert max(map(len, asked)) <= batch
    assert waited.cost == (pytest.approx(3 * len(asked)) if tells_cost else None)


def test_a_call_for_a_batch_fails_for_all_its_rows_and_has_to_answer_for_each() -> None:
    async def answers_once(them: list[int]) -> list[bool]:
        if 9 in them:
            raise ConnectionError("busy")
        return [True]

    verdict = judge_of(answers_once, batch=2).judge(View([pa.array([1, 2, 9, 3])]))
    assert not verdict.true.any()
    assert {place: without_line(reason) for place, reason in (verdict.reasons or {}).items()} == {
        0: "TypeError: with batch= return a list of 2 booleans, a boolean for each row, not [True]",
        1: "TypeError: with batch= return a list of 2 booleans, a boolean for each row, not [True]",
        2: "ConnectionError: busy",
        3: "ConnectionError: busy",
    }


def test_retries_end_and_say_so() -> None:
    service = Service({2: 1, 4: 9, 6: 9})
    verdict = judge_of(service.is_even, retries=2).judge(View([pa.array([2, 3, 4])]))
    assert verdict.true.tolist() == [True, False, False]
    assert {place: without_line(reason) for place, reason in (verdict.reasons or {}).items()} == {
        2: "ConnectionError: busy, in the last of 3 attempts"
    }
    assert service.calls == {2: 2, 3: 1, 4: 3}
    (reason,) = (judge_of(service.is_even).judge(View([pa.array([6])])).reasons or {}).values()
    assert without_line(reason) == "ConnectionError: busy"


def test_a_call_that_hangs_is_given_up() -> None:
    async def hangs(number: int) -> bool:
        if number == 1:
            await asyncio.Event().wait()
        return True

    verdict = judge_of(hangs, timeout=0.01).judge(View([pa.array([0, 1, 2])]))
    assert verdict.true.tolist() == [True, False, True]
    assert verdict.reasons == {1: "TimeoutError: no answer within 0.01 seconds"}


def test_rows_that_cannot_be_hashed_are_asked_for() -> None:
    async def is_long(values: list[int]) -> bool:
        return len(values) > 1

    verdict = judge_of(is_long).judge(View([pa.array([[1], [1, 2], [1]])]))
    assert verdict.true.tolist() == [False, True, False]


def test_answers_are_remembered_within_a_batch_or_as_long_as_asked_for(tmp_path: Path) -> None:
    batches = [View([pa.array([2, 3])]), View([pa.array([3, None])])]
    for cache, calls in (
        (None, {2: 1, 3: 2, None: 1}),
        (tw.cache(), {2: 1, 3: 1, None: 1}),
        (tw.cache(file=tmp_path / "answers"), {2: 1, 3: 1, None: 1}),
        (tw.cache(file=tmp_path / "answers"), {}),
    ):
        service = Service()
        judge = judge_of(service.is_even, cache=cache)
        verdicts = [judge.judge(view[0:2]) for view in batches for _ in range(2)]
        assert [verdict.true.tolist() for verdict in verdicts] == 2 * [[True, False]] + 2 * [[False, False]]
        assert service.calls == calls


def test_a_told_cost_reaches_the_pipeline_and_the_budget() -> None:
    async def is_small(number: int) -> tw.Judged:
        return tw.judged(number < 2, cost=10)

    judge = judge_of(is_small, budget=30, concurrency=1)
    waited = judge.begin(View([pa.array([0, 1, 2, 3, 4])])).result()
    assert waited.cost == 30
    assert waited.verdict.true.tolist() == [True, True, False, False, False]
    assert waited.verdict.reasons == dict.fromkeys([3, 4], SPENT.format(30))
    assert judge.report()["spent"] == 30


def test_a_budget_holds_before_the_price_is_known() -> None:
    under_way, most = 0, 0

    async def is_small(number: int) -> tw.Judged:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return tw.judged(number < 2, cost=100)

    judge = judge_of(is_small, budget=1000, concurrency=32)
    waited = judge.begin(View([pa.array(range(40))])).result()
    assert waited.cost == judge.report()["spent"] == 1000
    assert set((waited.verdict.reasons or {}).values()) == {SPENT.format(1000)}
    assert most == 9  # all but the first call, which told the price


def test_a_negation_waits_too() -> None:
    negation = NotWaitingJudge("odd", judge_of(Service().is_even))
    verdict = negation.begin(View([pa.array([1, 2, None])])).result().verdict
    assert verdict.true.tolist() == [True, False, False]
    assert verdict.null is not None
    assert verdict.null.tolist() == [False, False, True]


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
    for options, message in (
        ({"concurrency": 0}, "1 or more"),
        ({"timeout": 0}, "above 0"),
        ({"retries": -1}, "0 or"),
        ({"rate": 0}, "calls a second above 0"),
        ({"budget": -1}, "0 or more"),
        ({"cache": "workers"}, "tw.cache"),
    ):
        with pytest.raises(ValueError, match=message):
            tw.predicate(waits, **options)


def test_an_object_that_is_called_as_a_coroutine_function_waits() -> None:
    class Client:
        async def __call__(self, a: int) -> bool:
            return a > 0

    assert tw.predicate(Client()).takes == "async"

    async def yields(a: int) -> AsyncIterator[bool]:
        yield a > 0

    with pytest.raises(TypeError, match=r"yields values: .* return instead of yield"):
        tw.predicate(yields)


@pytest.mark.parametrize("wrong", ["5", None, -1, float("nan")])
def test_a_cost_is_a_number(wrong: Any) -> None:  # noqa: ANN401
    assert tw.judged(keep=True, cost=Decimal("0.5")).cost == 0.5  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cost= is a number, 0 or more"):
        tw.judged(keep=True, cost=wrong)


def test_on_spark(spark: SparkSession) -> None:
    async def is_even(id: int) -> bool:  # noqa: A002 - the column's name
        await asyncio.sleep(0.001)
        return 12 // (id - 7) != 0 and id % 2 == 0

    frame = spark.range(40)
    kept = tw.where(frame, is_even, frame.id.between(8, 30))
    assert sorted(row["id"] for row in kept.collect()) == list(range(8, 20, 2))
    assert tw.where(frame, is_even, on_error="drop").count() == 10


def test_explain_tells_what_was_spent(spark: SparkSession) -> None:
    async def is_even(id: int) -> tw.Judged:  # noqa: A002 - the column's name
        await asyncio.sleep(0.001)
        return tw.judged(id % 2 == 0, cost=10)

    limited = tw.predicate(is_even, budget=100, rate=2000, concurrency=1, cache="worker")
    kept = tw.where(spark.range(0, 40, 1, 1), limited, "id > 3", on_error="drop")
    assert kept.count() == 5  # of the ten rows that the budget pays
    assert tw.explain(kept).to_dict()["wheres"][0]["judges"]["is_even"]["spent"] == 100
    assert "is_even: 10 calls; told cost 100; 100 of a budget of 100 spent" in str(tw.explain(kept))


def with_budget(budget: float) -> Any:  # noqa: ANN401 - a predicate
    async def is_even(id: int) -> tw.Judged:  # noqa: A002 - the column's name
        return tw.judged(id % 2 == 0, cost=10)

    return tw.predicate(is_even, budget=budget, concurrency=1)


def by_either(predicate: Any) -> list[Any]:  # noqa: ANN401 - a predicate
    """The predicate alone, and twice in an OR whose other part is never true for the rows of these tests."""
    return [predicate, predicate | "id < 0", tw.not_(tw.not_(tw.any_of("id < 0", predicate)))]


@pytest.mark.parametrize("form", range(3))
def test_a_spent_budget_stops_the_query(spark: SparkSession, form: int) -> None:
    frame = spark.range(0, 40, 1, 1)
    stopped = tw.where(frame, by_either(with_budget(100))[form])
    with pytest.raises(Exception, match=r"the budget of 100 is spent, pass .* on the row \{'id': 10\}"):
        stopped.collect()
    paid = tw.where(frame, by_either(with_budget(400))[form])
    assert [row["id"] for row in paid.collect()] == list(range(0, 40, 2))


@pytest.mark.parametrize("form", range(3))
def test_rows_for_which_nothing_is_left_are_dropped_or_kept_for_later(
    spark: SparkSession, tmp_path: Path, form: int
) -> None:
    frame = spark.range(0, 40, 1, 1)
    dropped = tw.where(frame, by_either(with_budget(100))[form], on_error="drop")
    assert [row["id"] for row in dropped.collect()] == list(range(0, 10, 2))
    folder = str(tmp_path / "later")
    kept = tw.where(frame, by_either(with_budget(100))[form], on_error="quarantine", quarantine=folder)
    assert [row["id"] for row in kept.collect()] == list(range(0, 10, 2))
    later = spark.read.parquet(folder)
    assert sorted(row["id"] for row in later.collect()) == list(range(10, 40))
    assert later.where("reason LIKE '%the budget of 100 is spent%'").count() == 30


@pytest.mark.parametrize("is_first", [True, False])
def test_a_member_that_accepts_a_row_spares_the_budget_of_another(spark: SparkSession, is_first: bool) -> None:  # noqa: FBT001
    limited = with_budget(200)
    kept = tw.where(spark.range(0, 40, 1, 1), limited | "id >= 10" if is_first else tw.any_of("id >= 10", limited))
    assert [row["id"] for row in kept.collect()] == [*range(0, 10, 2), *range(10, 40)]


def test_explain_tells_of_predicates_in_groups(spark: SparkSession) -> None:
    def score(id: int) -> float:  # noqa: A002 - the column's name
        return id / 40

    either = tw.any_of("id < 0", with_budget(400))
    cascade = tw.cascade(score, "id % 3 = 0", accept=0.9, reject=0.1, name="thirds")
    kept = tw.where(spark.range(0, 40, 1, 1), tw.not_(either), tw.not_(cascade))
    assert [row["id"] for row in kept.collect()] == [
        number for number in range(1, 40, 2) if number < 4 or (number < 36 and number % 3)
    ]
    (where,) = tw.explain(kept).to_dict()["wheres"]
    calls, scores = where["judges"]["is_even"], where["judges"]["thirds"]
    assert calls["cost"] == calls["spent"] == 10 * calls["calls"] > 0
    assert scores["accept"] == 0.9
    assert scores["scored"] > scores["spared"] > 0
    assert where["costs_are_seconds"]  # the group's time is measured, whatever its member tells
    assert f"is_even: {calls['calls']} calls; told cost" in str(tw.explain(kept))
    assert "thirds: the score decided" in str(tw.explain(kept))
