import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.charts import (
    CostModel,
    Dimension,
    PlanChoice,
    PlanCosts,
    RoundStatistics,
    Weights,
    build_chart,
    build_charts,
    plan_space,
)
from thalweg.charts.chart import DECADES, MOST_REGIONS, bounded_parts
from thalweg.charts.query_charts import extended_ranges, first_ranges
from thalweg_lab.experiments.om.queries import equality, q1, q2, query

Q2_EQUALITIES = (
    "`TCP`.`src_host` = `UDP`.`dest_host`",
    "`SF`.`dest_host` = `UDP`.`dest_host`",
    "`SF`.`dest_host` = `TCP`.`src_host`",
)
positive = st.floats(1e-3, 1e5)


def test_every_region_has_the_plan_that_is_the_cheapest_at_its_centroid() -> None:
    """Algorithm 1 by brute force, for Q1 with projected tuples of half the size."""
    costs = PlanCosts(plan_space(q1()), CostModel(1.0, projected_sizes={"TCP": 0.5}), Weights())
    ranges = first_ranges(costs, RoundStatistics({"TCP": 500.0}, {"TCP": 0.5}))
    chart = build_charts(costs, 10, ranges, RoundStatistics({"TCP": 500.0})).by_alias["TCP"]
    selectivities, rates = (dimension.centroids(10) for dimension in chart.dimensions)
    brute = [[costs.best(RoundStatistics({"TCP": r}, {"TCP": s})).leaves[0] for r in rates] for s in selectivities]
    assert chart.plans.tolist() == brute
    assert set(chart.plans.flat) == {0, 1}
    assert chart.plans.dtype == np.uint8


def test_memory_counted_in_tuples_gives_q1_one_plan_for_all_regions() -> None:
    costs = PlanCosts(plan_space(q1()), CostModel(1.0), Weights())
    ranges = first_ranges(costs, RoundStatistics({"TCP": 500.0}, {"TCP": 0.5}))
    assert not build_charts(costs, 10, ranges, RoundStatistics({"TCP": 1.0})).by_alias["TCP"].plans.any()


@settings(max_examples=25)
@given(st.lists(positive, min_size=3, max_size=3), st.lists(st.floats(1e-5, 1.0), min_size=3, max_size=3))
def test_a_join_chart_has_the_cheapest_plan_at_every_centroid(rates: list[float], selectivities: list[float]) -> None:
    costs = PlanCosts(plan_space(q2()), CostModel(1.0), Weights())
    joins = dict(zip(Q2_EQUALITIES, selectivities, strict=True))
    statistics = RoundStatistics(dict(zip(("TCP", "UDP", "SF"), rates, strict=True)), join_selectivities=joins)
    chart = build_charts(costs, 3, first_ranges(costs, statistics), statistics).of_joins
    assert chart
    axes = [dimension.centroids(3).tolist() for dimension in chart.dimensions]
    for region in np.ndindex(3, 3, 3):
        point = [axis[place] for axis, place in zip(axes, region, strict=True)]
        assert chart.region(point) == region
        at = RoundStatistics(dict(zip(("TCP", "UDP", "SF"), point, strict=True)), join_selectivities=joins)
        every = [
            plan.cost(at, costs.model, costs.weights)
            for plan in (costs.space.plan(choice) for choice in choices(costs))
        ]
        assert every[chart.plan_at(point)] == pytest.approx(min(every), rel=1e-9)


def choices(costs: PlanCosts) -> list[PlanChoice]:
    return [PlanChoice(number, (0,) * len(costs.space.aliases)) for number in range(len(costs.space.joins))]


@given(first=st.floats(0.0, 1e6), values=st.lists(st.floats(0.0, 1e9), max_size=10), is_logarithmic=st.booleans())
def test_extended_ranges_cover_what_they_covered_and_the_new_value(
    first: float, values: list[float], *, is_logarithmic: bool
) -> None:
    dimension = Dimension.around("rate of T", first, is_logarithmic=is_logarithmic)
    covered = [first] if dimension.covers(first) else []
    for value in values:
        dimension = dimension.extended(value)
        covered.append(value)
        assert all(map(dimension.covers, covered))
        assert 0 <= dimension.part(value, 10) < 10


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_ranges_of_selectivities_end_at_one(first: float, value: float) -> None:
    dimension = Dimension.around("selectivity of T", first, largest=1.0).extended(value)
    assert 0.0 <= dimension.low < dimension.high <= 1.0
    assert dimension.covers(value)


def test_statistics_outside_belong_to_the_nearest_region() -> None:
    dimension = Dimension("rate of T", 10.0, 20.0)
    assert [dimension.part(value, 5) for value in (-1.0, 10.0, 11.99, 12.0, 20.0, 1e9)] == [0, 0, 0, 1, 4, 4]


def test_only_ranges_that_are_left_are_extended() -> None:
    joined = query(["A.k", "A.v", "B.k"], ["B.k"], [equality("A.v", 1)], [("A.k", "B.k")])
    costs = PlanCosts(plan_space(joined), CostModel(1.0), Weights())
    ranges = first_ranges(costs, RoundStatistics({"A": 100.0, "B": 100.0}, {"A": 0.5}))
    assert list(ranges) == ["selectivity of A", "rate of A", "rate of A into the join", "rate of B into the join"]
    more = extended_ranges(costs, ranges, RoundStatistics({"A": 100.0, "B": 500.0}, {"A": 0.5}))
    assert [name for name in ranges if more[name] != ranges[name]] == ["rate of B into the join"]
    assert (more["rate of B into the join"].low, more["rate of B into the join"].high) == pytest.approx((90.0, 550.0))


def test_scarce_tuples_get_their_plan_in_a_chart_of_rates_that_are_thousands_of_times_higher() -> None:
    """Parts of equal width have one plan for all rates up to 450 a second, that of their middle."""

    def plans(*, is_logarithmic: bool) -> list[int]:
        dimension = Dimension.around("rate of T", 18_000.0, is_logarithmic=is_logarithmic).extended(4.0)
        chart = build_chart([dimension], 40, lambda points: [points[0], 100.0])
        return [chart.plan_at([rate]) for rate in (0.0, 4.0, 80.0, 130.0, 18_000.0)]

    assert plans(is_logarithmic=True) == [0, 0, 0, 1, 1]
    assert plans(is_logarithmic=False) == [1, 1, 1, 1, 1]


@given(st.floats(1e-3, 1e6), st.floats(10.0**-DECADES, 1.0))
def test_a_value_of_a_logarithmic_dimension_lies_in_the_part_around_its_centroid(high: float, share: float) -> None:
    dimension = Dimension("rate of T", 0.0, high, is_logarithmic=True)
    centroid = dimension.centroids(10)[dimension.part(high * share, 10)]
    assert abs(math.log10(high * share / centroid)) <= DECADES / 10 / 2 + 1e-9
    assert (dimension.part(0.0, 10), dimension.part(2.0 * high, 10)) == (0, 9)


@pytest.mark.parametrize("dimensions", range(1, 7))
def test_regions_are_bounded(dimensions: int) -> None:
    parts = bounded_parts(40, dimensions)
    assert parts**dimensions <= MOST_REGIONS
    assert parts == 40 or (parts + 1) ** dimensions > MOST_REGIONS
    chart = build_chart([Dimension(str(each), 0.0, 1.0) for each in range(dimensions)], 40, lambda points: [points[0]])
    assert (chart.parts, chart.wanted_parts) == (parts, 40)


def test_of_equal_plans_the_first_is_taken_and_an_infinite_cost_never_wins() -> None:
    unit = [Dimension("x", 0.0, 1.0)]
    assert build_chart(unit, 2, lambda _: [1.0, 1.0, math.inf]).plans.tolist() == [0, 0]
    assert build_chart(unit, 2, lambda _: [math.inf, 7.0]).plans.tolist() == [1, 1]


def test_many_plans_need_two_bytes_a_region() -> None:
    costs = [300.0 - number for number in range(300)]
    chart = build_chart([Dimension("x", 0.0, 1.0)], 2, lambda _: costs)
    assert chart.plans.tolist() == [299, 299]
    assert chart.plans.dtype == np.uint16


def test_bad_ranges_are_refused() -> None:
    with pytest.raises(ValueError, match="the range of x must rise from 0 or more, not from 1 to 1"):
        Dimension("x", 1, 1)
    with pytest.raises(ValueError, match=r"selectivity of T lies between 0 and 1, and is not 1\.5"):
        Dimension("selectivity of T", 0, 1, 1).extended(1.5)
    with pytest.raises(ValueError, match="at least 1 part, not 0"):
        bounded_parts(0, 2)
