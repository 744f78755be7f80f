from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.worker.judges import (
    FALSE,
    TRUE,
    UNKNOWN,
    CodeJudge,
    FunctionJudge,
    NotJudge,
    PredicateError,
    Takes,
)
from thalweg.spark.filters.worker.view import View

DIVIDED = re.compile(r"ZeroDivisionError: division by zero \(line \d+ of test_judges.py\)")
OUTCOMES = (True, False, None, "fails")  # of a row, by its number


def fails(values: list[int]) -> None:
    if any(OUTCOMES[value] == "fails" for value in values):
        raise ZeroDivisionError("division by zero")


def by_row(value: int) -> bool | None:
    fails([value])
    return OUTCOMES[value]  # type: ignore[return-value]


def by_arrow(values: pa.Array) -> pa.Array:
    fails(values.to_pylist())
    return pa.array([OUTCOMES[value] for value in values.to_pylist()], pa.bool_())


def by_numpy(values: np.ndarray) -> np.ndarray:
    fails(values.tolist())
    return np.array([OUTCOMES[value] for value in values.tolist()], object)


def by_pandas(values: pd.Series) -> pd.Series:
    fails(values.tolist())
    return pd.Series([OUTCOMES[value] for value in values], dtype=object)


KINDS: tuple[tuple[Callable[..., object], Takes], ...] = (
    (by_row, "rows"),
    (by_arrow, "arrow"),
    (by_numpy, "numpy"),
    (by_pandas, "pandas"),
)


@pytest.mark.parametrize(("function", "takes"), KINDS, ids=[takes for _, takes in KINDS])
@given(values=st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_every_kind_of_function_is_judged_row_by_row(
    function: Callable[..., object], takes: Takes, values: list[int]
) -> None:
    for negate in (False, True):
        judge = FunctionJudge("one", function, takes, [0])
        verdict = (NotJudge("not one", judge) if negate else judge).judge(View([pa.array(values)]))
        nothing = np.zeros(len(values), np.bool_)
        null = nothing if verdict.null is None else verdict.null
        failed = nothing if verdict.failed is None else verdict.failed
        assert verdict.true.tolist() == [OUTCOMES[value] is (not negate) for value in values]
        assert null.tolist() == [OUTCOMES[value] is None for value in values]
        assert failed.tolist() == [OUTCOMES[value] == "fails" for value in values]
        assert sorted(verdict.reasons or {}) == np.flatnonzero(failed).tolist()
        assert all(DIVIDED.fullmatch(reason) for reason in (verdict.reasons or {}).values())


def test_failing_rows_are_found_by_bisection() -> None:
    calls = 0

    def counted(values: pa.Array) -> pa.Array:
        nonlocal calls
        calls += 1
        return by_arrow(values)

    values = np.zeros(10_000, np.int64)
    values[1234] = OUTCOMES.index("fails")
    verdict = FunctionJudge("one", counted, "arrow", [0]).judge(View([pa.array(values)]))
    assert verdict.failed is not None
    assert np.flatnonzero(verdict.failed).tolist() == [1234]
    assert calls <= 1 + 2 * 14  # two halves of each of 14 sizes


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(2), "returned float64 values, not booleans: return a comparison"),
        (np.ones(3, np.bool_), "returned 3 values for 2 rows"),
        (pa.array(["yes", "no"]), "returned string values, not booleans"),
        (True, "returned bool, not booleans: return an array with one boolean for each row, or declare it"),
        (None, "returned NoneType, not booleans"),
        ([object(), True], "returned values that are not booleans"),
    ],
)
def test_a_function_that_breaks_its_contract_is_named(result: object, message: str) -> None:
    judge = FunctionJudge("score", lambda _: result, "arrow", [0])
    with pytest.raises(PredicateError, match="predicate 'score'") as caught:
        judge.judge(View([pa.array([1, 2])]))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "result", [[True, None], pa.chunked_array([[True], [None]]), pa.array([True, None]), pd.Series([True, None])]
)
def test_booleans_come_from_any_library(result: object) -> None:
    verdict = FunctionJudge("one", lambda _: result, "arrow", [0]).judge(View([pa.array([1, 2])]))
    assert verdict.true.tolist() == [True, False]
    assert verdict.null is not None
    assert verdict.null.tolist() == [False, True]


def test_all_null_means_all_unknown() -> None:
    verdict = FunctionJudge("one", lambda _: [None, None], "arrow", [0]).judge(View([pa.array([1, 2])]))
    assert verdict.null is not None
    assert verdict.null.all()
    assert not verdict.true.any()


def test_codes_of_spark_are_read() -> None:
    verdict = CodeJudge("one", 0).judge(View([pa.array([TRUE, FALSE, UNKNOWN, None], pa.int32())]))
    assert verdict.true.tolist() == [True, False, False, False]
    assert verdict.null is not None
    assert verdict.null.tolist() == [False, False, True, False]
    assert verdict.failed is not None
    assert verdict.failed.tolist() == [False, False, False, True]


@given(
    size=st.integers(1, 20),
    cuts=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 19), max_size=20)), max_size=4),
)
def test_a_view_knows_its_rows_and_their_places(size: int, cuts: list[tuple[bool, list[int]]]) -> None:
    view, places = View([pa.array(np.arange(size) * 10)]), np.arange(size)
    for is_slice, numbers in cuts:
        if is_slice:
            start, stop = (sorted(numbers[:2]) if len(numbers) > 1 else (0, len(view)))[:2]
            view, places = view[start:stop], places[start:stop]
        else:
            rows = np.array([number for number in numbers if number < len(view)], np.int64)
            view, places = view[rows], places[rows]
        assert len(view) == places.size
        assert view.positions.tolist() == places.tolist()
        assert view.column(0).to_pylist() == (places * 10).tolist()


def test_nested_columns_and_several_arguments() -> None:
    def both(left: pa.Array, right: pa.Array) -> pa.Array:
        return pc.equal(left, right)

    view = View([pa.array([1, 2, 3]), pa.array(["x"] * 3), pa.array([1, 5, 3])])
    assert FunctionJudge("both", both, "arrow", [0, 2]).judge(view[np.array([0, 1])]).true.tolist() == [True, False]
