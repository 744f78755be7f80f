"""Figures 3(c) and 4(b): fidelity against the number of parts of each dimension, the paper's k, and decisions made."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import (
    JOIN,
    MOST_ERRATIC,
    OM,
    ROUNDS,
    SINGLE,
    SINGLE_RATE,
    drawn,
    run,
)
from thalweg_lab.results import Result, at_least, at_most, claim, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = {SINGLE: (2, 5, 10, 20, 40, 60), JOIN: (2, 4, 6, 8, 10)}
SATURATED = {SINGLE: (40, 60), JOIN: (8, 10)}  # from the first to the second, fidelity hardly changes
FIDELITY = {10: 0.80, 40: 0.95}  # single streams, by k
NEGLIGIBLE = 0.02
BATCHED_EDDY = 1_500  # decisions, from the paper


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Both queries, on the most erratic streams."""
    return [
        {"query": query, "parts": parts, "seed": seed}
        for query, every in PARTS.items()
        for parts in every
        for seed in range(2 if quick else 50)
    ]


def measure(setting: Setting) -> list[Row]:
    """One run, and its bounds.

    The chart's own share of hits is that for estimates which are always right. The ceiling is the share of hits of a
    scheduler that knows the means of a round ahead, but not which tuples arrive by chance.
    """
    rounds = drawn(setting["query"], MOST_ERRATIC, setting["seed"])
    done = run(OM, setting["query"], rounds, setting["parts"])
    counts = done.counts
    return [
        {
            **setting,
            "fidelity": counts.fidelity,
            "chart_fidelity": done.chart_hits / (counts.rounds - 1),
            "ceiling": done.ceiling_hits / (counts.rounds - 1),
            "decisions": counts.decisions,
        }
    ]


def mean_of(rows: list[Row], query: str, parts: int, key: str = "fidelity") -> float:
    """The mean over all streams."""
    return mean(float(row[key]) for row in rows if (row["query"], row["parts"]) == (query, parts))


def _ceiling(rows: list[Row], query: str) -> float:
    return mean(float(row["ceiling"]) for row in rows if row["query"] == query)


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity for few and for many parts, where it saturates, and how many decisions there are."""
    results = []
    for query, every in PARTS.items():
        listed = ", ".join(
            f"k = {parts}: {mean_of(rows, query, parts):.1%} "
            f"(with right estimates {mean_of(rows, query, parts, 'chart_fidelity'):.1%})"
            for parts in every
        )
        listed += f"; the best plan for a round's true means is the best for its counts in {_ceiling(rows, query):.1%}"
        if query == SINGLE:
            results += [
                at_least(f"{query}, k = {parts}", "fidelity", mean_of(rows, query, parts), bound, listed)
                for parts, bound in FIDELITY.items()
            ]
        first, last = (mean_of(rows, query, parts) for parts in (every[0], every[-1]))
        near, far = (mean_of(rows, query, parts) for parts in SATURATED[query])
        start, end = SATURATED[query]
        results += [
            claim(
                query, "fidelity gained by more parts", last - first, "rises with k", holds=last > first, note=listed
            ),
            at_most(f"{query}, k = {start} to {end}", "change of fidelity", abs(far - near), NEGLIGIBLE),
        ]
    decisions = mean(row["decisions"] for row in rows)
    eddies = f"an Eddy makes {SINGLE_RATE * ROUNDS:,.0f}, one for each tuple; a batched Eddy {BATCHED_EDDY:,}"
    return [*results, exactly("600 rounds", "decisions", round(decisions), ROUNDS, eddies)]


def plot(rows: list[Row], figure: Figure) -> None:
    """Fidelity, and that of the chart with right estimates."""
    for axes, (query, every) in zip(figure.subplots(1, 2, sharey=True), PARTS.items(), strict=True):
        for key, label in (("fidelity", "fidelity"), ("chart_fidelity", "with right estimates")):
            axes.plot(every, [100 * mean_of(rows, query, parts, key) for parts in every], "o-", label=label)
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
