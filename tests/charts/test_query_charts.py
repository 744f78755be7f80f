from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.charts import CostModel, PlanChoice, PlanCosts, RoundStatistics, Weights, plan_space
from thalweg.sql.query import ContinuousQuery
from thalweg_lab.experiments.om.queries import equality, query

PAIRS = [("A.k", "B.k"), ("B.l", "C.l")]
COLUMNS = ["A.k", "A.v", "B.k", "B.l", "C.l", "C.v"]
QUERY = query(COLUMNS, ["A.k"], [equality("A.v", 1), equality("C.v", 2)], PAIRS)
WITH_TABLE = query(COLUMNS, ["A.k"], [equality("A.v", 1), equality("C.v", 2)], PAIRS, tables=["C"])

rates = st.floats(0.1, 50.0)
shares = st.floats(0.01, 1.0)


@settings(max_examples=50)
@given(st.tuples(rates, rates, rates), st.tuples(shares, shares), st.tuples(shares, shares), st.tuples(shares, shares))
@pytest.mark.parametrize("written", [QUERY, WITH_TABLE], ids=["streams", "table"])
def test_sub_plans_and_joins_that_are_chosen_apart_make_the_cheapest_whole_plan(
    written: ContinuousQuery,
    rate: tuple[float, float, float],
    selected: tuple[float, float],
    joined: tuple[float, float],
    sizes: tuple[float, float],
) -> None:
    """As long as every operator keeps up with its input."""
    space = plan_space(written)
    # Selections read columns without a size, so that both orders of σ and π put out tuples of one size.
    dropped = {"A": {"w": 1.0 - sizes[0]}, "C": {"w": 1.0 - sizes[1]}}
    model = CostModel(1.0, column_sizes=dropped, input_sizes={"A": 3.0, "B": 0.5})
    costs = PlanCosts(space, model, Weights())
    statistics = RoundStatistics(
        {alias: value for alias, value in zip("ABC", rate, strict=True) if alias in space.streams},
        dict(zip("AC", selected, strict=True)),
        {"`A`.`k` = `B`.`k`": joined[0] / 10, "`B`.`l` = `C`.`l`": joined[1] / 10},
        {"C": 50.0} if "C" not in space.streams else {},
    )
    every = [
        PlanChoice(join, leaves)
        for join in range(len(space.joins))
        for leaves in product(*(range(len(each)) for each in space.leaves))
    ]
    by_choice = {choice: space.plan(choice).cost(statistics, model, costs.weights) for choice in every}
    # A table is read once: its sub-plan is always the first.
    open_choices = (cost for choice, cost in by_choice.items() if written is QUERY or choice.leaves[2] == 0)
    assert by_choice[costs.best(statistics)] == pytest.approx(min(open_choices), rel=1e-6)
    assert costs.is_best(costs.best(statistics), statistics)
