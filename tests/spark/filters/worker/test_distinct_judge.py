from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.ordering.repeats import Repeats, Way
from thalweg.ordering.types import Booleans
from thalweg.spark.filters.worker.distinct_judge import DistinctJudge
from thalweg.spark.filters.worker.judges import FunctionJudge, NotJudge, Verdict
from thalweg.spark.filters.worker.view import View

ROWS = 1000
OUTCOMES = (True, False, None, "fails")


def outcome_of(value: int | None) -> bool | None:
    outcome = OUTCOMES[(value or 0) % 4]
    if outcome == "fails":
        raise ZeroDivisionError(f"division of {value}")
    return outcome  # type: ignore[return-value]


class CountedFunction:
    """A function that counts how often it is asked for each value."""

    def __init__(self, function: Callable[..., Any] = outcome_of) -> None:
        self.function = function
        self.calls: Counter[tuple[Any, ...]] = Counter()

    def __call__(self, *values: Any) -> Any:  # noqa: ANN401 - of any function
        self.calls[values] += 1
        return self.function(*values)


class Always(Repeats):
    """Chooses one way, whatever pays."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self._always = way

    def choose(self, rows: int) -> Way:
        return self._always


def judge_of(function: Callable[..., Any], way: Way, columns: tuple[int, ...] = (0,)) -> DistinctJudge:
    """A judge that asks in this way, whatever pays."""
    return DistinctJudge(FunctionJudge("asked", function, "rows", columns), columns, Always(way))


def same(found: Verdict, expected: Verdict) -> bool:
    def as_list(rows: Booleans | None) -> list[bool]:
        return [False] * len(expected.true) if rows is None else rows.tolist()

    return all(
        as_list(mine) == as_list(theirs)
        for mine, theirs in ((found.true, expected.true), (found.null, expected.null), (found.failed, expected.failed))
    ) and (found.reasons or {}) == (expected.reasons or {})


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("takes", ["slice", "rows"])
def test_verdicts_are_those_of_the_asked_judge(way: Way, takes: str) -> None:
    random = np.random.default_rng(0)
    plain, judge = FunctionJudge("asked", outcome_of, "rows", [0]), judge_of(outcome_of, way)
    for batch in range(4):
        numbers = random.integers(0, 40, ROWS)
        whole = View([pa.array(numbers, mask=numbers % 7 == 0)])
        view = whole[100:900] if takes == "slice" else whole[np.sort(random.choice(ROWS, 700, replace=False))]
        assert same(judge.judge(view), plain.judge(view)), batch


def test_each_value_is_asked_for_once_in_a_batch() -> None:
    asked = CountedFunction()
    judge = judge_of(asked, Way.EACH_VALUE)
    view = View([pa.array(np.arange(ROWS) % 40)])
    judge.judge(view)
    assert set(asked.calls.values()) == {1}
    judge.judge(view)
    assert set(asked.calls.values()) == {2}
    assert judge.repeated == 2 * (ROWS - 40)
    assert NotJudge("not", judge).repeated == judge.repeated


def test_each_value_is_asked_for_once_in_a_task_unless_it_fails() -> None:
    asked = CountedFunction()
    judge = judge_of(asked, Way.EACH_NEW_VALUE)
    view = View([pa.array(np.arange(ROWS) % 40)])
    for _ in range(3):
        judge.judge(view)
    assert {value: count for (value,), count in asked.calls.items() if count > 1} == dict.fromkeys(range(3, 40, 4), 3)
    judge.begin_task()
    judge.judge(view)
    assert asked.calls[(0,)] == 2


def test_the_function_of_a_new_task_is_asked() -> None:
    judge, fresh = judge_of(lambda x: x < 5, Way.EACH_NEW_VALUE), judge_of(lambda x: x >= 5, Way.EACH_NEW_VALUE)
    view = View([pa.array(np.arange(ROWS) % 40)])
    assert judge.judge(view).true.sum() == 5 * ROWS // 40
    judge.adopt(fresh)
    assert judge.judge(view).true.sum() == 35 * ROWS // 40


def test_combinations_of_values_are_asked_for_once() -> None:
    asked = CountedFunction(lambda left, right: left == right)
    judge = judge_of(asked, Way.EACH_NEW_VALUE, (0, 2))
    columns = [pa.array(np.arange(ROWS) % 3), pa.array(np.arange(ROWS)), pa.array(np.arange(ROWS) % 5)]
    for _ in range(2):
        assert judge.judge(View(columns)).true.sum() == np.count_nonzero(np.arange(ROWS) % 3 == np.arange(ROWS) % 5)
    assert len(asked.calls) == 15
    assert set(asked.calls.values()) == {1}


def test_lists_are_asked_for_each_row() -> None:
    asked = CountedFunction(lambda _: True)
    judge = judge_of(asked.function, Way.EACH_NEW_VALUE)
    assert judge.judge(View([pa.array([[1], [1]])])).true.tolist() == [True, True]
    assert judge.repeated == 0


def test_slow_functions_of_values_that_return_are_soon_asked_seldom() -> None:
    seconds = 0.0

    def slow(_: int) -> bool:
        nonlocal seconds
        seconds += 1e-5
        return True

    judge = DistinctJudge(FunctionJudge("slow", slow, "rows", [0]), [0], clock=lambda: seconds)
    random = np.random.default_rng(0)
    for _ in range(20):
        judge.judge(View([pa.array(random.integers(0, 50, ROWS))]))
    assert judge.repeated == 19 * ROWS - 50
