"""Steady: no thrashing under noise, bounded regret, and changes that are real are followed."""

from dataclasses import replace

import numpy as np
import pytest

from thalweg.joinorder import DMJoin, GraphShape, JoinGraph, JoinPredicate, Measure, QAware, order_cost, random_graph
from thalweg.joinorder.planner import Orders, is_legal
from thalweg.joinorder.steady import Steady

ARRIVALS, MATCHES, ROUNDS = 1000, 100, 25


def noisy(truth: JoinGraph, random: np.random.Generator) -> JoinGraph:
    """The truth as it is estimated from counts."""
    arrivals = random.poisson(ARRIVALS, len(truth.streams)) / ARRIVALS
    matches = random.poisson(MATCHES, len(truth.predicates)) / MATCHES
    return JoinGraph(
        tuple(replace(one, rate=one.rate * share) for one, share in zip(truth.streams, arrivals, strict=True)),
        tuple(
            replace(one, selectivity=min(1.0, one.selectivity * share))
            for one, share in zip(truth.predicates, matches, strict=True)
        ),
    )


def true_cost(truth: JoinGraph, orders: Orders) -> float:
    return sum(order_cost(truth, (name, *orders[name]), orders.measure).probe for name in truth.names)


@pytest.mark.parametrize(
    "shape", [GraphShape.LINEAR, GraphShape.STAR, GraphShape.ACYCLIC, GraphShape.CYCLIC, GraphShape.COMPLETE]
)
@pytest.mark.parametrize("measure", Measure)
def test_noise_makes_no_order_change_and_costs_little(shape: GraphShape, measure: Measure) -> None:
    random = np.random.default_rng(1)
    truth = random_graph(shape, 6, random, rates=(8.0, 12.0), selectivities=(0.05, 0.15))  # no order is far ahead
    optimum = DMJoin().plan(truth, measure).total
    steady = Steady(measure=measure)
    changes, regrets, before = 0, [], None
    for _ in range(ROUNDS):
        graph = noisy(truth, random)
        steady.update(graph, ARRIVALS, MATCHES)
        regrets.append(true_cost(truth, steady.orders) / optimum - 1)
        planned = QAware().plan(graph, measure).sequences
        changes += sum(one != other for one, other in zip(planned, before or planned, strict=True))
        before = planned
    assert steady.switches <= 2  # of 150 chances
    assert changes > 5  # without it
    assert max(regrets) < 2 * steady.margin


@pytest.mark.parametrize("shape", [GraphShape.STAR, GraphShape.ACYCLIC, GraphShape.COMPLETE])
def test_a_real_change_is_followed_at_once_and_once(shape: GraphShape) -> None:
    random = np.random.default_rng(2)
    before = random_graph(shape, 6, random, rates=(8.0, 12.0), selectivities=(0.005, 0.5))
    after = JoinGraph(  # what was best is worst
        before.streams, tuple(replace(one, selectivity=0.0025 / one.selectivity) for one in before.predicates)
    )
    steady = Steady()
    steady.update(noisy(before, random), ARRIVALS, MATCHES)
    optimum = DMJoin().plan(after).total
    assert true_cost(after, steady.orders) > 1.2 * optimum  # the change matters
    assert steady.update(noisy(after, random), ARRIVALS, MATCHES)
    assert true_cost(after, steady.orders) < 1.1 * optimum
    switches = steady.switches
    for _ in range(20):
        steady.update(noisy(after, random), ARRIVALS, MATCHES)
    assert steady.switches <= switches + 2


def graph(selectivity: float) -> JoinGraph:
    return JoinGraph.from_statistics({"A": 10, "B": 10, "C": 10}, {("A", "B"): 0.1, ("A", "C"): selectivity})


def test_evidence_decides() -> None:
    surely: dict[tuple[str, str], float] = {("A", "B"): 1000, ("C", "A"): 1000}
    for arrivals, matches, changes in ((1e4, 10, False), ({}, surely, False), (1e4, {}, False), (1e4, surely, True)):
        steady = Steady()
        steady.update(graph(0.2), arrivals, matches)
        assert steady.orders["A"] == ("B", "C")
        assert steady.update(graph(0.05), arrivals, matches) is changes


def test_the_margin_is_what_a_change_must_bring() -> None:
    for margin, changes in ((0.05, True), (0.5, False)):
        steady = Steady(margin=margin)
        steady.update(graph(0.11), 1e9, 1e9)
        assert steady.update(graph(0.08), 1e9, 1e9) is changes


def test_predicates_that_come_or_go_are_no_matter_of_evidence() -> None:
    steady = Steady()
    steady.update(graph(0.2), 1, 1)
    other = JoinGraph(graph(0.2).streams, (JoinPredicate("A", "B", 0.1), JoinPredicate("B", "C", 0.1)))
    assert steady.update(other, 1, 1)
    assert all(is_legal(other.adjacent, np.array(one)) for one in steady.orders.sequences)


def test_equality_classes_are_no_trouble() -> None:
    text = "A.k = B.k AND B.k = C.k AND C.k = D.k"
    steady = Steady()
    for rates in ({"A": 9, "B": 7, "C": 5, "D": 3}, {"A": 3, "B": 5, "C": 70, "D": 9}):
        closed = JoinGraph.from_text(text, rates, 0.1, equalities="closed")
        assert steady.update(closed, 1e6, 1e6)
        assert steady.orders.total == pytest.approx(DMJoin().plan(closed).total, rel=0.05)


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="the margin is a number, 0 or more, not -1"):
        Steady(margin=-1)
    with pytest.raises(ValueError, match="the confidence is a number, 0 or more"):
        Steady(confidence=float("nan"))
    steady = Steady()
    with pytest.raises(ValueError, match="no orders before the first update"):
        _ = steady.orders
    steady.update(graph(0.2), 1, 1)
    with pytest.raises(ValueError, match="counts of arrivals and matches are from 0 to"):
        steady.update(graph(0.2), -1, 1)
