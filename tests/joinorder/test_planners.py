"""What planners must do: all of `PLANNERS`, on graphs of every shape, under every measure."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.joinorder import (
    FAB,
    PLANNERS,
    DMJoin,
    Exhaustive,
    FGreedy,
    GlobalImpact,
    GraphShape,
    JoinGraph,
    JoinPredicate,
    JoinStream,
    Measure,
    Orders,
    Planner,
    QAware,
    Sifting,
    TreeOpt,
    planner,
    random_graph,
)
from thalweg.joinorder.planner import is_legal

every_planner = pytest.mark.parametrize("kind", PLANNERS, ids=lambda kind: kind.name)
every_shape = pytest.mark.parametrize("shape", GraphShape)
measures = st.sampled_from(Measure)
# Ties are as likely as ratios of up to 10⁹.
amounts = st.sampled_from([1.0, 2.0, 10.0]) | st.floats(-4.5, 4.5).map(lambda power: 10.0**power)
shares = st.sampled_from([1.0, 0.5, 0.1]) | st.floats(-9, 0).map(lambda power: 10.0**power)


@st.composite
def edges(draw: st.DrawFn, shape: GraphShape, streams: int) -> list[tuple[int, int]]:
    every = list(combinations(range(streams), 2))
    tree = [(draw(st.integers(0, one - 1)), one) for one in range(1, streams)]
    match shape:
        case GraphShape.LINEAR:
            return [(one - 1, one) for one in range(1, streams)]
        case GraphShape.STAR:
            return [(0, one) for one in range(1, streams)]
        case GraphShape.ACYCLIC:
            return tree
        case GraphShape.CYCLIC:
            return tree + draw(st.lists(st.sampled_from(every), min_size=1))  # some become second predicates
        case GraphShape.COMPLETE:
            return every
        case GraphShape.DISCONNECTED:
            return draw(st.lists(st.sampled_from(every[: len(every) // 2 + 1]), min_size=1))


@st.composite
def graphs(draw: st.DrawFn, shape: GraphShape, most: int) -> JoinGraph:
    streams = draw(st.integers(2, most))
    names = draw(st.permutations([f"R{number}" for number in range(streams)]))
    return JoinGraph(
        tuple(JoinStream(f"R{number}", draw(amounts), draw(amounts)) for number in range(streams)),
        tuple(JoinPredicate(names[left], names[right], draw(shares)) for left, right in draw(edges(shape, streams))),
    )


def as_cheap(orders: Orders, optimum: Orders) -> bool:
    return orders.costs == pytest.approx(optimum.costs, rel=1e-9, abs=0)


@every_shape
@settings(max_examples=30)
@given(data=st.data(), measure=measures)
def test_dmjoin_equals_exhaustive(shape: GraphShape, data: st.DataObject, measure: Measure) -> None:
    graph = data.draw(graphs(shape, most=7))
    assert as_cheap(DMJoin().plan(graph, measure), Exhaustive().plan(graph, measure))


@pytest.mark.parametrize("shape", [GraphShape.LINEAR, GraphShape.STAR, GraphShape.ACYCLIC])
@settings(max_examples=80)
@given(data=st.data(), measure=measures)
def test_tree_opt_equals_dmjoin_on_acyclic_graphs(shape: GraphShape, data: st.DataObject, measure: Measure) -> None:
    graph = data.draw(graphs(shape, most=12))
    assert graph.acyclic
    assert as_cheap(TreeOpt().plan(graph, measure), DMJoin().plan(graph, measure))


@every_planner
@every_shape
@settings(max_examples=8)
@given(data=st.data(), measure=measures)
def test_orders_are_legal_and_not_better_than_the_optimum(
    kind: type[Planner], shape: GraphShape, data: st.DataObject, measure: Measure
) -> None:
    graph = data.draw(graphs(shape, most=6))
    orders = kind().plan(graph, measure)
    optimum = DMJoin().plan(graph, measure)
    assert (orders.graph, orders.measure, orders.planner) == (graph, measure, kind.name)
    for start, sequence in enumerate(orders.sequences):
        assert sequence[0] == start
        assert sorted(sequence) == list(range(len(graph.streams)))
        assert is_legal(graph.adjacent, np.array(sequence)) or not graph.connected
    for cost, least in zip(orders.costs, optimum.costs, strict=True):
        assert cost >= least * (1 - 1e-9)


@every_planner
@settings(max_examples=25)
@given(
    rates=st.lists(amounts, min_size=5, max_size=5),
    shared=st.tuples(shares, shares),
    others=st.none() | st.tuples(shares, shares),
    measure=measures,
)
def test_equality_classes_are_planned_right(
    kind: type[Planner],
    rates: list[float],
    shared: tuple[float, float],
    others: tuple[float, float] | None,
    measure: Measure,
) -> None:
    """Two classes that share a stream: orders are legal, and DMJoin's optimal; TreeOpt's, if a class has one share."""
    one, other = others or shared
    equal = {"A.k = B.k": shared[0], "B.k = C.k": one, "C.l = D.l": shared[1], "D.l = E.l": other}
    graph = JoinGraph.from_text(" AND ".join(equal), dict(zip("ABCDE", rates, strict=True)), equal, equalities="closed")
    orders = kind().plan(graph, measure)
    for start, sequence in enumerate(orders.sequences):
        assert sequence[0] == start
        assert is_legal(graph.adjacent, np.array(sequence))
    if kind in {DMJoin, QAware} or (kind is TreeOpt and not others):
        assert as_cheap(orders, Exhaustive().plan(graph, measure))


def test_orders_of_the_graph_seen_from_a_stream_are_nearly_optimal() -> None:
    """Where the streams of a class have from one to ten thousand different values, each among those of the next."""
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(60):
        values = dict(zip("ABCD", 10 ** random.uniform(0, 4, 4), strict=True))
        shares = {f"{one}.k = {other}.k": 1 / max(values[one], values[other]) for one, other in combinations("ABCD", 2)}
        graph = JoinGraph.from_text(
            " AND ".join([*shares, "D.l = E.l"]),
            dict(zip("ABCDE", 10 ** random.uniform(0, 3, 5), strict=True)),
            shares | {"D.l = E.l": float(random.uniform(0.01, 1))},
            equalities="closed",
        )
        ratios.append(TreeOpt().plan(graph).total / DMJoin().plan(graph).total)
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < 1.05


@every_shape
@settings(max_examples=30)
@given(data=st.data(), measure=measures)
def test_heuristics_that_build_on_others_are_never_worse(
    shape: GraphShape, data: st.DataObject, measure: Measure
) -> None:
    graph = data.draw(graphs(shape, most=9))
    forward, backward, fab, tree, sifting = (
        kind().plan(graph, measure).costs for kind in (FGreedy, GlobalImpact, FAB, TreeOpt, Sifting)
    )
    for start in range(len(graph.streams)):
        assert fab[start] == pytest.approx(min(forward[start], backward[start]), rel=1e-9, abs=0)
        assert sifting[start] <= min(fab[start], tree[start]) * (1 + 1e-9)


@every_planner
@every_shape
@settings(max_examples=10)
@given(seed=st.integers(0, 9999), measure=measures)
def test_names_and_numbers_of_streams_do_not_matter(
    kind: type[Planner], shape: GraphShape, seed: int, measure: Measure
) -> None:
    random = np.random.default_rng(seed)
    graph = random_graph(shape, int(random.integers(3, 7)), random)  # real numbers drawn at random: no ties
    shuffled = [graph.streams[one] for one in random.permutation(len(graph.streams))]
    renamed = {stream.name: f"S{number}" for number, stream in enumerate(shuffled)}
    other = JoinGraph(
        tuple(JoinStream(renamed[stream.name], stream.rate, stream.window) for stream in shuffled),
        tuple(JoinPredicate(renamed[one.right], renamed[one.left], one.selectivity) for one in graph.predicates),
    )
    here, there = kind().plan(graph, measure), kind().plan(other, measure)
    for name in graph.names:
        assert here.cost(name).probe == pytest.approx(there.cost(renamed[name]).probe, rel=1e-9)
        assert tuple(renamed[other] for other in here[name]) == there[renamed[name]]


@every_planner
@pytest.mark.parametrize("measure", Measure)
def test_one_or_two_streams_are_no_trouble(kind: type[Planner], measure: Measure) -> None:
    one = kind().plan(JoinGraph((JoinStream("R1", 5.0),), ()), measure)
    assert one.sequences == ((0,),)
    assert one.total == 0.0
    two = kind().plan(JoinGraph.from_statistics({"R1": 5.0, "R2": 7.0}, {("R1", "R2"): 0.5}), measure)
    assert two.sequences == ((0, 1), (1, 0))


@pytest.mark.parametrize("kind", [FGreedy, TreeOpt, GlobalImpact, FAB, Sifting, QAware], ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", [GraphShape.ACYCLIC, GraphShape.CYCLIC, GraphShape.COMPLETE])
def test_sizes_beyond_floating_point_are_no_trouble(kind: type[Planner], shape: GraphShape) -> None:
    graph = random_graph(shape, 45, np.random.default_rng(0), rates=(1e8, 1e9), selectivities=(0.5, 1.0))
    start = kind().plan(graph).sequences[0]
    assert sorted(start) == list(range(45))
    assert is_legal(graph.adjacent, np.array(start))


@pytest.mark.parametrize(("kind", "most"), [(Exhaustive, 9), (DMJoin, 22)])
def test_too_many_streams_are_refused(kind: type[Planner], most: int) -> None:
    graph = random_graph(GraphShape.LINEAR, most + 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"at most {most} streams, not {most + 1}; use"):
        kind().plan(graph)


def test_many_redundant_equalities_are_left_to_polynomial_planners() -> None:
    names = [f"R{number}" for number in range(17)]
    natural = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(names))
    graph = JoinGraph.from_text(natural, equalities="closed")
    with pytest.raises(ValueError, match="at most 16 streams, not 17; use reduced equalities"):
        DMJoin().plan(graph)
    assert QAware(budget=60.0).plan(graph).algorithm == "tree-opt"
    cycle = JoinGraph.from_text(f"{natural} AND R0.l = R16.l", equalities="closed")
    assert QAware().plan(cycle).algorithm == "sifting"


def test_sifting_halves_the_excess_of_fab() -> None:
    """On complete graphs; the benchmark measures it on many more."""
    random = np.random.default_rng(6)
    fab, sifting = [], []
    for _ in range(20):
        graph = random_graph(GraphShape.COMPLETE, 9, random)
        optimum = np.array(DMJoin().plan(graph).costs)
        fab.append(np.mean(FAB().plan(graph).costs / optimum) - 1.0)
        sifting.append(np.mean(Sifting().plan(graph).costs / optimum) - 1.0)
    assert np.mean(sifting) < np.mean(fab) / 2


def test_q_aware_chooses_by_shape_and_budget() -> None:
    random = np.random.default_rng(0)
    for shape in (GraphShape.LINEAR, GraphShape.STAR, GraphShape.ACYCLIC):
        assert QAware().plan(random_graph(shape, 30, random)).algorithm == "tree-opt"
    small, large = random_graph(GraphShape.CYCLIC, 8, random), random_graph(GraphShape.CYCLIC, 24, random)
    assert QAware().plan(small).algorithm == "dmjoin"
    assert QAware().choose(large).name == "sifting"
    assert QAware(budget=60.0).choose(random_graph(GraphShape.COMPLETE, 20, random)).name == "dmjoin"
    assert QAware(budget=0.0).plan(small).costs == Sifting(swaps=0).plan(small).costs
    with pytest.raises(ValueError, match="0 or more, not -1"):
        QAware(budget=-1)


def test_planners_are_found_by_name() -> None:
    assert [type(planner(kind.name)) for kind in PLANNERS] == list(PLANNERS)
    with pytest.raises(ValueError, match="no planner 'treeopt'; did you mean 'tree-opt'"):
        planner("treeopt")
    with pytest.raises(ValueError, match=r"no planner 'x'\. There are: exhaustive, dmjoin"):
        planner("x")


def test_unknown_measures_are_refused() -> None:
    graph = random_graph(GraphShape.STAR, 3, np.random.default_rng(0))
    with pytest.raises(ValueError, match="measured in pairs, tuples, indexed, not 'bytes'"):
        DMJoin().plan(graph, "bytes")
