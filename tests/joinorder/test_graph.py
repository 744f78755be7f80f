"""Join graphs from statistics, text and samples: shapes, drawings, and what is refused."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.joinorder import GraphShape, JoinGraph, JoinPredicate, JoinStream, random_graph
from thalweg.joinorder.text import Attribute, Equality, classes, closed, join_condition, parse_condition, reduced

RATES = {"R1": 1.0, "R2": 2.0, "R3": 3.0}
SELECTIVITIES = {("R1", "R2"): 0.1, ("R2", "R3"): 0.2}


@pytest.mark.parametrize(
    ("condition", "shape"),
    [
        ("A.k = B.k", "linear"),
        ("A.k = B.k AND B.l = C.l", "linear"),
        ("A.k = B.k AND B.l = C.l AND C.m = A.m", "complete"),
        ("A.k = B.k AND A.l = C.l AND A.m = D.m", "star"),
        ("A.k = B.k AND A.l = C.l AND A.m = D.m AND D.n = E.n", "acyclic"),
        ("A.k = B.k AND B.l = C.l AND C.m = D.m AND D.n = A.n", "cyclic"),
        ("A.k = B.k AND C.l = D.l", "disconnected"),
        ("A.k = B.k AND A.l = B.l", "linear"),
    ],
)
def test_shapes(condition: str, shape: str) -> None:
    assert JoinGraph.from_text(condition).shape == shape


def test_a_single_stream_is_linear() -> None:
    graph = JoinGraph((JoinStream("R1", 2.0),), ())
    assert graph.shape is GraphShape.LINEAR
    assert str(graph) == "linear join of 1 stream\nR1  2/s × 1 s"


@pytest.mark.parametrize("shape", GraphShape)
def test_random_graphs_have_the_shape_they_are_asked_for(shape: GraphShape) -> None:
    graph = random_graph(shape, 12, np.random.default_rng(1))
    assert graph.shape is shape
    assert all(1.0 <= stream.rate <= 100.0 for stream in graph.streams)


def test_several_predicates_between_two_streams_multiply() -> None:
    graph = JoinGraph.from_statistics({"A": 1, "B": 1}, {("A", "B"): [0.5, 0.5], ("B", "A"): 0.5})
    assert graph.selectivities.tolist() == [[1.0, 0.125], [0.125, 1.0]]
    many = JoinGraph.from_statistics({"A": 1, "B": 1}, {("A", "B"): [1e-9] * 50})
    assert many.selectivities[0, 1] > 0.0


def test_components_and_branches_are_drawn() -> None:
    graph = JoinGraph.from_text("A.k = B.k AND A.l = C.l AND B.m = D.m AND E.n = F.n")
    assert str(graph).splitlines() == [
        "disconnected join of 6 streams",
        "A  1/s × 1 s",
        "├─ 0.1 ─ B  1/s × 1 s",
        "│  └─ 0.1 ─ D  1/s × 1 s",
        "└─ 0.1 ─ C  1/s × 1 s",
        "E  1/s × 1 s",
        "└─ 0.1 ─ F  1/s × 1 s",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JoinGraph((), ()), "needs streams"),
        (lambda: JoinGraph.from_statistics(RATES, {}), "no join predicates; give at least one"),
        (
            lambda: JoinGraph.from_statistics({"flows": 1}, {("flow", "R4"): 0.1}),
            "no stream 'flow'; did you mean 'flows'",
        ),
        (lambda: JoinGraph.from_statistics(RATES, {("R1", "R1"): 0.1}), "joins R1 with itself.* under two names"),
        (lambda: JoinGraph((JoinStream("A", 1), JoinStream("A", 2)), ()), "name of its own; A appears more than once"),
        (lambda: JoinGraph.from_statistics(RATES, SELECTIVITIES, {"R1": 1}), "window of R2. Add it to the windows"),
        (lambda: JoinGraph.from_text("R1.a = R2.a", {"R1": 1, "R2": 1}, windows=0), "window of R1 is .* not 0"),
        (lambda: JoinGraph.from_text("R1.a = R2.a", RATES, {"R1.b = R2.b": 1}), "has no 'R1.b = R2.b'; it has R1.a"),
        (
            lambda: JoinGraph.from_text("R1.a = R2.a AND R2.b = R3.b", RATES, {"R1.a = R2.a": 1}),
            "the selectivity of 'R2.b = R3.b'",
        ),
        (lambda: JoinGraph.from_text("R1.a = R9.a", RATES), "no stream 'R9'"),
        (lambda: JoinGraph.from_text("R1.a = R2.a", equalities="all"), "one of written, reduced, closed, not 'all'"),
        (lambda: JoinStream("A", 1e200, 1e200), "beyond all numbers"),
    ],
)
def test_bad_graphs_say_what_to_write(make: Callable[[], JoinGraph], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_rates_and_windows_are_positive(bad: float) -> None:
    with pytest.raises(ValueError, match="the rate of A is a number above 0, not"):
        JoinStream("A", bad)
    with pytest.raises(ValueError, match="the window of A is a number above 0, not"):
        JoinStream("A", 1.0, bad)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.01, math.nan])
def test_selectivities_are_shares(bad: float) -> None:
    with pytest.raises(ValueError, match="of A ⋈ B is above 0 and at most 1, not"):
        JoinPredicate("A", "B", bad)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' does not parse; write equalities like"),
        ("R1.pid = ", "does not parse"),
        ("R1.pid = R2.pid; DROP TABLE x", "does not parse"),
        ("(((", "does not parse"),
        ("'R1.pid = R2.pid", "does not parse"),
        ("R1.pid = R2.pid OR R1.ip = R2.ip", "is no equality of two attributes"),
        ("R1.pid < R2.pid", "'R1.pid < R2.pid' is no equality"),
        ("R1.pid", "'R1.pid' is no equality"),
        ("R1.pid = 7", "'7' is no attribute of a stream; write it like"),
        ("pid = R2.pid", "of which stream is 'pid'. Write it like 'R1.pid'"),
        ("R1.pid = R1.parent", "compares R1 with itself; a self-join needs an alias .* like 'a.parent = b.pid'"),
    ],
)
def test_bad_text_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JoinGraph.from_text(text)


def test_a_query_holds_a_condition() -> None:
    query = "select a.x from S as a inner join T on (a.k = T.k and a.n > 3), U where U.l = T.l and U.m = U.n limit 5"
    assert join_condition(query) == ("T.k = a.k AND T.l = U.l", ("a.n > 3", "U.m = U.n"))
    assert join_condition("A.k = B.k") == ("A.k = B.k", ())


def test_a_condition_holds_all_that_tw_join_takes() -> None:
    condition = "A.`id.orig_h` = B.k AND A.k + 1 = B.`a``b` AND A.x < B.y AND A.x > 5 AND A.x + B.y = C.z AND B.k = C.k"
    equalities, others = join_condition(condition)
    assert equalities == "A.`id.orig_h` = B.k AND A.`k + 1` = B.`a``b` AND B.k = C.k"
    assert others == ("A.x < B.y", "A.x > 5", "A.x + B.y = C.z")
    assert " AND ".join(map(str, parse_condition(equalities))) == equalities


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM", "does not parse; write it like"),
        ("SELECT FROM WHERE", "does not parse|joins nothing"),
        ("SELECT * FROM A JOIN B ON A.k = B.k; SELECT 1", "joins nothing"),
        ("SELECT * FROM A, B", "joins nothing: .* write a query like"),
        ("SELECT * FROM A LEFT JOIN B ON A.k = B.k", "'LEFT JOIN B ON A.k = B.k' is not understood; write"),
        ("SELECT * FROM A JOIN B USING (k)", "is not understood"),
        ("SELECT * FROM A NATURAL JOIN B", "is not understood"),
        ("SELECT * FROM (SELECT * FROM A) JOIN B ON A.k = B.k", "is not understood"),
        ("SELECT * FROM A JOIN B ON A.k < B.k", "joins nothing: no equality is between two streams"),
        ("SELECT * FROM A JOIN B ON A.k = B.k OR A.l = B.l", "joins nothing: no equality"),
        ("SELECT * FROM A JOIN B ON A.k = k", "of which stream is 'k'"),
        ("SELECT * FROM A JOIN B ON A.k = C.k", "of which stream is 'C.k'. The query is FROM A, B"),
    ],
)
def test_bad_queries_say_what_to_write(query: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        join_condition(query)


def test_equalities_close_and_reduce() -> None:
    natural = "A.k = B.k AND B.k = C.k AND C.k = D.k AND A.k = D.k AND (D.k = B.k) AND C.k = A.k AND A.k = B.k"
    assert {one: JoinGraph.from_text(natural, equalities=one).shape.value for one in ("written", "reduced")} == {
        "written": "complete",
        "reduced": "linear",
    }
    chain = "A.k = B.k AND B.k = C.k AND C.k = D.k"
    graph = JoinGraph.from_text(chain, 1.0, {"A.k = B.k": 0.2, "C.k = B.k": 0.3, "C.k = D.k": 0.1}, equalities="closed")
    assert graph.shape is GraphShape.COMPLETE
    assert [one.selectivity for one in graph.predicates] == [0.2, 0.3, 0.1, 0.3, 0.3, 0.3]


def test_seen_from_a_stream_classes_are_stars_around_the_nearest() -> None:
    graph = JoinGraph.from_text("A.k = B.k AND B.k = C.k AND C.l = D.l AND D.l = E.l", equalities="closed")
    assert graph.shape is GraphShape.CYCLIC
    assert {str(one) for one in graph.seen_from("B").predicates} == {
        "A.k = B.k",
        "B.k = C.k",
        "C.l = D.l",
        "C.l = E.l",
    }
    for name in graph.names:
        assert graph.seen_from(name).acyclic
    without = JoinGraph.from_text("A.k = B.k AND B.l = C.l AND C.m = A.m")
    assert without.seen_from("A") is without


attributes = st.builds(Attribute, st.sampled_from("ABCD"), st.sampled_from("kl"))
equalities = st.lists(
    st.tuples(attributes, attributes)
    .filter(lambda pair: pair[0].stream != pair[1].stream)
    .map(lambda pair: Equality(*sorted(pair))),
    max_size=8,
)


@settings(max_examples=50)
@given(written=equalities)
def test_reduction_and_closure_say_the_same(written: list[Equality]) -> None:
    less, more = reduced(written), closed(written)
    assert set(less) <= set(written) <= set(more)
    assert set(map(frozenset, classes(less))) == set(map(frozenset, classes(more)))
    assert len(less) == sum(len(one) - 1 for one in classes(written))  # as few as say it
    assert set(closed(more)) == set(more)
    if written:
        assert set(parse_condition(" AND ".join(map(str, written)))) == set(written)
