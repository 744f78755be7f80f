"""Codes of keys are equal exactly where Spark's joins take values to be equal, but for hashes."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.mjoin.keys import codes, combined, equal, is_exact

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int16(), st.integers(-5, 5)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.string(), st.text(max_size=9)),
    (pa.large_string(), st.text("ab", max_size=3)),
    (pa.binary(), st.binary(max_size=9)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(10, 2), st.decimals(-99, 99, places=2)),
    (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    (pa.decimal256(60, 2), st.decimals(-(10**30), 10**30, places=2)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))),  # noqa: DTZ001 - a naive type
    (pa.duration("us"), st.timedeltas(dt.timedelta(-9), dt.timedelta(9))),
    (pa.time64("us"), st.times()),
]


@pytest.mark.parametrize(
    ("kind", "values"), KINDS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_codes_are_equal_where_values_are(kind: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    @given(st.lists(values, max_size=20), st.integers(0, 3))
    def check(chosen: list[Any], skipped: int) -> None:
        with decimal.localcontext() as context:
            context.prec = 60
            array = pa.array([*chosen[:skipped], *chosen], kind)[min(skipped, len(chosen)) :]  # with an offset
        numbers = codes(array).tolist()
        alike = [None if value != value else value for value in array.to_pylist()]  # noqa: PLR0124 - NaN equals NaN
        for value, number in zip(alike, numbers, strict=True):
            assert [value == other for other in alike] == [number == other for other in numbers]
        assert equal(array, array).all()

    check()


def test_long_types_are_hashed_and_compared_in_the_end() -> None:
    assert [is_exact(kind) for kind in (pa.int64(), pa.string(), pa.decimal128(18, 2), pa.decimal128(19, 2))] == [
        True,
        False,
        True,
        False,
    ]


def test_several_codes_depend_on_their_order() -> None:
    left, right = np.array([1, 2]), np.array([2, 1])
    assert len({*combined([left, right]).tolist(), *combined([right, left]).tolist()}) == 2
    assert combined([left]) is left


def test_what_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared; join by numbers"):
        codes(pa.array([[1]]))
