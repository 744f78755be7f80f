from dataclasses import replace

import pytest

from thalweg.charts import (
    CostModel,
    MultiJoin,
    RoundStatistics,
    Weights,
    candidate_plans,
    equality_name,
    plan_space,
    runs_alike,
)
from thalweg.charts.candidates import PlanChoice
from thalweg.charts.equalities import implied_equalities, joint_selectivity, named_equality
from thalweg.charts.plan import Join, Select
from thalweg.sql.query import EquiJoin
from thalweg_lab.experiments.om.queries import column, equality, q1, q2, query

MODEL = CostModel(1.0)


def test_plans_compare_by_value_and_have_a_digest_of_their_own() -> None:
    plans, again = candidate_plans(q2()), candidate_plans(q2())
    assert plans == again
    assert {plan: plan.digest for plan in plans} == {plan: plan.digest for plan in again}
    assert len({plan.digest for plan in plans}) == len(plans)


def test_the_steps_of_a_plan_are_in_the_order_in_which_rows_pass_them() -> None:
    first, second = ([step.split()[0] for step in plan.root.steps()] for plan in candidate_plans(q1()))
    assert (first, second) == (["Select", "Project"], ["Project", "Select"])
    assert [step.split()[0] for step in candidate_plans(q2())[0].root.steps()][-1] == "Join"


def test_spark_runs_both_orders_of_selection_and_projection_alike() -> None:
    first, second = candidate_plans(q1())
    assert first != second
    assert runs_alike(first) == runs_alike(second)


def test_join_orders_join_operators_and_orders_of_selections_run_differently() -> None:
    plans = candidate_plans(q2())
    assert len({runs_alike(plan) for plan in plans}) == len(plans) == 4
    two = query(["T.a", "T.b"], ["T.a"], [equality("T.a", 1), equality("T.b", 2)])
    swapped = replace(two, selections=two.selections[::-1])
    assert runs_alike(candidate_plans(two)[0]) != runs_alike(candidate_plans(swapped)[0])


def test_all_plans_of_a_join_put_out_the_same_rows_while_they_keep_up() -> None:
    pairs = {"`TCP`.`src_host` = `UDP`.`dest_host`": 0.001, "`SF`.`dest_host` = `UDP`.`dest_host`": 0.004}
    statistics = RoundStatistics({"TCP": 300.0, "UDP": 20.0, "SF": 90.0}, join_selectivities=pairs)
    flows = [plan.root.flow(statistics, MODEL) for plan in candidate_plans(q2())]
    # An equality that nobody observed, between TCP and SF, has the usual 0.1: the two greatest of three count.
    assert [flow.rows for flow in flows] == [pytest.approx(300 * 20 * 90 * 0.1 * 0.004)] * 4


def test_a_multi_join_of_two_streams_works_as_much_as_a_join() -> None:
    join, multi = candidate_plans(query(["A.k", "B.k"], ["A.k"], equi_joins=[("A.k", "B.k")]))
    assert isinstance(multi.root, MultiJoin)
    statistics = RoundStatistics({"A": 70.0, "B": 30.0})
    of_join, of_multi = join.root.flow(statistics, MODEL), multi.root.flow(statistics, MODEL)
    assert of_multi == of_join._replace(memory=of_join.memory + 70 + 30)  # it holds the windows besides


def test_a_multi_join_counts_each_combination_once() -> None:
    (multi,) = (plan.root for plan in candidate_plans(q2()) if isinstance(plan.root, MultiJoin))
    statistics = RoundStatistics({"TCP": 10.0, "UDP": 10.0, "SF": 10.0})
    flow = multi.flow(statistics, MODEL)
    work = 30 + 3 * (10 * 10 * 0.1) / 2  # each stream's rows, and half of the pairs each order makes
    assert flow.memory == pytest.approx(30 * work / 3000 + 10 + 30)  # input, results and windows
    assert flow.rows == pytest.approx(10 * 10 * 10 * 0.1 * 0.1)


def test_a_multi_join_claims_no_probe_orders() -> None:
    """It chooses them while it runs: plans that differ in those of their estimate are one plan."""
    (multi,) = (plan.root for plan in candidate_plans(q2()) if isinstance(plan.root, MultiJoin))
    other = replace(multi, probe_orders=(("TCP", "SF", "UDP"), ("UDP", "TCP", "SF"), ("SF", "TCP", "UDP")))
    assert other.probe_orders != multi.probe_orders
    assert other.runs_alike == multi.runs_alike
    assert multi.label.endswith(", in probe orders that it chooses while it runs")


def test_equalities_that_follow_are_found_and_count_once() -> None:
    written = q2().equi_joins
    (implied,) = implied_equalities(written)
    assert equality_name(implied) == "`SF`.`dest_host` = `TCP`.`src_host`"
    every = (*written, implied)
    names = dict(zip(map(equality_name, every), (0.5, 0.2, 0.3), strict=True))
    assert joint_selectivity(map(named_equality, every), names) == pytest.approx(0.5 * 0.3)
    assert joint_selectivity((), names) == 1.0
    assert implied_equalities([EquiJoin(column("A.k"), column("B.k")), EquiJoin(column("B.l"), column("C.l"))]) == ()


def test_the_leaves_of_a_plan_are_replaced_and_nothing_else() -> None:
    joined = query(["A.k", "A.v", "B.k"], ["B.k"], [equality("A.v", 1)], [("A.k", "B.k")])
    space = plan_space(joined)
    first, second = (space.plan(PlanChoice(0, (number, 0))).root for number in (0, 1))
    assert isinstance(first, Join)
    assert isinstance(second, Join)
    assert isinstance(second.left, Select)
    assert (first.right, first.equi_joins) == (second.right, second.equi_joins)
    assert str(first) == (
        "Join on `A`.`k` = `B`.`k`\n  Project A: k\n    Select `A`.`v` = 1\n      Scan stream A\n  Scan stream B"
    )


def test_a_join_selectivity_of_zero_costs_infinitely_much() -> None:
    statistics = RoundStatistics({"A": 1.0, "B": 1.0}, join_selectivities={"`A`.`k` = `B`.`k`": 0.0})
    for plan in candidate_plans(query(["A.k", "B.k"], ["A.k"], equi_joins=[("A.k", "B.k")])):
        assert plan.cost(statistics, MODEL, Weights()) == float("inf")
