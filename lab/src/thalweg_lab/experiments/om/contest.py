"""Shared by the experiments on charts: the two queries of Table 2, their streams, and a scheduler's run over a series.

Q1's projection keeps half of a tuple: with memory counted in tuples, one of its two plans would be the best everywhere
(`thalweg.charts.cost`). Q2 competes with its three left-deep plans, as in the paper; Thalweg's own join of many streams
is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thalweg_lab.experiments.om.queries import q1, q2

if TYPE_CHECKING:
    from thalweg.charts import PlanCosts, RoundRecord, ScheduleCounts
    from thalweg_lab.experiments.om.series import Round

SINGLE, JOIN = "single", "join"
OM, RAND, RATE = "by-chart", "at-random", "by-first-estimate"
ROUNDS = 600  # ten minutes of rounds of a second, section 5.1
MOST_ERRATIC = 0.26  # coefficient of variation, section 5.2
VARIATIONS = (0.26, 0.22, 0.17, 0.13, 0.09)
RATES = {"TCP": 700.0, "UDP": 600.0, "SF": 500.0}  # tuples a second; the paper says 500 and more
SINGLE_RATE = 500.0  # tuples a second, section 5.2
SELECTIVITY = 0.45
PROJECTED_SIZE = 0.5
KEYS = 500  # of the joins, equally frequent: one of so many pairs matches


@dataclass(frozen=True)
class Run:
    """The run of a scheduler over a series."""

    counts: ScheduleCounts
    log: tuple[RoundRecord, ...]
    chart_hits: int  # rounds for which the chart has the best plan, had the estimate equalled the observation
    ceiling_hits: int  # rounds whose best plan is that for their means, which no estimate knows better


def plan_costs(kind: str) -> PlanCosts:
    """The plans of Q1 or Q2, and their costs."""
    from thalweg.charts import CostModel, PlanCosts, Weights, plan_space

    if kind == SINGLE:
        return PlanCosts(plan_space(q1()), CostModel(1.0, projected_sizes={"TCP": PROJECTED_SIZE}), Weights())
    space = plan_space(q2())
    return PlanCosts(replace(space, joins=space.joins[:-1]), CostModel(1.0), Weights())


def drawn(
    kind: str, variation: float, seed: int, burst: tuple[int, int] = (0, 0), selectivity: float = SELECTIVITY
) -> list[Round]:
    """Rounds of the streams of Q1 or Q2."""
    from thalweg.charts import equality_name
    from thalweg.charts.equalities import implied_equalities
    from thalweg_lab.experiments.om.series import WanderingStream, series

    if kind == SINGLE:
        streams = [WanderingStream("TCP", SINGLE_RATE, selectivity, variation)]
        return series(streams, ROUNDS, seed, burst=burst)
    written = q2().equi_joins
    shares = {equality_name(equality): 1.0 / KEYS for equality in (*written, *implied_equalities(written))}
    return series(
        [WanderingStream(alias, rate, None, variation) for alias, rate in RATES.items()], ROUNDS, seed, shares
    )


def run(scheduler: str, kind: str, rounds: list[Round], parts: int | None = None) -> Run:
    """A scheduler's choices for rounds that it is told one after the other."""
    from thalweg.charts import ByChart
    from thalweg.charts import scheduler as make

    chosen = make(scheduler, plan_costs(kind), **({} if parts is None else {"parts": parts}))
    chart_hits = ceiling_hits = 0
    for observed, means in rounds:
        chosen.choose(ahead=observed)
        if isinstance(chosen, ByChart) and chosen.charts:
            chart = chosen.charts
            chart_hits += chosen.costs.is_best(chart.choice(chart.regions(observed)), observed)
            ceiling_hits += chosen.costs.is_best(chosen.costs.best(means), observed)
        chosen.observe(observed)
    return Run(chosen.counts, tuple(chosen.log), chart_hits, ceiling_hits)
