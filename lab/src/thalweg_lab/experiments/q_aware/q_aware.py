"""Table 2: Q-Aware chooses the planner by the shape of the join graph, in polynomial time.

The paper gives cyclic graphs to FAB. Here they go to DMJoin while that is affordable and to Sifting, which improves
FAB's orders, beyond; so what the paper claims of FAB is asked of what was chosen instead.
"""

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
    milliseconds,
    of,
    optimal_share,
)
from thalweg_lab.results import Result, at_most, claim, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANNERS = ("q-aware", "fab")
POWER = 3  # O(n³)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """All shapes."""
    return trials.settings(PLANNERS, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """Which planners were chosen, how good their plans are, and how the time grows."""
    results = []
    for shape in ACYCLIC:
        of_shape = of(rows, "q-aware", shape)
        results += [
            exactly(shape, "chosen", _chosen(of_shape), "tree-opt"),
            exactly(shape, "share of optimal plans", optimal_share(of_shape), 1.0),
        ]
    results += [_against_fab(rows, shape) for shape in CYCLIC]
    for name, shapes in (("acyclic", ACYCLIC), ("cyclic", CYCLIC)):
        spent = milliseconds(of(rows, "q-aware", shapes))
        few, most = min(spent), max(spent)
        results.append(
            at_most(
                f"{name}, n = {few}..{most}",
                "growth of the time to plan",
                spent[most] / spent[few],
                round((most / few) ** POWER, 1),
                f"(n/{few})³; {spent[most]:.3g} ms at n = {most}",
            )
        )
    return results


def _chosen(rows: list[Row]) -> str:
    return ", ".join(sorted({row["algorithm"] for row in rows}))


def _against_fab(rows: list[Row], shape: str) -> Result:
    aware, fab = (of(rows, name, shape) for name in PLANNERS)
    fab_ratio = {(row["streams"], row["seed"]): row["ratio"] for row in fab}
    most = max(row["ratio"] / fab_ratio[row["streams"], row["seed"]] for row in aware)
    return claim(
        shape,
        "cost over that of FAB's plan, greatest",
        most,
        "FAB's plan, or a cheaper plan",
        holds=most <= OPTIMAL,
        note=f"chosen: {_chosen(aware)}; {described(aware)}; FAB: {described(fab)}",
    )


def plot(rows: list[Row], figure: "Figure") -> None:
    """Shares of optimal plans and times, and costs for both kinds of cyclic graphs."""
    draw(rows, figure, PLANNERS, boxes=CYCLIC)


EXPERIMENT = Experiment(
    id="q-aware",
    title="Q-Aware over the spectrum of shapes",
    source="q-aware-join-ordering-2009, table 2",
    claim="TreeOpt, optimal, for acyclic joins; FAB, near-optimal, for cyclic joins; in O(n³)",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
