"""Section 5.4: ten queries, served round-robin; also for real flights."""

from __future__ import annotations

from collections import deque
from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import (
    FLIGHT_PARTS,
    FLIGHTS,
    GENERATED,
    JOIN,
    OM,
    SINGLE,
    drawn,
    flown,
    plan_costs,
    run,
)
from thalweg_lab.results import Result, at_least, exactly

if TYPE_CHECKING:
    from thalweg.charts import RoundStatistics

SELECTIVITIES = (0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.75)  # of the single-stream queries
JOINS = 3
MINUTES = {SINGLE: (-5, -3, -1, 0, 5, 15, 30), JOIN: (-100, 0, 15)}  # more than which departures are late; -100 is all
VARIATION = 0.09  # the paper does not say; the least erratic of its streams
FIDELITY = {SINGLE: 0.95, JOIN: 0.90}
FLIGHTS_NOTE = (
    f"; departures more than {', '.join(map(str, MINUTES[SINGLE]))} minutes late, and joins with those more than "
    f"{', '.join(map(str, MINUTES[JOIN]))} minutes late: lowest where both plans are the best about as often"
)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Sets of ten queries, over generated streams and over parts of the year of flights."""
    streams = {GENERATED: 2 if quick else 20, FLIGHTS: 1 if quick else FLIGHT_PARTS}
    return [{"data": data, "seed": seed} for data, count in streams.items() for seed in range(count)]


def queries_of(data: str, seed: int) -> list[tuple[str, list[RoundStatistics]]]:
    """Ten queries with the rounds of their streams."""
    if data == FLIGHTS:
        return [(kind, flown(kind, seed, minutes)) for kind, every in MINUTES.items() for minutes in every]
    drawings = [
        (SINGLE, drawn(SINGLE, VARIATION, 100 * seed + number, selectivity=selectivity))
        for number, selectivity in enumerate(SELECTIVITIES)
    ]
    drawings += [(JOIN, drawn(JOIN, VARIATION, 100 * seed + 50 + number)) for number in range(JOINS)]
    return [(kind, [each.observed for each in rounds]) for kind, rounds in drawings]


def measure(setting: Setting) -> list[Row]:
    """A row for each query: fidelity, and the longest time between two turns, in turns of any query.

    Fidelity is measured twice: of plans by estimates, as in the paper, and of plans by counts, as in a session.
    """
    from thalweg.charts import ByChart

    queries = queries_of(setting["data"], setting["seed"])
    schedulers = [ByChart(plan_costs(kind, setting["data"])) for kind, _ in queries]
    waiting = deque(range(len(queries)))
    last_turn, longest = [0] * len(queries), [0] * len(queries)
    for turn in range(sum(len(rounds) for _, rounds in queries)):
        query = waiting.popleft()
        scheduler, (_, rounds) = schedulers[query], queries[query]
        longest[query] = max(longest[query], turn - last_turn[query])
        last_turn[query] = turn
        number = scheduler.counts.rounds
        scheduler.choose()
        scheduler.observe(rounds[number])
        waiting.append(query)
    return [
        {
            **setting,
            "number": number,
            "query": kind,
            "fidelity": scheduler.counts.fidelity,
            "counted": run(OM, scheduler.costs, rounds, counted=True).counts.fidelity,
            "rounds": scheduler.counts.rounds,
            "longest_wait": wait,
        }
        for number, ((kind, rounds), scheduler, wait) in enumerate(zip(queries, schedulers, longest, strict=True))
    ]


def _fidelity(rows: list[Row], number: int, key: str) -> float:
    return mean(float(row[key]) for row in rows if row["number"] == number)


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity of both kinds of queries, and that no query waits for more than one turn of all others."""
    generated = [row for row in rows if row["data"] == GENERATED]
    flights = [row for row in rows if row["data"] == FLIGHTS]
    waits = [row["longest_wait"] for row in rows]
    queries = len({row["number"] for row in rows})
    return [
        *_judge(generated, "queries"),
        exactly("all queries", "turns between two rounds of a query, most", max(waits), queries),
        *_judge(flights, "queries, flights", FLIGHTS_NOTE),
    ]


def _judge(rows: list[Row], name: str, why: str = "") -> list[Result]:
    results = []
    for kind, bound in FIDELITY.items():
        numbers = sorted({row["number"] for row in rows if row["query"] == kind})
        for measure, key in (("fidelity", "fidelity"), ("fidelity, rounds planned when counted", "counted")):
            of = {number: _fidelity(rows, number, key) for number in numbers}
            listed = ", ".join(f"query {number}: {fidelity:.1%}" for number, fidelity in of.items())
            results.append(at_least(f"{kind} {name}", measure, mean(of.values()), bound, listed + why))
    return results


EXPERIMENT = Experiment(
    id="om-many",
    title="Ten queries, served round-robin",
    source="om-plan-charts-2005, section 5.4",
    claim="Fidelity of 95% for queries over single streams and of 90% for joins, and no starvation",
    settings=settings,
    measure=measure,
    judge=judge,
)
