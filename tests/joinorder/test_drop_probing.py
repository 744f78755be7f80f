"""Drop-probing: paths, legal orders, and what joint statistics gain over independent ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from thalweg.joinorder import JoinGraph, TreeOpt, random_graph
from thalweg.joinorder.drop_probing import DropProbing
from thalweg.joinorder.planner import is_legal
from thalweg.ordering import POLICIES, Policy, order_cost
from thalweg.ordering.types import Integers

TREE = "A.k = B.k AND B.l = C.l AND C.m = D.m AND A.n = E.n AND A.o = E.o"


def legal(graph: JoinGraph, start: str, order: tuple[str, ...]) -> bool:
    return is_legal(graph.adjacent, np.array([graph.position(name) for name in (start, *order)]))


def test_a_path_waits_for_the_path_that_it_continues() -> None:
    probing = DropProbing(JoinGraph.from_text(TREE), "B")
    assert probing.filters == ("A", "C", "D", "E")
    assert probing.parents == {"A": "B", "C": "B", "E": "A", "D": "C"}
    assert probing.after == {2: [1], 3: [0]}


@pytest.mark.parametrize("kind", POLICIES, ids=lambda kind: kind.name)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 9999), shape=st.sampled_from(["linear", "star", "acyclic", "cyclic", "complete"]))
def test_no_order_has_a_cartesian_product(kind: type[Policy], seed: int, shape: str) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(shape, int(random.integers(2, 8)), random)
    start = str(random.choice(graph.names))
    probing = DropProbing(graph, start)
    learner = probing.policy(kind.name, window=20)
    assert legal(graph, start, probing.order(learner))
    for _ in range(10):
        learner.update(random.integers(1, 1 << len(probing.filters), 10))
        assert legal(graph, start, probing.order(learner))


def drop_mask(*found: NDArray[np.bool_]) -> Integers:
    """The drop masks of tuples, given for each filter which tuples find a match."""
    masks: Integers = np.stack([~each << number for number, each in enumerate(found)]).sum(axis=0)
    return masks


def test_joint_statistics_beat_independent_ones_in_a_star() -> None:
    """What B drops C drops too, so that D, which drops less than either, belongs between them."""
    random = np.random.default_rng(0)
    keys, others = random.integers(0, 100, 4000), random.integers(0, 100, 4000)
    masks = drop_mask(keys < 50, keys < 50, others < 55)
    graph = JoinGraph.from_text(
        "A.b = B.k AND A.c = C.k AND A.d = D.k", rates={"A": 4000, "B": 50, "C": 50, "D": 55}, selectivities=0.01
    )
    probing = DropProbing(graph, "A")
    learner, independent = probing.policy("a-greedy"), probing.policy("independent")
    for policy in (learner, independent):
        policy.update(masks[masks > 0])
    by_selectivity = TreeOpt().plan(graph)["A"]
    assert set(by_selectivity[:2]) == {"B", "C"}
    assert probing.order(learner)[1] == "D"
    costs = [
        order_cost(masks, order)
        for order in (learner.order, [probing.filters.index(name) for name in by_selectivity], independent.order)
    ]
    assert costs[0] == pytest.approx(1 + 0.5 + 0.5 * 0.55, abs=0.05)
    assert costs[1] == pytest.approx(1 + 0.5 + 0.5, abs=0.05)
    assert costs[0] < costs[2] - 0.1


def test_joint_statistics_beat_independent_ones_in_a_tree() -> None:
    """Two paths, A - B - C and A - D - E, of which the ends drop the same tuples; F drops others."""
    random = np.random.default_rng(1)
    keys, others = random.integers(0, 100, 4000), random.integers(0, 100, 4000)
    masks = drop_mask(keys < 75, keys < 40, keys < 75, keys < 40, others < 80)
    graph = JoinGraph.from_text(
        "A.b = B.k AND B.l = C.l AND A.d = D.k AND D.l = E.l AND A.f = F.k",
        rates={"A": 4000, "B": 75, "C": 40, "D": 75, "E": 40, "F": 80},
        selectivities={
            "A.b = B.k": 0.01,
            "B.l = C.l": 1 / 75,
            "A.d = D.k": 0.01,
            "D.l = E.l": 1 / 75,
            "A.f = F.k": 0.01,
        },
    )
    probing = DropProbing(graph, "A")
    learner = probing.policy("a-greedy")
    learner.update(masks[masks > 0])
    chosen = probing.order(learner)
    assert chosen.index("B") < chosen.index("C") < chosen.index("F")
    assert legal(graph, "A", chosen)
    by_selectivity = TreeOpt().plan(graph)["A"]
    assert by_selectivity[-1] == "F"
    numbers = [probing.filters.index(name) for name in by_selectivity]
    assert order_cost(masks, learner.order) < order_cost(masks, numbers) - 0.1


def test_what_cannot_be_probed_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no stream 'X'"):
        DropProbing(JoinGraph.from_text("A.k = B.k"), "X")
    with pytest.raises(ValueError, match="predicates that connect all streams"):
        DropProbing(JoinGraph.from_text("A.k = B.k AND C.l = D.l"), "A")
