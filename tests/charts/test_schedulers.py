"""What every scheduler must do, run over all of `SCHEDULERS`."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from thalweg.charts import (
    SCHEDULERS,
    AtRandom,
    ByChart,
    ByFirstEstimate,
    Clairvoyant,
    CostModel,
    PlanCosts,
    PlanScheduler,
    RoundStatistics,
    Weights,
    candidate_plans,
    plan_space,
    scheduler,
)
from thalweg.sealed import SavedStateError
from thalweg_lab.experiments.om.queries import equality, q1, q2, query

Q1 = PlanCosts(plan_space(q1()), CostModel(1.0, projected_sizes={"TCP": 0.5}), Weights())
Q2 = PlanCosts(plan_space(q2()), CostModel(1.0), Weights())
TABLE = PlanCosts(
    plan_space(query(["A.k", "A.v", "B.k"], ["A.k"], [equality("A.v", 1)], [("A.k", "B.k")], tables=["B"])),
    CostModel(1.0, projected_sizes={"A": 0.5}),
    Weights(),
)

every_scheduler = pytest.mark.parametrize("kind", SCHEDULERS, ids=lambda kind: kind.name)
every_query = pytest.mark.parametrize("costs", [Q1, Q2, TABLE], ids=["single stream", "join", "table"])


def rounds(costs: PlanCosts, number: int, seed: int = 0) -> Iterator[RoundStatistics]:
    """Statistics that wander."""
    random = np.random.default_rng(seed)
    for _ in range(number):
        yield RoundStatistics(
            {alias: float(random.lognormal(5.0, 0.5)) for alias in costs.space.streams},
            {alias: float(random.uniform(0.2, 0.9)) for alias in costs.space.streams},
            {},
            {alias: 100.0 for alias in costs.space.aliases if alias not in costs.space.streams},
        )


def run(one: PlanScheduler, series: Iterator[RoundStatistics]) -> list[str]:
    """The digests of the plans that are chosen."""
    digests = []
    for statistics in series:
        digests.append(one.choose(statistics).digest)
        one.observe(statistics)
    return digests


@every_scheduler
@every_query
def test_rounds_are_counted_and_logged(kind: type[PlanScheduler], costs: PlanCosts) -> None:
    one = kind(costs)
    assert one.counts.fidelity is None
    digests = run(one, rounds(costs, 50))
    assert one.counts.decisions == one.counts.rounds == len(one.log) == 50
    assert [record.plan for record in one.log] == digests
    assert [record.number for record in one.log] == list(range(1, 51))
    assert one.counts.switches == sum(left != right for left, right in pairwise(digests))
    assert one.counts.switches == sum(record.is_switch for record in one.log)
    assert one.counts.moves == sum(record.is_move for record in one.log)
    assert one.counts.hits == sum(record.is_hit for record in one.log)
    assert one.plan is not None
    assert one.plan.digest == digests[-1]


@every_scheduler
def test_plans_that_spark_runs_identically_count_as_one_in_a_session(kind: type[PlanScheduler]) -> None:
    """Catalyst moves projections itself: a query of one stream has two candidates, and one plan."""
    session = kind(replace(Q1, alike_is_same=True))
    digests = run(session, rounds(Q1, 50))
    assert session.counts.switches == 0
    assert session.counts.fidelity == 1
    assert digests == run(kind(Q1), rounds(Q1, 50))


@every_scheduler
@every_query
def test_a_saved_scheduler_goes_on_as_if_it_had_not_stopped(kind: type[PlanScheduler], costs: PlanCosts) -> None:
    through, until, after = kind(costs), kind(costs), kind(costs)
    series = list(rounds(costs, 60))
    run(through, iter(series))
    run(until, iter(series[:30]))
    after.load(json.loads(json.dumps(until.save(), allow_nan=False)))
    run(after, iter(series[30:]))
    assert after.counts == through.counts
    assert list(after.log) == list(through.log)[30:]
    assert after.save() == through.save()


@every_scheduler
def test_a_new_scheduler_can_be_saved(kind: type[PlanScheduler]) -> None:
    one, other = kind(Q2), kind(Q2)
    other.load(json.loads(json.dumps(one.save())))
    assert run(one, rounds(Q2, 20)) == run(other, rounds(Q2, 20))


@every_scheduler
def test_the_state_of_another_query_or_scheduler_is_refused(kind: type[PlanScheduler]) -> None:
    with pytest.raises(SavedStateError, match="the saved state has plans"):
        kind(Q1).load(kind(Q2).save())
    other = AtRandom if kind is not AtRandom else ByChart
    with pytest.raises(SavedStateError, match="the saved state has scheduler"):
        kind(Q1).load(other(Q1).save())


@every_scheduler
@pytest.mark.parametrize("damage", [{"weights": {"rate": -1}}, {"last": [1]}, {"estimates": {}}, {"counts": None}])
def test_a_state_that_was_not_saved_by_a_scheduler_is_refused(
    kind: type[PlanScheduler], damage: dict[str, object]
) -> None:
    one = kind(Q1)
    run(one, rounds(Q1, 3))
    with pytest.raises(SavedStateError, match="the saved schedule of plans is not what Thalweg writes"):
        kind(Q1).load({**one.save(), **damage})


@every_scheduler
def test_weights_can_change_between_rounds(kind: type[PlanScheduler]) -> None:
    one = kind(Q1)
    run(one, rounds(Q1, 10))
    one.reweigh(Weights(5.0, 1.0))
    run(one, rounds(Q1, 10))
    assert one.costs.weights == Weights(5.0, 1.0)
    assert one.counts.rounds == 20


@every_scheduler
def test_a_round_that_was_not_chosen_for_is_not_observed(kind: type[PlanScheduler]) -> None:
    with pytest.raises(ValueError, match=r"call choose\(\) before each round"):
        kind(Q1).observe(RoundStatistics({"TCP": 1.0}, {"TCP": 0.5}))


@every_scheduler
def test_rounds_without_rows_are_no_error(kind: type[PlanScheduler]) -> None:
    empty = RoundStatistics(dict.fromkeys(Q2.space.streams, 0.0))
    one = kind(Q2)
    run(one, iter([empty, *rounds(Q2, 3), empty, empty]))
    assert one.counts.rounds == 6


@every_query
def test_the_clairvoyant_hits_always_and_chance_as_often_as_there_are_plans(costs: PlanCosts) -> None:
    clairvoyant, chance = Clairvoyant(costs), AtRandom(costs)
    run(clairvoyant, rounds(costs, 200))
    run(chance, rounds(costs, 200))
    plans = len(costs.space.joins) * int(np.prod([len(leaves) for leaves in costs.space.leaves]))
    assert clairvoyant.counts.fidelity == 1.0
    assert chance.counts.fidelity == pytest.approx(1 / plans, abs=0.12)


def test_the_clairvoyant_needs_counts() -> None:
    with pytest.raises(ValueError, match=r"needs the statistics of the next round: choose\(counted\)"):
        Clairvoyant(Q1).choose()


def test_the_first_estimate_decides_for_ever() -> None:
    one = ByFirstEstimate(Q1)
    few, many = (RoundStatistics({"TCP": 100.0}, {"TCP": share}) for share in (0.1, 0.95))
    digests = []
    for statistics in (many, *[few] * 5):
        digests.append(one.choose().digest)
        one.observe(statistics)
    first, second = (plan.digest for plan in candidate_plans(q1()))
    assert digests == [first, *[second] * 5]
    assert (one.counts.switches, one.counts.hits) == (1, 0)


@every_query
def test_counted_rounds_need_no_estimates(costs: PlanCosts) -> None:
    by_estimates, by_counts = ByChart(costs, parts=40), ByChart(costs, parts=40)
    for statistics in rounds(costs, 200):
        by_estimates.choose()
        by_estimates.observe(statistics)
    run(by_counts, rounds(costs, 200))
    assert by_counts.counts.fidelity is not None
    assert by_counts.counts.fidelity >= 0.95
    assert by_counts.counts.hits > by_estimates.counts.hits


def test_a_chart_covers_a_counted_round_before_its_plan_is_looked_up() -> None:
    plans = ByChart(Q1, parts=40)
    for rate in (100.0, 5_000.0):
        plans.choose(RoundStatistics({"TCP": rate}, {"TCP": 0.5}))
        assert plans.charts is not None
        assert plans.charts.by_alias["TCP"].dimensions[1].covers(rate)
        plans.observe(RoundStatistics({"TCP": rate}, {"TCP": 0.5}))
    assert plans.extensions == 1


def test_the_first_count_decides_for_ever() -> None:
    one = ByFirstEstimate(Q1)
    few, many = (RoundStatistics({"TCP": 100.0}, {"TCP": share}) for share in (0.1, 0.95))
    assert len(set(run(one, iter([many, *[few] * 5])))) == 1
    assert (one.counts.switches, one.counts.hits) == (0, 1)


def test_schedulers_are_made_by_name() -> None:
    one = scheduler("by-chart", Q1, parts=40)
    assert isinstance(one, ByChart)
    assert one.parts == 40
    with pytest.raises(ValueError, match="there is no scheduler 'by-chrt'; did you mean 'by-chart'"):
        scheduler("by-chrt", Q1)
