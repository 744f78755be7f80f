from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering.precedence import is_legal, legal_order, required_before


@given(st.data())
def test_required_is_closed_and_legal_orders_keep_it(data: st.DataObject) -> None:
    filters = data.draw(st.integers(1, 6))
    pairs = data.draw(st.sets(st.tuples(st.integers(0, filters - 1), st.integers(0, filters - 1))))
    after: dict[int, list[int]] = {}
    for one, other in pairs:
        if one < other:  # acyclic: later numbers wait for earlier ones
            after.setdefault(other, []).append(one)
    required = required_before(filters, after)
    wanted = data.draw(st.permutations(range(filters)))
    order = legal_order(required, wanted)
    assert sorted(order) == list(range(filters))
    assert is_legal(required, order)
    assert all(order.index(one) < order.index(other) for other, before in after.items() for one in before)


def test_pinned_filter_holds_its_place_and_its_sides() -> None:
    required = required_before(4, pinned=[2])
    legal = [order for order in permutations(range(4)) if is_legal(required, order)]
    assert legal == [(0, 1, 2, 3), (1, 0, 2, 3)]


def test_without_requirements_every_order_is_legal() -> None:
    assert np.array_equal(required_before(5), np.zeros(5, np.int64))


@pytest.mark.parametrize(
    ("filters", "after", "message"),
    [
        (3, {0: [1], 1: [2], 2: [0]}, r"\[0, 1, 2\] wait for one another in a cycle"),
        (3, {0: [0]}, "wait for one another"),
        (3, {0: [3]}, "no filter 3: filters are numbered 0..2"),
        (64, {}, "between 1 and 63 filters are allowed, not 64"),
        (0, {}, "between 1 and 63"),
    ],
)
def test_impossible_requirements_say_so(filters: int, after: dict[int, list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        required_before(filters, after)


def test_pins_that_contradict_requirements_say_so() -> None:
    with pytest.raises(ValueError, match="cycle"):
        required_before(3, after={1: [2]}, pinned=[1])


def test_order_must_name_each_filter_once() -> None:
    with pytest.raises(ValueError, match=r"names each of the filters 0..2 once, not \[0, 0, 1\]"):
        legal_order(required_before(3), [0, 0, 1])
    with pytest.raises(ValueError, match=r"names each of the filters 0..1 once, as whole numbers"):
        legal_order(required_before(2), [1.0, 0])  # type: ignore[list-item]


def test_after_is_a_mapping() -> None:
    with pytest.raises(TypeError, match=r"mapping like \{2:"):
        required_before(3, after=[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("after", [{"amount": []}, {1: ["amount"]}, {1: "0"}, {1: [0.0]}])
def test_filters_are_numbers(after: Any) -> None:  # noqa: ANN401 - what a user may write
    with pytest.raises(ValueError, match=r"there is no filter .*: filters are numbered 0\.\.2"):
        required_before(3, after=after)


def test_a_filter_comes_after_a_list_of_filters() -> None:
    with pytest.raises(TypeError, match=r"mapping like \{2:"):
        required_before(3, after={1: 0})  # type: ignore[dict-item]
