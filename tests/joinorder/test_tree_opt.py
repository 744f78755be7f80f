"""What TreeOpt does inside: ranks and the spanning tree."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.joinorder import JoinGraph, TreeOpt
from thalweg.joinorder.cost import Measure, model
from thalweg.joinorder.tree_opt import _chain, _joined, spanning_tree

logarithms = st.floats(-40, 40)


@given(growth=logarithms, cost=logarithms, other_growth=logarithms, other_cost=logarithms)
def test_ranks_order_chains_as_their_costs_do(
    growth: float, cost: float, other_growth: float, other_cost: float
) -> None:
    """The adjacent sequence interchange property of section 4."""
    one, other = _chain(growth, cost, (1,)), _chain(other_growth, other_cost, (2,))
    first, second = _joined(one, other), _joined(other, one)
    if first.cost < second.cost - 1e-9:
        assert one.rank < other.rank
    if one.rank == other.rank:
        assert first.cost == pytest.approx(second.cost)


def test_the_rank_is_growth_less_one_by_cost() -> None:
    sign, logarithm = _chain(math.log(5.0), math.log(8.0), (1,)).rank
    assert sign == 1
    assert math.exp(logarithm) == pytest.approx((5 - 1) / 8)
    sign, logarithm = _chain(math.log(0.25), math.log(3.0), (1,)).rank
    assert sign == -1
    assert math.exp(-logarithm) == pytest.approx((1 - 0.25) / 3)
    assert _chain(0.0, 1.0, (1,)).rank == (0, 0.0)


def test_the_spanning_tree_of_a_cycle_leaves_out_the_heaviest_predicate() -> None:
    graph = JoinGraph.from_statistics(
        {"A": 10, "B": 10, "C": 10, "D": 1}, {("A", "B"): 0.1, ("B", "C"): 0.9, ("C", "D"): 0.5, ("D", "A"): 0.5}
    )
    tree = spanning_tree(graph, model(graph, Measure.TUPLES))
    assert [sorted(neighbours) for neighbours in tree] == [[1, 3], [0], [3], [0, 2]]
    assert TreeOpt().plan(graph)["B"] == ("A", "D", "C")


def test_a_long_path_needs_no_recursion() -> None:
    names = [f"R{number}" for number in range(300)]
    graph = JoinGraph.from_statistics(dict.fromkeys(names, 2.0), dict.fromkeys(pairwise(names), 0.9))
    assert TreeOpt().plan(graph).sequences[0] == tuple(range(300))
