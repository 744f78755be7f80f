import json

import numpy as np
import pytest

from thalweg.joinorder import DMJoin, GraphShape, JoinGraph, JoinStream, Measure, explain, planner, random_graph


@pytest.mark.parametrize("shape", GraphShape)
@pytest.mark.parametrize("measure", Measure)
def test_the_chosen_orders_are_set_beside_all_others(shape: GraphShape, measure: Measure) -> None:
    graph = random_graph(shape, 6, np.random.default_rng(0))
    found = explain(graph, measure)
    assert found.orders.total == pytest.approx(DMJoin().plan(graph, measure).total)
    names = {one.planner for one in found.alternatives} | {found.orders.algorithm}
    assert names == {"dmjoin", "tree-opt", "sifting", "fab", "global-impact", "f-greedy"}
    for one in found.alternatives:
        assert one.orders is not None
        assert found.ratio(one.orders) >= 1 - 1e-9
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["shape"] == shape
    assert [one["order"] for one in plain["streams"]] == [list(found.orders[name]) for name in graph.names]
    assert sum(one["probe"] for one in plain["streams"]) == pytest.approx(plain["total"])


def test_a_planner_that_gives_up_is_listed_with_its_reason() -> None:
    graph = random_graph(GraphShape.LINEAR, 23, np.random.default_rng(0))
    [dmjoin] = [one for one in explain(graph).alternatives if one.planner == "dmjoin"]
    assert dmjoin.orders is None
    assert "at most 22 streams" in dmjoin.note


def test_another_planner_may_choose() -> None:
    graph = random_graph(GraphShape.COMPLETE, 5, np.random.default_rng(0))
    found = explain(graph, planner=planner("fab"))
    assert found.orders.planner == found.orders.algorithm == "fab"
    assert "fab" not in {one.planner for one in found.alternatives}


def test_a_single_stream_costs_nothing_to_probe() -> None:
    found = explain(JoinGraph((JoinStream("A", 3.0),), ()))
    assert found.orders.total == 0
    assert {found.ratio(one.orders) for one in found.alternatives if one.orders} == {1.0}
