"""Section 5.4: ten queries, served round-robin."""

from __future__ import annotations

from collections import deque
from statistics import mean

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, exactly

SELECTIVITIES = (0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.75)  # of the single-stream queries
JOINS = 3
VARIATION = 0.09  # the paper does not say; the least erratic of its streams
FIDELITY = {"single": 0.95, "join": 0.90}


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Sets of ten queries."""
    return [{"seed": seed} for seed in range(2 if quick else 20)]


def measure(setting: Setting) -> list[Row]:
    """A row for each query: fidelity, and the longest time between two turns, in turns of any query."""
    from thalweg.charts import ByChart
    from thalweg_lab.experiments.om.contest import JOIN, SINGLE, drawn, plan_costs

    first = 100 * setting["seed"]
    queries = [
        (SINGLE, drawn(SINGLE, VARIATION, first + number, selectivity=selectivity))
        for number, selectivity in enumerate(SELECTIVITIES)
    ]
    queries += [(JOIN, drawn(JOIN, VARIATION, first + 50 + number)) for number in range(JOINS)]
    schedulers = [ByChart(plan_costs(kind)) for kind, _ in queries]
    waiting = deque(range(len(queries)))
    last_turn, longest = [0] * len(queries), [0] * len(queries)
    for turn in range(sum(len(rounds) for _, rounds in queries)):
        query = waiting.popleft()
        scheduler, (_, rounds) = schedulers[query], queries[query]
        longest[query] = max(longest[query], turn - last_turn[query])
        last_turn[query] = turn
        number = scheduler.counts.rounds
        scheduler.choose()
        scheduler.observe(rounds[number].observed)
        waiting.append(query)
    return [
        {
            **setting,
            "number": number,
            "query": kind,
            "fidelity": scheduler.counts.fidelity,
            "rounds": scheduler.counts.rounds,
            "longest_wait": wait,
        }
        for number, ((kind, _), scheduler, wait) in enumerate(zip(queries, schedulers, longest, strict=True))
    ]


def _fidelity(rows: list[Row], number: int) -> float:
    return mean(float(row["fidelity"]) for row in rows if row["number"] == number)


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity of both kinds of queries, and that no query waits for more than one turn of all others."""
    queries = len({row["number"] for row in rows})
    results = []
    for kind, bound in FIDELITY.items():
        of = {
            number: _fidelity(rows, number)
            for number in sorted({row["number"] for row in rows if row["query"] == kind})
        }
        listed = ", ".join(f"query {number}: {fidelity:.1%}" for number, fidelity in of.items())
        results.append(at_least(f"{kind} queries", "fidelity", mean(of.values()), bound, listed))
    waits = [row["longest_wait"] for row in rows]
    return [*results, exactly("all queries", "turns between two rounds of a query, most", max(waits), queries)]


EXPERIMENT = Experiment(
    id="om-many",
    title="Ten queries, served round-robin",
    source="om-plan-charts-2005, section 5.4",
    claim="Fidelity of 95% for queries over single streams and of 90% for joins, and no starvation",
    settings=settings,
    measure=measure,
    judge=judge,
)
