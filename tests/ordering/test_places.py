from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering.places import WORTH, placed_cost, placed_order
from thalweg.ordering.precedence import is_legal, required_before

masks = st.lists(st.integers(0, 15), min_size=1, max_size=40)
costs = st.lists(st.floats(0.1, 10), min_size=4, max_size=4)
away = st.lists(st.booleans(), min_size=4, max_size=4)


@given(masks=masks, costs=costs, away=away, crossing=st.floats(0, 20), start=st.permutations(range(4)))
def test_a_moved_order_is_never_dearer_and_no_single_move_is_much_better(
    masks: list[int], costs: list[float], away: list[bool], crossing: float, start: list[int]
) -> None:
    required = np.zeros(4, np.int64)
    order = placed_order(masks, start, costs, away, crossing, required)
    reached = placed_cost(masks, order, costs, away, crossing)
    assert sorted(order) == [0, 1, 2, 3]
    assert reached <= placed_cost(masks, start, costs, away, crossing)
    for source in range(4):
        for target in range(4):
            moved = [one for one in order if one != order[source]]
            moved.insert(target, order[source])
            assert placed_cost(masks, moved, costs, away, crossing) >= WORTH * reached - 1e-9


@given(masks=masks, costs=costs, away=away, pinned=st.sets(st.integers(0, 3)))
def test_constraints_hold(masks: list[int], costs: list[float], away: list[bool], pinned: set[int]) -> None:
    required = required_before(4, {3: [0]}, sorted(pinned))
    assert is_legal(required, placed_order(masks, range(4), costs, away, 1.0, required))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_neighbours_share_a_crossing(order: tuple[int, ...]) -> None:
    crossings: dict[tuple[int, ...], int] = {
        (0, 1, 2): 1,
        (1, 0, 2): 1,
        (2, 0, 1): 1,
        (2, 1, 0): 1,
        (0, 2, 1): 2,
        (1, 2, 0): 2,
    }
    cost = placed_cost([0], order, [0, 0, 0], [True, True, False], 1.0)  # a tuple that nobody drops
    assert cost == crossings[order]
