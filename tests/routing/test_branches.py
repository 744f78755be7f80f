from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering.types import Integers
from thalweg.routing.branches import FEWEST, Branches, Test, branches_of
from thalweg.sealed import SavedStateError
from thalweg_lab.experiments.cbr.stream import Stream, diagonal

COSTS, FREE = np.full(4, 1e-6), np.zeros(4, np.int64)
DAY = dt.date(2020, 2, 29)


def sampled(size: int = 3000, b: float = 1.0) -> tuple[Integers, dict[str, pa.Array]]:
    stream = Stream(diagonal(4, 0.05, b))
    part = stream.next(size)
    return part.masks, {name: pa.array(one) for name, one in zip(stream.attributes, part.values.T, strict=True)}


def classes_of(found: Branches, values: dict[str, list[Any]]) -> list[int]:
    """Which branch each row takes, by the tests' meaning; 0 for none."""

    def holds(test: Test, value: Any) -> bool:  # noqa: ANN401 - of any type
        is_number = value is not None and value == value  # noqa: PLR0124 - NaN is the one that does not
        if test[0] == "is":
            same_nan = isinstance(test[1], float) and test[1] != test[1] and not is_number and value is not None
            return bool(test[1] == value) or same_nan
        low, high = test[1:]
        if low is None and high is None:
            return not is_number
        return is_number and (low is None or low <= value) and (high is None or value < high)

    rows = list(zip(*(values[name] for name in found.attributes), strict=True))
    return [
        next(
            (
                number
                for number, branch in enumerate(found.branches, 1)
                if any(all(map(holds, cell, row)) for cell in branch.cells)
            ),
            0,
        )
        for row in rows
    ]


def test_the_right_column_makes_the_branches() -> None:
    masks, columns = sampled()
    found, about = branches_of(masks, COSTS, FREE, columns)
    assert found is not None
    assert found.attributes == ("attrC",)
    assert found.saving > 0.4
    taken = classes_of(found, {"attrC": [0, 1, 2, 3, 9]})
    assert [found.branches[one - 1].order[0] for one in taken[:4]] == [0, 1, 2, 3]
    assert taken[4] == 0
    assert about["pruned"].keys() == {"constant", "sequence"}
    assert [one["attributes"] for one in about["candidates"] if one["in_use"]] == [["attrC"]]
    again = Branches.from_dict(json.loads(json.dumps(found.to_dict())), 4, list(columns))
    assert again == found


@pytest.mark.parametrize("size", [FEWEST - 1, 3000])
def test_without_skew_or_rows_there_are_none(size: int) -> None:
    masks, columns = sampled(size, b=0.05)
    found, about = branches_of(masks, COSTS, FREE, columns)
    assert found is None
    assert about["rows"] == size


def test_cheap_filters_are_not_worth_it() -> None:
    masks, columns = sampled()
    assert branches_of(masks, np.full(4, 1e-9), FREE, columns)[0] is None


def test_precedence_holds_in_every_branch() -> None:
    masks, columns = sampled()
    found, _ = branches_of(masks, COSTS, np.array([0b1000, 0, 0, 0]), columns)
    assert found is not None
    assert all(one.order.index(3) < one.order.index(0) for one in found.branches)


VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {  # with the plain values that stand for them
    "texts": (pa.string(), ["a", "b", None], ["a", "b", None]),
    "floats": (pa.float64(), [1.5, -0.0, float("nan")], [1.5, 0.0, float("nan")]),
    "dates": (pa.date32(), [DAY, dt.date(1969, 12, 31), None], [18321, -1, None]),
    "times": (pa.timestamp("us", tz="UTC"), [5, 10**15, None], [5, 10**15, None]),
    "decimals": (pa.decimal128(9, 2), [decimal.Decimal("1.50"), decimal.Decimal(2), None], ["1.50", "2.00", None]),
    "flags": (pa.bool_(), [True, False, None], [True, False, None]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_told_as_plain_ones(name: str) -> None:
    kind, values, plain = VALUES[name]
    side = np.random.default_rng(0).integers(0, 3, 2000)
    column = pa.array([values[one] for one in side], kind)
    found, _ = branches_of(1 << side, np.full(3, 1e-6), np.zeros(3, np.int64), {name: column})
    assert found is not None
    taken = classes_of(found, {name: plain})
    assert [found.branches[one - 1].order[0] for one in taken] == [0, 1, 2]
    json.dumps(found.to_dict())


@given(seed=st.integers(0, 50), missing=st.floats(0.0, 0.3))
@settings(max_examples=10)
def test_ranges_cover_all_numbers_and_what_is_none(seed: int, missing: float) -> None:
    random = np.random.default_rng(seed)
    numbers = random.normal(size=3000)
    numbers[random.random(3000) < missing] = np.nan
    side = np.nan_to_num(numbers, nan=-9.0) > 0
    found, _ = branches_of(
        1 << side.astype(np.int64), np.full(2, 1e-6), np.zeros(2, np.int64), {"x": pa.array(numbers)}
    )
    assert found is not None
    taken = classes_of(found, {"x": numbers.tolist()})
    first = np.array([found.branches[one - 1].order[0] for one in taken])
    assert np.isnan(numbers[np.equal(taken, 0)]).all()  # too few to be told apart
    assert (first == side).mean() > 0.9


def test_nested_columns_are_refused_with_the_reason() -> None:
    found, about = branches_of(np.ones(1000, np.int64), COSTS, FREE, {"tags": pa.array([[1]] * 1000)})
    assert found is None
    assert "list<item: int64>" in about["pruned"]["tags"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"branches": 5}, "damaged"),
        ({"saving": None}, "damaged"),
        ({"attributes": ["other"]}, "of another query"),
        ({"branches": [{"cells": [], "order": [0, 0]}]}, "of another query"),
    ],
)
def test_saved_branches_are_checked(change: dict[str, Any], message: str) -> None:
    saved = {"attributes": ["a"], "branches": [], "saving": 0.5, "error": 0.0} | change
    with pytest.raises(SavedStateError, match=message):
        Branches.from_dict(saved, 2, ["a"])
