from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.worker.judges import FunctionJudge
from thalweg.spark.session.worker.shared_predicates import FIRST_ROWS, PredicateCounts, SharedPredicates

VALUES = st.lists(st.integers(0, 30), min_size=1, max_size=200)
MEMBERS = st.lists(st.lists(st.integers(0, 2), unique=True, max_size=3), min_size=1, max_size=4)


def is_even(x: int) -> bool:
    return x % 2 == 0


def is_small(x: int) -> bool | None:
    return None if x == 11 else x < 20


def divides(x: int) -> bool:
    return 60 % (x - 7) == 0  # raises for 7


FUNCTIONS = (is_even, is_small, divides)


def judges() -> list[FunctionJudge]:
    return [FunctionJudge(function.__name__, function, "rows", [1]) for function in FUNCTIONS]


@given(VALUES, MEMBERS, st.data())
def test_conjunctions_are_decided_as_row_by_row(
    values: list[int], members: list[list[int]], data: st.DataObject
) -> None:
    chosen = [np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))) for _ in members]
    seconds = data.draw(st.lists(st.floats(0, 1), min_size=3, max_size=3))
    known = [PredicateCounts(10, 5, spent) for spent in seconds]  # any order
    shared = SharedPredicates(judges(), members, known)
    alive = [mask.copy() for mask in chosen]
    columns = [pa.nulls(len(values)), pa.array(values)]
    shared.decide(columns, np.arange(len(values)), alive)
    for place, numbers in enumerate(members):
        for row, value in enumerate(values):
            outcomes = [_outcome(number, value) for number in numbers]
            is_kept = bool(chosen[place][row]) and all(outcome is not False for outcome in outcomes)
            assert alive[place][row] == is_kept
        failing = [
            row for row, value in enumerate(values) if alive[place][row] and 2 in numbers and _outcome(2, value) is None
        ]
        assert (place in shared.failed) == bool(failing)
        if failing:
            assert shared.failed[place].time == max(failing)
            assert shared.failed[place].reason.startswith("predicate 'divides': ZeroDivisionError")


def _outcome(number: int, value: int) -> bool | None:
    """None if the predicate raises; a NULL counts as false."""
    try:
        return bool(FUNCTIONS[number](value))
    except ZeroDivisionError:
        return None


def test_a_row_is_asked_once_whatever_the_number_of_conjunctions() -> None:
    asked: list[int] = []

    def ask(x: int) -> bool:
        asked.append(x)
        return x > 2

    shared = SharedPredicates([FunctionJudge("ask", ask, "rows", [0])], [[0], [0], []], [PredicateCounts()])
    alive = [np.array([True, True, False, True]), np.array([False, True, False, True]), np.ones(4, bool)]
    answers = shared.decide([pa.array([1, 2, 3, 4])], np.arange(4), alive)
    assert asked == [1, 2, 4]
    assert answers[0].tolist() == [False, False, False, True]
    assert [mask.tolist() for mask in alive] == [[False, False, False, True]] * 2 + [[True] * 4]
    assert (shared.counts[0].rows, shared.counts[0].true) == (3, 1)


def test_the_first_rows_teach_the_order_of_the_others() -> None:
    calls = {"keeps": 0, "rejects": 0}

    def keeps(x: np.ndarray) -> np.ndarray:
        calls["keeps"] += len(x)
        return np.ones(len(x), bool)

    def rejects(x: np.ndarray) -> np.ndarray:
        calls["rejects"] += len(x)
        return np.zeros(len(x), bool)

    shared = SharedPredicates(
        [FunctionJudge("keeps", keeps, "numpy", [0]), FunctionJudge("rejects", rejects, "numpy", [0])],
        [[0, 1]],
        [PredicateCounts(), PredicateCounts()],
    )
    rows = 10_000
    shared.decide([pa.array(np.arange(rows))], np.arange(rows), [np.ones(rows, bool)])
    assert calls == {"keeps": FIRST_ROWS, "rejects": rows}
