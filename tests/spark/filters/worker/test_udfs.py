from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.worker.judges import PredicateError
from thalweg.spark.filters.worker.udfs import (
    Comparison,
    Convention,
    IteratorCall,
    UdfCall,
    UdfJudge,
    arrow_values,
    pickled_values,
    series_of,
)
from thalweg.spark.filters.worker.view import View

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
floats = st.floats(allow_nan=True, width=64)


def judge_of(function: Callable[..., Any], convention: Convention, **options: Any) -> UdfJudge:  # noqa: ANN401
    options = {"keywords": (None,), "returns": pa.bool_(), "safely": True} | options
    return UdfJudge("f", UdfCall(function=function, convention=convention, **options), [0])


def view_of(*values: Any) -> View:  # noqa: ANN401
    return View([pa.array(values)])


@given(st.sampled_from(list(OPERATORS)), floats, st.lists(st.none() | floats, min_size=1))
def test_nan_is_the_greatest_and_equal_to_itself(sign: str, constant: float, values: list[float | None]) -> None:
    def key(number: float) -> tuple[bool, float]:
        return (True, 0.0) if math.isnan(number) else (False, number)

    found = Comparison(sign, constant, pa.float64()).apply(pa.array(values, pa.float64())).to_pylist()
    assert found == [None if value is None else OPERATORS[sign](key(value), key(constant)) for value in values]


def test_comparisons_with_null() -> None:
    values = pa.array([1, None])
    assert Comparison("=", None, pa.int64()).apply(values).to_pylist() == [None, None]
    assert Comparison("<=>", None, pa.int64()).apply(values).to_pylist() == [False, True]
    assert Comparison("<=>", 1, pa.int64()).apply(values).to_pylist() == [True, False]


def test_texts_and_wider_numbers_are_compared() -> None:
    assert Comparison("<", "b", pa.string()).apply(pa.array(["a", "b", "ä"])).to_pylist() == [True, False, False]
    assert Comparison(">", 0.5, pa.float64()).apply(pa.array([0, 1], pa.int32())).to_pylist() == [False, True]


def test_pickled_values_of_another_type_are_null() -> None:
    assert pickled_values([300, True, 1.0, 2**70, None], pa.int8(), safely=True).to_pylist() == [44, *[None] * 4]
    assert pickled_values([1, 1.5, None], pa.float32(), safely=True).to_pylist() == [None, 1.5, None]
    assert pickled_values(["a", True, 5], pa.string(), safely=True).to_pylist() == ["a", "true", "5"]
    with pytest.raises(TypeError, match=r"return bool\(\.\.\.\)"):
        pickled_values([np.int64(1)], pa.bool_(), safely=True)


def test_arrow_values_are_cast_or_refused() -> None:
    assert arrow_values([1, 0], pa.bool_(), safely=True).to_pylist() == [True, False]
    with pytest.raises(pa.ArrowInvalid):
        arrow_values([300], pa.int8(), safely=True)


@pytest.mark.parametrize("convention", [Convention.ROWS, Convention.ARROW_ROWS])
def test_a_row_that_fails_fails_alone(convention: Convention) -> None:
    def f(x: int) -> bool:
        return 6 // x > 2

    verdict = judge_of(f, convention).judge(view_of(1, 0, 3))
    assert verdict.true.tolist() == [True, False, False]
    assert verdict.failed is not None
    assert verdict.failed.tolist() == [False, True, False]


def test_a_value_that_cannot_be_converted_fails_alone() -> None:
    verdict = judge_of(lambda x: x or "word", Convention.ARROW_ROWS).judge(view_of(1, 0, 2))
    assert verdict.true.tolist() == [True, False, True]
    assert list(verdict.reasons or {}) == [1]


def test_vectorised_functions_are_isolated() -> None:
    def f(x: pd.Series) -> pd.Series:
        if (x == 2).any():
            raise ValueError("two")
        return x > 0

    verdict = judge_of(f, Convention.PANDAS).judge(view_of(1, 2, 0))
    assert verdict.true.tolist() == [True, False, False]
    assert verdict.reasons is not None
    assert re.fullmatch(r"ValueError: two \(line \d+ of test_udfs.py\)", verdict.reasons[1])
    with pytest.raises(PredicateError, match="returns a Series"):
        judge_of(lambda _: 5, Convention.PANDAS).judge(view_of(1))
    with pytest.raises(PredicateError, match="returned 1 values for 2 rows"):
        judge_of(lambda _: pa.array([True]), Convention.ARROW).judge(view_of(1, 2))


def test_arguments_by_name() -> None:
    judge = UdfJudge("f", UdfCall(lambda x, *, y: x > y, Convention.ROWS, (None, "y"), pa.bool_(), safely=True), [0, 1])
    assert judge.judge(View([pa.array([1, 3]), pa.array([2, 2])])).true.tolist() == [False, True]


def test_an_iterator_starts_once_and_again_after_an_error() -> None:
    starts: list[int] = []

    def f(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        starts.append(len(starts))
        for batch in batches:
            yield pa.array([10 // number > 1 for number in batch.to_pylist()])

    judge = judge_of(f, Convention.ARROW_ITERATOR)
    assert judge.judge(view_of(1, 20)).true.tolist() == [True, False]
    assert judge.judge(view_of(2)).true.tolist() == [True]
    assert starts == [0]
    reasons = judge.judge(view_of(0, 3)).reasons
    assert reasons is not None
    assert re.match(r"ZeroDivisionError: .* \(line \d+ of test_udfs.py\)", reasons.pop(0))
    assert not reasons


def test_an_iterator_that_reads_ahead_is_called_anew() -> None:
    def reads_ahead(batches: Iterator[list[int]]) -> Iterator[list[int]]:
        waiting = next(batches)
        for batch in batches:
            yield waiting
            waiting = batch
        yield waiting

    call = IteratorCall(reads_ahead)
    assert [call([number, number], 2) for number in range(3)] == [[[number, number]] for number in range(3)]


def test_an_iterator_may_cut_batches_its_own_way() -> None:
    call = IteratorCall(lambda batches: ([number] for batch in batches for number in batch))
    assert [call([1, 2], 2), call([3], 1)] == [[[1], [2]], [[3]]]


def test_a_null_turns_a_column_into_floats_or_objects() -> None:
    view = View([pa.array([1, None]), pa.array([True, None])])
    assert [series_of(view[:1], number).dtype.name for number in (0, 1)] == ["float64", "object"]
