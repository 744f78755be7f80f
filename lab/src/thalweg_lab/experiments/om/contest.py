"""Shared by the experiments on charts: two queries, their streams, and a scheduler's run over rounds.

The queries are those of Table 2 over generated streams, and two of their kind over flights and weather. The projection
of a single stream keeps half of a tuple: with memory counted in tuples, one of its two plans would be the best
everywhere (`thalweg.charts.cost`). Joins compete with their three left-deep plans, as in the paper; Thalweg's own join
of many streams is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thalweg_lab.experiments.om.queries import flights_and_weather, late_departures, q1, q2

if TYPE_CHECKING:
    from thalweg.charts import PlanCosts, RoundRecord, RoundStatistics, ScheduleCounts
    from thalweg.sql.query import ContinuousQuery
    from thalweg_lab.experiments.om.series import Round

SINGLE, JOIN = "single", "join"
GENERATED, FLIGHTS = "generated", "flights"
OM, RAND, RATE = "by-chart", "at-random", "by-first-estimate"
ROUNDS = 600  # ten minutes of rounds of a second, section 5.1
MOST_ERRATIC = 0.26  # coefficient of variation, section 5.2
VARIATIONS = (0.26, 0.22, 0.17, 0.13, 0.09)
RATES = {"TCP": 700.0, "UDP": 600.0, "SF": 500.0}  # tuples a second; the paper says 500 and more
SINGLE_RATE = 500.0  # tuples a second, section 5.2
SELECTIVITY = 0.45
PROJECTED_SIZE = 0.5
KEYS = 500  # of the joins, equally frequent: one of so many pairs matches
MINUTES_LATE = 0  # more than which a departure is late; 38 of 100 are
FLIGHT_PARTS = 10  # of the year, of ROUNDS rounds each


@dataclass(frozen=True)
class ContestRun:
    """The run of a scheduler over rounds."""

    counts: ScheduleCounts
    log: tuple[RoundRecord, ...]
    repeated_hits: int  # rounds for which the best plan of the round before is the best again

    @property
    def repeated_fidelity(self) -> float:
        """The share of hits of a scheduler that takes what was best in the round before; the first round has none."""
        return self.repeated_hits / (self.counts.rounds - 1)


def plan_costs(kind: str, data: str = GENERATED) -> PlanCosts:
    """The plans of the query over a single stream or of the join, and their costs."""
    from thalweg.charts import CostModel, PlanCosts, Weights, plan_space

    space = plan_space(_query(kind, data))
    if kind == SINGLE:
        return PlanCosts(space, CostModel(1.0, projected_sizes={space.aliases[0]: PROJECTED_SIZE}), Weights())
    return PlanCosts(replace(space, joins=space.joins[:-1]), CostModel(1.0), Weights())


def _query(kind: str, data: str) -> ContinuousQuery:
    if data == GENERATED:
        return q1() if kind == SINGLE else q2()
    return late_departures(MINUTES_LATE) if kind == SINGLE else flights_and_weather()


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


def flown(kind: str, part: int, minutes: int = MINUTES_LATE) -> list[RoundStatistics]:
    """Rounds of real flights, those of a part of the year.

    Of a single stream, a query selects the departures that are more than so many minutes late. A join has a stream of
    such departures.
    """
    from thalweg_lab.experiments.om.flights import join_rounds, single_rounds, streams

    arrivals = streams()
    departures = arrivals["departures"]
    if kind == SINGLE:
        rounds = single_rounds(departures, minutes)
    else:
        late = departures.where(departures.minutes_late > minutes)
        rounds = join_rounds({**arrivals, "departures": late}, flights_and_weather())
    return rounds[part * ROUNDS : (part + 1) * ROUNDS]


def run(
    scheduler: str,
    costs: PlanCosts,
    rounds: Sequence[RoundStatistics],
    parts: int | None = None,
    *,
    counted: bool = False,
) -> ContestRun:
    """A scheduler's choices for rounds that it is told one after the other: afterwards, as in the paper, or `counted`.

    A session plans a round when its tuples have been counted, so that nothing is lost by estimates.
    """
    from thalweg.charts import scheduler as make

    chosen = make(scheduler, costs, **({} if parts is None else {"parts": parts}))
    repeated_hits = 0
    best = None  # in the round before
    for observed in rounds:
        chosen.choose(observed if counted else None)
        repeated_hits += best is not None and costs.is_best(best, observed)
        best = costs.best(observed)
        chosen.observe(observed)
    return ContestRun(chosen.counts, tuple(chosen.log), repeated_hits)
