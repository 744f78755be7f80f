"""The cost model, against the paper's numbers and against itself."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.joinorder import DMJoin, FGreedy, GraphShape, JoinGraph, JoinPredicate, Measure, order_cost, random_graph
from thalweg.joinorder.cost import cheapest, log_costs, model, probe_cost

TRIANGLE = JoinGraph.from_statistics(
    {"A": 2.0, "B": 3.0, "C": 5.0},
    {("A", "B"): 0.5, ("B", "C"): 0.1, ("A", "C"): 0.2},
    windows={"A": 1.0, "B": 10.0, "C": 100.0},
)


def test_the_first_steps_of_query_1() -> None:
    """Section 3.2: some 1057 tuples a second with S3 first, 1531 with S5 first."""
    graph = JoinGraph.from_statistics({"S1": 75.36, "S3": 53.94, "S5": 26.05}, {("S1", "S3"): 0.26, ("S1", "S5"): 0.78})
    result = 75.36 * 53.94 * 26.05 * 0.26 * 0.78
    assert order_cost(graph, ["S1", "S3", "S5"]).probe - result == pytest.approx(1057, abs=0.5)
    assert order_cost(graph, ["S1", "S5", "S3"]).probe - result == pytest.approx(1531, abs=0.5)
    assert FGreedy().plan(graph)["S1"] == ("S3", "S5")


@pytest.mark.parametrize(
    ("measure", "probe"),
    [
        ("pairs", 2 * 30 + (2 * 30 * 0.5) * 500),  # equation 2: windows of 30 and 500 tuples
        ("tuples", 2 * 30 * 0.5 + (2 * 30 * 0.5) * 500 * 0.2 * 0.1),
        ("indexed", 2 * (1 + 30 * 0.5) + (2 * 30 * 0.5) * (1 + 500 * 0.1)),  # the index on the predicate with B
    ],
)
def test_each_measure_by_hand(measure: str, probe: float) -> None:
    cost = order_cost(TRIANGLE, ["A", "B", "C"], measure)
    assert (cost.insert, cost.purge) == (2.0, 2.0)
    assert cost.probe == pytest.approx(probe)
    assert cost.total == pytest.approx(4.0 + probe)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 9999),
    shape=st.sampled_from(GraphShape),
    measure=st.sampled_from(Measure),
    streams=st.integers(3, 9),
)
def test_logarithms_agree_with_plain_numbers(seed: int, shape: GraphShape, measure: Measure, streams: int) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(shape, streams, random, window=7.0)
    sequences = np.array([random.permutation(streams) for _ in range(3)])
    plain = [probe_cost(graph, sequence.tolist(), measure) for sequence in sequences]
    assert np.exp(log_costs(model(graph, measure), sequences)) == pytest.approx(plain)


def test_cheapest_takes_the_best_of_each_stream_and_of_equals_the_first() -> None:
    arrays = model(TRIANGLE, Measure.PAIRS)
    one, other = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]]), np.array([[0, 2, 1], [1, 0, 2], [2, 0, 1]])
    assert cheapest(arrays, one, other).tolist() == [[0, 2, 1], [1, 0, 2], [2, 0, 1]]


def test_orders_know_their_costs() -> None:
    orders = DMJoin().plan(TRIANGLE, "pairs")
    assert orders["A"] == ("C", "B")
    assert orders.costs == tuple(orders.cost(name).probe for name in "ABC")
    assert orders.total == pytest.approx(sum(orders.costs))
    assert str(orders).splitlines()[0] == "A → C → B  (7000 pairs/s)"


@pytest.mark.parametrize("values", [(20, 20, 20, 20), (10, 40, 160, 640)])
def test_equalities_of_one_class_are_not_independent(values: tuple[int, ...]) -> None:
    """A natural join of simulated streams, each one's values among the next one's: tuples of all orders, counted."""
    random = np.random.default_rng(0)
    names, rows = "ABCD", 4000
    keys = {name: random.integers(0, most, rows) for name, most in zip(names, values, strict=True)}
    counts = {name: np.bincount(each, minlength=max(values)).astype(float) for name, each in keys.items()}
    shares = {
        f"{left}.k = {right}.k": float(counts[left] @ counts[right]) / rows**2 for left, right in combinations(names, 2)
    }
    graph = JoinGraph.from_text(" AND ".join(shares), rows, shares, equalities="written")
    assert graph.redundant
    independent = JoinGraph(
        graph.streams, tuple(JoinPredicate(one.left, one.right, one.selectivity) for one in graph.predicates)
    )
    for order in permutations(names):
        joined = [np.prod([counts[name] for name in order[:place]], axis=0).sum() for place in (2, 3, 4)]
        assert order_cost(graph, order).probe == pytest.approx(sum(joined), rel=0.2)
        assert order_cost(independent, order).probe < sum(joined) / 20


def test_a_second_equality_between_two_streams_counts_unless_it_follows() -> None:
    twice = JoinGraph.from_text("A.k = B.k AND A.l = B.l", selectivities=0.1)
    assert order_cost(twice, "AB").probe == pytest.approx(0.01)
    square = JoinGraph.from_text(
        "A.k = B.k AND A.l = B.k AND A.k = B.l AND A.l = B.l", selectivities=0.1, equalities="written"
    )
    assert order_cost(square, "AB").probe == pytest.approx(0.001)  # three of the four say it all
    again = JoinGraph(twice.streams, (*twice.predicates, *twice.predicates))
    assert order_cost(again, "AB").probe == pytest.approx(0.01)


def test_an_order_names_every_stream_once() -> None:
    with pytest.raises(ValueError, match="each of the streams A, B, C once"):
        order_cost(TRIANGLE, ["A", "B"])
    with pytest.raises(ValueError, match="no stream 'D'; Streams: A, B, C"):
        order_cost(TRIANGLE, ["A", "B", "D"])
