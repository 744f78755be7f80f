"""Figures 3(b) and 4(a): fidelity by how erratic streams are, beside random and static plans; also for flights."""

from __future__ import annotations

from statistics import mean, pstdev
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import (
    FLIGHT_PARTS,
    FLIGHTS,
    GENERATED,
    JOIN,
    MOST_ERRATIC,
    OM,
    RAND,
    RATE,
    SINGLE,
    VARIATIONS,
    drawn,
    flown,
    plan_costs,
    run,
)
from thalweg_lab.results import Result, at_least, between, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = {SINGLE: 0.76, JOIN: 0.80}  # for the most erratic streams
SMOOTH = {SINGLE: 0.81, JOIN: 0.99}  # for the least erratic streams
CHANCE = {SINGLE: (0.47, 0.53), JOIN: (0.30, 0.37)}  # with 2 and 3 plans


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Both queries, from the most erratic streams to the least, and parts of the year of flights."""
    variations = (VARIATIONS[0], VARIATIONS[-1]) if quick else VARIATIONS
    generated = [
        {"data": GENERATED, "query": query, "variation": variation, "seed": seed}
        for query in (SINGLE, JOIN)
        for variation in variations
        for seed in range(3 if quick else 50)
    ]
    parts = range(1 if quick else FLIGHT_PARTS)
    return generated + [{"data": FLIGHTS, "query": query, "seed": part} for query in (SINGLE, JOIN) for part in parts]


def measure(setting: Setting) -> list[Row]:
    """All schedulers on the same rounds; the variation of flights is that of the rate of departures."""
    data, query, seed = setting["data"], setting["query"], setting["seed"]
    if data == GENERATED:
        rounds = [each.observed for each in drawn(query, setting["variation"], seed)]
        variation = setting["variation"]
    else:
        rounds = flown(query, seed)
        rates = [float(each.rates["departures"]) for each in rounds]
        variation = pstdev(rates) / mean(rates)
    costs = plan_costs(query, data)
    runs = {name: run(name, costs, rounds) for name in (OM, RAND, RATE)}
    return [
        {
            **setting,
            "variation": variation,
            "scheduler": name,
            "fidelity": done.counts.fidelity,
            "repeated": done.repeated_fidelity,
        }
        for name, done in runs.items()
    ]


def fidelity(rows: list[Row], query: str, scheduler: str, variation: float) -> float:
    """The mean fidelity over all generated streams with the same coefficient of variation."""
    wanted = (GENERATED, query, scheduler, variation)
    return mean(
        float(row["fidelity"])
        for row in rows
        if (row["data"], row["query"], row["scheduler"], row["variation"]) == wanted
    )


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity at both ends, that of random plans, and that static plans are worse everywhere."""
    results = []
    variations = _variations(rows)
    for query in (SINGLE, JOIN):
        of = {name: [fidelity(rows, query, name, each) for each in variations] for name in (OM, RAND, RATE)}
        listed = ", ".join(
            f"{variation:g}: {chart:.1%} (static {static:.1%})"
            for variation, chart, static in zip(variations, of[OM], of[RATE], strict=True)
        )
        results += [
            at_least(f"{query}, most erratic", "fidelity", of[OM][0], LEAST[query], listed),
            at_least(f"{query}, least erratic", "fidelity", of[OM][-1], SMOOTH[query], listed),
            between(query, "fidelity of random plans", mean(of[RAND]), CHANCE[query]),
            claim(
                query,
                "fidelity above that of the static plan, least",
                min(chart - static for chart, static in zip(of[OM], of[RATE], strict=True)),
                "the static plan is worse everywhere",
                holds=all(chart > static for chart, static in zip(of[OM], of[RATE], strict=True)),
            ),
        ]
    return results + [result for query in (SINGLE, JOIN) for result in _judge_flights(rows, query)]


def _variations(rows: list[Row]) -> list[float]:
    """The coefficients of variation of generated streams, the most erratic first."""
    return sorted({row["variation"] for row in rows if row["data"] == GENERATED}, reverse=True)


def _judge_flights(rows: list[Row], query: str) -> list[Result]:
    """What holds for flights, which are more erratic than the paper's streams."""
    own = [row for row in rows if (row["data"], row["query"]) == (FLIGHTS, query)]
    of = {name: mean(row["fidelity"] for row in own if row["scheduler"] == name) for name in (OM, RAND, RATE)}
    variation, repeated = (mean(row[key] for row in own) for key in ("variation", "repeated"))
    note = (
        f"late departures with a coefficient of variation of {variation:.2f}; random plans {of[RAND]:.1%}, static "
        f"plans {of[RATE]:.1%}; the best plan of the hour before is the best again in {repeated:.1%}"
    )
    return [
        at_least(f"{query}, flights", "fidelity", of[OM], LEAST[query], note),
        claim(
            f"{query}, flights",
            "fidelity above that of the static plan",
            of[OM] - of[RATE],
            "the static plan is worse",
            holds=of[OM] > of[RATE],
            note=note,
        ),
    ]


def plot(rows: list[Row], figure: Figure) -> None:
    """A line for each scheduler."""
    for axes, query in zip(figure.subplots(1, 2, sharey=True), (SINGLE, JOIN), strict=True):
        variations = _variations(rows)
        for name in (OM, RAND, RATE):
            axes.plot(variations, [100 * fidelity(rows, query, name, each) for each in variations], "o-", label=name)
        axes.set_xlim(MOST_ERRATIC + 0.01, min(variations) - 0.01)
        axes.set_xlabel(f"coefficient of variation, {query}")
        axes.set_ylabel("fidelity, per cent")
        axes.legend()


EXPERIMENT = Experiment(
    id="om-erratic",
    title="Fidelity by how erratic the streams are",
    source="om-plan-charts-2005, figures 3(b) and 4(a)",
    claim="76 to 81% for a single stream and 80 to 99% for a join; random plans 50% and 33%; a static plan is worse",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
