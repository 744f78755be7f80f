from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.worker.judges import FunctionJudge
from thalweg.spark.session.worker.early_calls import DECIDED, OWN_WORD, PASSES, EarlyCall, EarlyCalls
from thalweg.spark.session.worker.shared_predicates import (
    FIRST_ROWS,
    EarlyAnswer,
    PredicateCounts,
    SharedPredicates,
)

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
    early = [_early(number, values) if data.draw(st.booleans()) else None for number in range(3)]
    shared.decide(columns, np.arange(len(values)), alive, early)
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


def _early(number: int, values: list[int]) -> EarlyAnswer:
    """The answers for each second row, as far as there is one; the others, which nobody asked, count as false."""
    outcomes = [_outcome(number, value) if row % 2 else None for row, value in enumerate(values)]
    return EarlyAnswer(
        np.array([outcome is not False and row % 2 == 1 for row, outcome in enumerate(outcomes)]),
        np.array([outcome is not None for outcome in outcomes]),
    )


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


def test_rows_with_an_early_answer_are_not_asked_again() -> None:
    asked: list[int] = []

    def ask(x: int) -> bool:
        asked.append(x)
        return True

    shared = SharedPredicates([FunctionJudge("ask", ask, "rows", [0])], [[0]], [PredicateCounts()])
    alive = [np.array([True, True, False, True])]
    early = EarlyAnswer(np.array([True, False, False, False]), np.array([True, True, False, False]))
    answers = shared.decide([pa.array([1, 2, 3, 4])], np.arange(4), alive, [early])
    assert asked == [4]
    assert answers[0].tolist() == alive[0].tolist() == [True, False, False, True]


def test_an_early_call_that_breaks_its_contract_decides_nothing() -> None:
    judge = FunctionJudge("short", lambda x: x[:1], "numpy", [1])
    (answers,) = EarlyCalls((("A", (EarlyCall(judge, ((),)),)),))([(pa.array(["A", "B", "A"]), pa.array([1, 1, 1]))])
    assert answers.to_pylist() == [1 << PASSES, 0, 1 << PASSES]


def test_early_calls_are_made_where_a_guard_holds_and_leave_failures_undecided() -> None:
    """The second call waits for the first; the third column has the bits of conditions, NULL for other streams."""
    asked: list[int] = []

    def divide(x: int) -> bool:
        asked.append(x)
        return divides(x)

    columns = [pa.array(["A", "A", "A", "B", "A", "A"]), pa.array([6, 7, 8, 8, 8, 9]), pa.array([1, 1, 0, None, 1, 1])]
    first = EarlyCall(FunctionJudge("is_small", is_small, "rows", [1]), (((2, 1),),))
    second = EarlyCall(FunctionJudge("divide", divide, "rows", [1]), (((OWN_WORD, 1 << PASSES),),))
    (answers,) = EarlyCalls((("A", (first, second)),))([tuple(columns)])
    passes, decided = 1 << PASSES, 1 << DECIDED
    both = (passes | decided) * 5  # of both calls
    assert asked == [6, 7, 8, 9]
    assert answers.to_pylist() == [both, passes | decided | passes << 2, 0, 0, both, both]
