from dataclasses import replace
from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.charts import Aggregate, Join, MultiJoin, PlanNode, Project, Scan, Select, candidate_plans, plan_space
from thalweg.charts.candidates import MOST_JOINS
from thalweg.sql.query import Expression
from thalweg_lab.experiments.om.queries import START, column, equality, q1, q2, query


def order(node: PlanNode) -> tuple[str, ...]:
    """The aliases of a left-deep tree, in the order in which they are joined."""
    if isinstance(node, Join):
        return (*order(node.left), *order(node.right))
    assert isinstance(node, Scan)
    return (node.alias,)


def test_q1_has_the_two_plans_of_the_paper() -> None:
    first, second = (plan.root for plan in candidate_plans(q1()))
    assert isinstance(first, Project)
    assert isinstance(first.child, Select)
    assert isinstance(second, Select)
    assert isinstance(second.child, Project)


def test_q2_has_the_three_left_deep_plans_of_the_paper_and_the_multi_join() -> None:
    *left_deep, multi = (plan.root for plan in candidate_plans(q2()))
    assert [order(node) for node in left_deep] == [("TCP", "UDP", "SF"), ("TCP", "SF", "UDP"), ("UDP", "SF", "TCP")]
    assert isinstance(multi, MultiJoin)
    assert [probes[0] for probes in multi.probe_orders] == ["TCP", "UDP", "SF"]


def test_inputs_are_joined_by_written_equalities_alone_where_types_differ() -> None:
    trees = [plan.root for plan in candidate_plans(q2(), equality_is_transitive=False)]
    assert [order(node) for node in trees[:-1]] == [("TCP", "UDP", "SF"), ("UDP", "SF", "TCP")]


def test_every_written_equality_is_tested_in_every_plan() -> None:
    def tested(node: PlanNode) -> set[frozenset[str]]:
        own = {frozenset([each.left.sql, each.right.sql]) for each in getattr(node, "equi_joins", ())}
        return own.union(*(tested(child) for child in node.children))

    written = {frozenset([each.left.sql, each.right.sql]) for each in q2().equi_joins}
    assert all(written <= tested(plan.root) for plan in candidate_plans(q2()))


def test_a_residual_is_tested_as_soon_as_its_inputs_are_joined() -> None:
    residual = Expression("`A`.`v` < `B`.`v`", frozenset("AB"), frozenset([("A", "v"), ("B", "v")]), START)
    pairs = [("A.k", "B.k"), ("B.k", "C.k")]
    joined = query(["A.k", "A.v", "B.k", "B.v", "C.k"], ["A.k"], equi_joins=pairs, residuals=[residual])
    for plan in candidate_plans(joined)[:-1]:
        node = plan.root
        while isinstance(node, Join):
            aliases = order(node)
            assert bool(node.residuals) == ({"A", "B"} <= set(aliases) and not {"A", "B"} <= set(aliases[:-1]))
            node = node.left


def test_the_aggregate_comes_last() -> None:
    grouped = replace(q2(), group_by=(column("TCP.src_host"),))
    assert all(isinstance(plan.root, Aggregate) for plan in candidate_plans(grouped))


def test_a_projection_after_the_selection_drops_what_only_the_selection_read() -> None:
    one = query(["T.a", "T.b"], ["T.a"], [equality("T.b", 1)])
    first, second = (plan.root for plan in candidate_plans(one))
    assert isinstance(first, Project)
    assert isinstance(second, Select)
    assert isinstance(second.child, Project)
    assert (first.columns, second.child.columns) == (("a",), ("a", "b"))


def test_static_tables_are_joined_by_spark_alone() -> None:
    pairs = [("A.k", "B.k"), ("B.k", "C.k")]
    space = plan_space(query(["A.k", "B.k", "C.k"], ["A.k"], equi_joins=pairs, tables=["C"]))
    assert space.streams == ("A", "B")
    assert not any(isinstance(join, MultiJoin) for join in space.joins)


@given(st.integers(2, 5), st.randoms(use_true_random=False))
def test_left_deep_orders_are_all_orders_over_connected_prefixes(inputs: int, random: st.DataObject) -> None:
    names = "ABCDE"[:inputs]
    edges = [(names[place], names[random.randrange(place)]) for place in range(1, inputs)]  # type: ignore[attr-defined]
    more = [edge for edge in combinations(names, 2) if random.random() < 0.3]  # type: ignore[attr-defined]
    joined = list(dict.fromkeys(tuple(sorted(edge)) for edge in (*edges, *more)))
    pairs = [(f"{left}.{left}{right}", f"{right}.{left}{right}") for left, right in joined]
    columns = sorted(side for pair in pairs for side in pair)
    space = plan_space(query(columns, columns[:1], equi_joins=pairs))
    expected = {
        sequence
        for sequence in permutations(names)
        if sequence[0] < sequence[1]
        and all(
            any(tuple(sorted((before, sequence[place]))) in joined for before in sequence[:place])
            for place in range(1, inputs)
        )
    }
    found = [order(node) for node in space.joins[:-1]]
    assert sorted(found) == sorted(expected)


def test_six_inputs_with_one_key_have_a_bounded_number_of_plans() -> None:
    pairs = [(f"{left}.k", f"{right}.k") for left, right in zip("ABCDE", "BCDEF", strict=True)]
    space = plan_space(query([f"{name}.k" for name in "ABCDEF"], ["A.k"], equi_joins=pairs))
    assert len(set(space.joins)) == len(space.joins) == MOST_JOINS


def test_queries_without_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="no equalities connect all of A, B, C; join every input"):
        plan_space(query(["A.k", "B.k", "C.k"], ["A.k"], equi_joins=[("A.k", "B.k")]))
    names = "ABCDEFG"
    pairs = [(f"{left}.k", f"{right}.k") for left, right in pairwise(names)]
    with pytest.raises(ValueError, match="a query has at most 6 inputs, not 7"):
        plan_space(query([f"{name}.k" for name in names], ["A.k"], equi_joins=pairs))
