"""Figures 3(b) and 4(a): fidelity against how erratic the streams are, beside random and static plans."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import JOIN, MOST_ERRATIC, OM, RAND, RATE, SINGLE, VARIATIONS, drawn, run
from thalweg_lab.results import Result, at_least, between, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = {SINGLE: 0.76, JOIN: 0.80}  # for the most erratic streams
SMOOTH = {SINGLE: 0.81, JOIN: 0.99}  # for the least erratic streams
CHANCE = {SINGLE: (0.47, 0.53), JOIN: (0.30, 0.37)}  # with 2 and 3 plans


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Both queries, from the most erratic streams to the least."""
    variations = (VARIATIONS[0], VARIATIONS[-1]) if quick else VARIATIONS
    return [
        {"query": query, "variation": variation, "seed": seed}
        for query in (SINGLE, JOIN)
        for variation in variations
        for seed in range(3 if quick else 50)
    ]


def measure(setting: Setting) -> list[Row]:
    """All schedulers on the same rounds."""
    rounds = drawn(setting["query"], setting["variation"], setting["seed"])
    return [
        {**setting, "scheduler": name, "fidelity": run(name, setting["query"], rounds).counts.fidelity}
        for name in (OM, RAND, RATE)
    ]


def fidelity(rows: list[Row], query: str, scheduler: str, variation: float) -> float:
    """The mean fidelity over all streams with the same coefficient of variation."""
    wanted = (query, scheduler, variation)
    return mean(float(row["fidelity"]) for row in rows if (row["query"], row["scheduler"], row["variation"]) == wanted)


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity at both ends, that of random plans, and that static plans are worse everywhere."""
    results = []
    variations = sorted({row["variation"] for row in rows}, reverse=True)
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
    return results


def plot(rows: list[Row], figure: Figure) -> None:
    """A line for each scheduler."""
    for axes, query in zip(figure.subplots(1, 2, sharey=True), (SINGLE, JOIN), strict=True):
        variations = sorted({row["variation"] for row in rows}, reverse=True)
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
