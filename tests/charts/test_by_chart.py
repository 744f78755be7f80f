import numpy as np
import pytest

from thalweg.charts import ByChart, CostModel, PlanCosts, RoundStatistics, Weights, plan_space
from thalweg_lab.experiments.om.queries import q1, q2, query

COSTS = PlanCosts(plan_space(q1()), CostModel(1.0, projected_sizes={"TCP": 0.5}), Weights())


def single(selectivity: float, rate: float = 100.0) -> RoundStatistics:
    return RoundStatistics({"TCP": rate}, {"TCP": selectivity})


def run(one: ByChart, *series: RoundStatistics) -> str:
    """A word of a letter a round: m for a move, s for a switch, h for a hit, - for none of them."""
    letters = []
    for statistics in series:
        one.choose()
        record = one.observe(statistics)
        marks = "m" * record.is_move + "s" * record.is_switch + "h" * record.is_hit
        letters.append(marks or "-")
    return " ".join(letters)


def test_moves_switches_and_hits_of_a_series_made_by_hand() -> None:
    """With estimates of one round, the plan is the best of the round before.

    Projected tuples are half as large. With queues as the greatest part of memory, the selection comes first (plan 0)
    where (selectivity + selectivity / 2) is less than (1 + selectivity) / 2, that is, below 1/2.
    """
    one = ByChart(COSTS, parts=10, rounds=1)
    assert [COSTS.best(single(share)).leaves for share in (0.3, 0.45, 0.55, 0.9)] == [(0,), (0,), (1,), (1,)]
    # The range is 0.36 to 0.44 after the first round, and doubles to the right until it ends at 1 after the second.
    # Then regions are 0.064 wide, and plan 1 begins with the third region, at 0.488.
    words = run(one, *(single(share) for share in (0.4, 0.7, 0.45, 0.46, 0.55, 0.56, 0.6, 0.61)))
    # 0.4: the first plan is a hit. 0.7: chosen by 0.4. 0.45: by 0.7, too late. 0.46: by 0.45. 0.55: by 0.46, whose
    # region is that of 0.45. 0.56: by 0.55. 0.6: by 0.56, another region with the same plan. 0.61: by 0.6.
    assert words == "h - ms msh - msh mh h"
    counts = one.counts
    assert (counts.decisions, counts.moves, counts.switches, counts.hits) == (8, 4, 3, 5)
    assert counts.fidelity == pytest.approx(5 / 8)


def test_ranges_grow_with_the_statistics_and_it_is_told() -> None:
    one = ByChart(COSTS, rounds=1)
    run(one, single(0.4, 100.0), single(0.4, 105.0))
    assert (one.builds, one.extensions) == (1, 0)
    run(one, single(0.4, 900.0))
    assert (one.builds, one.extensions) == (2, 1)
    assert one.charts is not None
    assert one.charts.by_alias["TCP"].dimensions[1].covers(900.0)
    run(one, single(0.4, 95.0), single(0.4, 800.0))
    assert one.extensions == 1


def test_charts_are_extended_once_for_rounds_that_end_together() -> None:
    alone, together = ByChart(COSTS), ByChart(COSTS)
    series = [single(0.4, rate) for rate in (100.0, 200.0, 400.0, 30.0, 800.0)]
    together.prepare(series)
    for counted in series:
        for one in (alone, together):
            one.choose(counted)
            one.observe(counted)
    assert (together.builds, together.extensions) == (2, 1)  # the second with the first estimates
    assert (alone.builds, alone.extensions) == (6, 4)
    assert alone.charts is not None
    assert together.charts is not None
    assert together.charts.by_alias["TCP"].dimensions == alone.charts.by_alias["TCP"].dimensions
    together.prepare([])
    together.prepare(series[:2])
    assert together.builds == 2


def test_join_selectivities_that_stray_build_the_chart_anew() -> None:
    costs = PlanCosts(plan_space(q2()), CostModel(1.0), Weights())
    one = ByChart(costs, rounds=1)
    name = "`TCP`.`src_host` = `UDP`.`dest_host`"
    series = [RoundStatistics({"TCP": 9.0, "UDP": 9.0, "SF": 9.0}, {}, {name: share}) for share in (0.01, 0.012, 0.03)]
    run(one, *series[:2])
    assert one.builds == 1
    run(one, series[2])
    assert (one.builds, one.extensions) == (2, 0)


def test_more_parts_and_other_weights_build_the_chart_anew_without_a_move() -> None:
    one = ByChart(COSTS)
    one.divide(20)
    assert one.builds == 0
    run(one, single(0.4), single(0.4))
    one.divide(40)
    one.reweigh(Weights(1.0, 0.0))
    assert one.charts is not None
    assert one.charts.by_alias["TCP"].parts == 40
    assert one.builds == 3
    assert "m" not in run(one, single(0.4))


def test_a_query_with_one_plan_has_no_charts_to_build_again() -> None:
    costs = PlanCosts(plan_space(query(["T.a"], ["T.a"])), CostModel(1.0), Weights())
    one = ByChart(costs)
    assert run(one, *(RoundStatistics({"T": rate}) for rate in (1.0, 100.0, 5.0))) == "h h h"
    assert (one.builds, one.counts.moves) == (1, 0)


def test_the_number_of_parts_is_checked_before_anything_is_built() -> None:
    with pytest.raises(ValueError, match="a dimension has at least 1 part, not 0"):
        ByChart(COSTS, parts=0)
    one = ByChart(COSTS)
    with pytest.raises(ValueError, match="a dimension has at least 1 part, not -1"):
        one.divide(-1)
    assert one.parts == 10


def test_finer_charts_are_right_more_often() -> None:
    series = [single(float(share)) for share in np.random.default_rng(0).uniform(0.3, 0.7, 400)]
    hits = []
    for parts in (2, 10, 40):
        one = ByChart(COSTS, parts=parts, rounds=1)
        run(one, single(0.31), single(0.7))
        assert one.charts is not None
        hits.append(
            sum(COSTS.is_best(one.charts.choice(one.charts.regions(statistics)), statistics) for statistics in series)
        )
    assert hits[0] <= hits[1] < hits[2]
    assert hits[2] >= 0.95 * len(series)
