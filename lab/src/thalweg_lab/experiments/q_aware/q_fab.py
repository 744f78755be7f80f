"""Figures 9 and 10: FAB is optimal more often than F-Greedy, and never far off."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.q_aware import trials
from thalweg_lab.experiments.q_aware.plots import draw
from thalweg_lab.experiments.q_aware.trials import (
    ACYCLIC,
    CYCLIC,
    OPTIMAL,
    described,
    measure,
    of,
    optimal_share,
    upper_quartile,
    worst,
)
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANNERS = ("fab", "f-greedy")
BOUNDS = {"linear": 1.25, "star": 1.25, "acyclic": 1.25, "complete": 2.0}  # times the optimum


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """All shapes."""
    return trials.settings(PLANNERS, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """How often FAB and F-Greedy are optimal, and how bad FAB's worst plans are."""
    results = []
    for shape in (*ACYCLIC, *CYCLIC):
        fab, forward = (optimal_share(of(rows, name, shape)) for name in PLANNERS)
        results.append(
            claim(
                shape,
                "share of optimal plans",
                fab,
                "above F-Greedy's" if forward < 1.0 else "as F-Greedy's",
                holds=fab > forward or fab == 1.0,
                note=f"F-Greedy: {forward:.1%}",
            )
        )
    results += [
        at_most(
            shape,
            "cost of the worst plan over the optimum's",
            worst(of(rows, "fab", shape)),
            bound,
            _described(of(rows, "fab", shape), bound),
        )
        for shape, bound in BOUNDS.items()
    ]
    return [
        *results,
        at_most(
            "acyclic",
            "upper quartile of cost over the optimum's",
            upper_quartile(of(rows, "fab", ACYCLIC)),
            OPTIMAL,
            "optimal in the paper",
        ),
    ]


def _described(rows: list[Row], bound: float) -> str:
    above = sum(row["ratio"] > bound for row in rows)
    rare = f"{above:,} of {len(rows):,} plans cost more; the paper does not say how selectivities are drawn; "
    return f"{rare if above else ''}{described(rows)}"


def plot(rows: list[Row], figure: "Figure") -> None:
    """Figures 9 and 10."""
    draw(rows, figure, PLANNERS)


EXPERIMENT = Experiment(
    id="q-fab",
    title="FAB against DMJoin and F-Greedy",
    source="q-aware-join-ordering-2009, figures 9 and 10",
    claim="FAB is more often optimal than F-Greedy; its plans cost at most 1.25× the optimum for acyclic joins, 2× for "
    "complete joins",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
