"""Figures 3(c) and 4(b): fidelity by the number of parts of each dimension, the paper's k; also for real flights.

Each run is measured twice: planned by estimates from the rounds before, as in the paper, and planned when the round's
tuples have been counted, as in a session.
"""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import (
    FLIGHT_PARTS,
    FLIGHTS,
    GENERATED,
    JOIN,
    MOST_ERRATIC,
    OM,
    ROUNDS,
    SINGLE,
    SINGLE_RATE,
    drawn,
    flown,
    plan_costs,
    run,
)
from thalweg_lab.results import Result, at_least, at_most, claim, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {SINGLE: (2, 5, 10, 20, 40, 60), JOIN: (2, 4, 6, 8, 10)}
SATURATED = {SINGLE: (40, 60), JOIN: (8, 10)}  # from the first to the second, fidelity hardly changes
FIDELITY = {SINGLE: {10: 0.80, 40: 0.95}, JOIN: {10: 0.80}}  # by k
NEGLIGIBLE = 0.02
BATCHED_EDDY = 1_500  # decisions, from the paper


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Both queries, on the most erratic streams and on parts of the year of flights."""
    streams = {GENERATED: 2 if quick else 50, FLIGHTS: 1 if quick else FLIGHT_PARTS}
    return [
        {"data": data, "query": query, "parts": parts, "seed": seed}
        for data, count in streams.items()
        for query, every in PARTS.items()
        for parts in every
        for seed in range(count)
    ]


def measure(setting: Setting) -> list[Row]:
    """One run, and its bounds.

    The ceiling is the share of hits of a scheduler that knows the means of a round ahead, but not which tuples arrive
    by chance; of real flights nobody knows these means, and the share of hits of a scheduler that takes the best plan
    of the round before is its stand-in.
    """
    data, query = setting["data"], setting["query"]
    costs = plan_costs(query, data)
    rounds = drawn(query, MOST_ERRATIC, setting["seed"]) if data == GENERATED else []
    observed = [each.observed for each in rounds] or flown(query, setting["seed"])
    done, counted = (run(OM, costs, observed, setting["parts"], counted=is_counted) for is_counted in (False, True))
    if rounds:
        ceiling = mean(costs.is_best(costs.best(each.means), each.observed) for each in rounds)
    else:
        ceiling = done.repeated_fidelity
    return [
        {
            **setting,
            "fidelity": done.counts.fidelity,
            "counted": counted.counts.fidelity,
            "ceiling": ceiling,
            "decisions": done.counts.decisions,
        }
    ]


def mean_of(rows: list[Row], query: str, parts: int, key: str = "fidelity") -> float:
    """The mean over all streams."""
    return mean(float(row[key]) for row in rows if (row["query"], row["parts"]) == (query, parts))


def _listed(rows: list[Row], query: str, ceiling: str) -> str:
    """The fidelity for each number of parts, and a sentence about the ceiling."""
    listed = ", ".join(
        f"k = {parts}: {mean_of(rows, query, parts):.1%} (counted {mean_of(rows, query, parts, 'counted'):.1%})"
        for parts in PARTS[query]
    )
    return f"{listed}; {ceiling} {mean(float(row['ceiling']) for row in rows if row['query'] == query):.1%}"


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity for few and for many parts, where it saturates, and how many decisions there are."""
    generated = [row for row in rows if row["data"] == GENERATED]
    results = []
    for query, every in PARTS.items():
        listed = _listed(generated, query, "the best plan for a round's true means is the best for its counts in")
        results += _judge_parts(generated, query, listed)
        first, last = (mean_of(generated, query, parts) for parts in (every[0], every[-1]))
        near, far = (mean_of(generated, query, parts) for parts in SATURATED[query])
        start, end = SATURATED[query]
        results += [
            claim(
                query, "fidelity gained by more parts", last - first, "rises with k", holds=last > first, note=listed
            ),
            at_most(f"{query}, k = {start} to {end}", "change of fidelity", abs(far - near), NEGLIGIBLE),
        ]
    decisions = mean(row["decisions"] for row in generated)
    eddies = f"an Eddy makes {SINGLE_RATE * ROUNDS:,.0f}, one for each tuple; a batched Eddy {BATCHED_EDDY:,}"
    flights = [row for row in rows if row["data"] == FLIGHTS]
    return [
        *results,
        exactly("600 rounds", "decisions", round(decisions), ROUNDS, eddies),
        *(
            result
            for query in PARTS
            for result in _judge_parts(
                flights,
                query,
                _listed(flights, query, "the best plan of the hour before is the best again in")
                + ": most of the misses come from hours unlike the hours before, and not from coarse charts",
                ", flights",
            )
        ),
    ]


def _judge_parts(rows: list[Row], query: str, note: str, data: str = "") -> list[Result]:
    """Fidelity for the numbers of parts that have a bound."""
    return [
        at_least(f"{query}{data}, k = {parts}", measure, mean_of(rows, query, parts, key), bound, note)
        for parts, bound in FIDELITY[query].items()
        for measure, key in (("fidelity", "fidelity"), ("fidelity, rounds planned when counted", "counted"))
    ]


def plot(rows: list[Row], figure: Figure) -> None:
    """Fidelity, by estimates and by counts."""
    generated = [row for row in rows if row["data"] == GENERATED]
    for axes, (query, every) in zip(figure.subplots(1, 2, sharey=True), PARTS.items(), strict=True):
        for key, label in (("fidelity", "by estimates"), ("counted", "by counts")):
            axes.plot(every, [100 * mean_of(generated, query, parts, key) for parts in every], "o-", label=label)
        axes.set_xlabel(f"k, {query}")
        axes.set_ylabel("fidelity, per cent")
        axes.legend()


EXPERIMENT = Experiment(
    id="om-granularity",
    title="Fidelity by the number of parts of each dimension",
    source="om-plan-charts-2005, figures 3(c) and 4(b)",
    claim="Fidelity rises with k and saturates, at about 95% from k = 40 on for a single stream; 600 decisions",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
