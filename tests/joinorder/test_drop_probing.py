"""Drop-probing: masks against brute force, legal orders, and what joint statistics gain over independent ones."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.joinorder import JoinGraph, Predicate, Stream, TreeOpt, random_graph
from thalweg.joinorder.drop_probing import DropProbing
from thalweg.joinorder.planner import is_legal
from thalweg.ordering import POLICIES, Policy, order_cost

TREE = "A.k = B.k AND B.l = C.l AND C.m = D.m AND A.n = E.n AND A.o = E.o"


def legal(graph: JoinGraph, start: str, order: tuple[str, ...]) -> bool:
    return is_legal(graph.adjacent, np.array([graph.position(name) for name in (start, *order)]))


@settings(max_examples=60)
@given(seed=st.integers(0, 9999), start=st.sampled_from("ABCDE"))
def test_masks_say_which_paths_find_no_match(seed: int, start: str) -> None:
    random = np.random.default_rng(seed)
    columns = {"A": "kno", "B": "kl", "C": "lm", "D": "m", "E": "no"}
    rows = {
        name: [dict(zip(keys, random.integers(0, 3, len(keys)), strict=True)) for _ in range(4)]
        for name, keys in columns.items()
    }
    samples = {name: {key: np.array([row[key] for row in rows[name]]) for key in columns[name]} for name in rows}
    graph = JoinGraph.from_text(TREE)
    probing = DropProbing(graph, start)
    masks = probing.masks(samples[start], samples)

    def found(row: dict[str, int], path: list[str]) -> bool:
        matches = (
            all(
                combination[one.left][one.equality.left.name] == combination[one.right][one.equality.right.name]
                for one in graph.predicates
                if one.equality and one.left in combination and one.right in combination
            )
            for each in product(*(rows[name] for name in path))
            for combination in [{start: row} | dict(zip(path, each, strict=True))]
        )
        return any(matches)

    for mask, row in zip(masks.tolist(), rows[start], strict=True):
        for number, name in enumerate(probing.filters):
            path = [name]
            while probing.parents[path[-1]] != start:
                path.append(probing.parents[path[-1]])
            assert bool(mask >> number & 1) != found(row, path)


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


def test_joint_statistics_beat_independent_ones_in_a_star() -> None:
    """What B drops C drops too, so that D, which drops less than either, belongs between them."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 100, 4000)
    tuples = {"b": keys, "c": keys, "d": random.integers(0, 100, 4000)}
    windows = {"B": {"k": np.arange(50)}, "C": {"k": np.arange(50)}, "D": {"k": np.arange(55)}}
    graph = JoinGraph.from_samples({"A": tuples, **windows}, "A.b = B.k AND A.c = C.k AND A.d = D.k")
    probing = DropProbing(graph, "A")
    masks = probing.masks(tuples, windows)
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
    rows = 4000
    b, f = random.integers(0, 100, rows), random.integers(0, 100, rows)
    tuples = {"b": b, "d": b, "f": f}
    everything = np.arange(100)
    windows = {
        "B": {"k": everything[:75], "l": everything[:75]},
        "C": {"l": everything[:40]},
        "D": {"k": everything[:75], "l": everything[:75]},
        "E": {"l": everything[:40]},
        "F": {"k": everything[:80]},
    }
    graph = JoinGraph.from_samples(
        {"A": tuples, **windows}, "A.b = B.k AND B.l = C.l AND A.d = D.k AND D.l = E.l AND A.f = F.k"
    )
    probing = DropProbing(graph, "A")
    masks = probing.masks(tuples, windows)
    learner = probing.policy("a-greedy")
    learner.update(masks[masks > 0])
    chosen = probing.order(learner)
    assert chosen.index("B") < chosen.index("C") < chosen.index("F")
    assert legal(graph, "A", chosen)
    by_selectivity = TreeOpt().plan(graph)["A"]
    assert by_selectivity[-1] == "F"
    numbers = [probing.filters.index(name) for name in by_selectivity]
    assert order_cost(masks, learner.order) < order_cost(masks, numbers) - 0.1


def test_missing_keys_match_nothing() -> None:
    probing = DropProbing(JoinGraph.from_text("A.k = B.k AND A.l = B.l"), "A")
    keys = {"k": np.array([1.0, np.nan, 2.0]), "l": np.array(["x", "x", None], object)}
    assert probing.masks(keys, {"B": keys}).tolist() == [0, 1, 1]


def test_what_cannot_be_probed_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no stream 'X'"):
        DropProbing(JoinGraph.from_text("A.k = B.k"), "X")
    with pytest.raises(ValueError, match="predicates that connect all streams"):
        DropProbing(JoinGraph.from_text("A.k = B.k AND C.l = D.l"), "A")
    plain = JoinGraph((Stream("A", 1.0), Stream("B", 1.0)), (Predicate("A", "B", 0.5),))
    with pytest.raises(ValueError, match="between A and B is no equality of attributes"):
        DropProbing(plain, "A").masks({"k": [1]}, {"B": {"k": [1]}})
    with pytest.raises(ValueError, match="tuples of B have no 'k'; they have \\['l'\\]"):
        DropProbing(JoinGraph.from_text("A.k = B.k"), "A").masks({"k": [1]}, {"B": {"l": [1]}})
