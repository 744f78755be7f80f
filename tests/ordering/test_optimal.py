import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import Optimal, greedy_order, order_cost
from thalweg.ordering.optimal import exhaustive_order, optimal_order, subset_order
from thalweg.ordering.precedence import is_legal, required_before


@given(
    st.lists(st.integers(0, 31), max_size=40),
    st.lists(st.floats(0.1, 10), min_size=5, max_size=5),
    st.sets(st.integers(1, 4)),
)
def test_dynamic_programming_equals_trying_all(masks: list[int], costs: list[float], waiting: set[int]) -> None:
    required = required_before(5, {one: [one - 1] for one in waiting})
    tuples, each = np.array(masks, np.int64), np.array(costs)
    fast, slow = subset_order(tuples, each, required), exhaustive_order(tuples, each, required)
    assert is_legal(required, fast)
    assert order_cost(tuples, fast, each) == pytest.approx(order_cost(tuples, slow, each))


def test_optimal_beats_greedy_where_greedy_errs() -> None:
    """The first filter drops most at once, but the other two together need no third."""
    masks = [0b011] * 3 + [0b101] * 3 + [0b010] * 2 + [0b100] * 2
    best, greedy = optimal_order(masks, np.ones(3)), greedy_order(masks, np.ones(3))
    assert order_cost(masks, best) < order_cost(masks, greedy)


def test_twenty_filters_are_solved_and_twenty_one_refused() -> None:
    masks = 1 << np.random.default_rng(0).integers(0, 20, 500)
    order = optimal_order(masks, np.ones(20))
    drops = [(masks >> one & 1).sum() for one in order]
    assert drops == sorted(drops, reverse=True)  # disjoint filters: most selective first
    with pytest.raises(ValueError, match="at most 20 filters, not 21; use a-greedy"):
        Optimal(21)
