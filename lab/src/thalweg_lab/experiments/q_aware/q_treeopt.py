"""Figure 7: TreeOpt is optimal for every acyclic graph; on complete graphs, by spanning tree, it is not.

That TreeOpt plans faster than F-Greedy depends on how they are written: here F-Greedy finds the orders of all
streams together, in n steps on arrays, which a comparison of n separate runs does not show.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.q_aware import trials
from thalweg_lab.experiments.q_aware.plots import draw
from thalweg_lab.experiments.q_aware.trials import (
    ACYCLIC,
    described,
    measure,
    milliseconds,
    of,
    optimal_share,
    upper_quartile,
    worst,
)
from thalweg_lab.results import Result, at_least, at_most, between, claim, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANNERS = ("tree-opt", "f-greedy")
RARELY = 0.02  # a share of optimal plans that is as good as none
QUARTILE = (1.5, 4.0)  # about 2.5 in the paper
UNACCEPTABLE = 50.0  # times the optimum, "or worse"


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """All shapes."""
    return trials.settings(PLANNERS, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That plans of acyclic joins are optimal, how plans of complete joins decay, and which planner is faster."""
    results = [
        exactly(shape, "share of optimal plans", optimal_share(of(rows, "tree-opt", shape)), 1.0) for shape in ACYCLIC
    ]
    tree, greedy = (milliseconds(of(rows, name, ACYCLIC)) for name in PLANNERS)
    most = max(tree)
    results.append(
        claim(
            f"acyclic, n = {most}",
            "time to plan, TreeOpt over F-Greedy",
            tree[most] / greedy[most],
            "< 1",
            holds=tree[most] < greedy[most],
            note=f"{tree[most]:.3g} and {greedy[most]:.3g} ms for all orders; F-Greedy here plans all streams at once, "
            f"on arrays",
        )
    )
    complete = of(rows, "tree-opt", "complete")
    largest = [row for row in complete if row["streams"] == most]
    forward = of(rows, "f-greedy", "complete")
    return [
        *results,
        at_most(f"complete, n = {most}", "share of optimal plans", optimal_share(largest), RARELY, described(largest)),
        between("complete", "upper quartile of cost over the optimum's", upper_quartile(complete), QUARTILE),
        at_least(
            "complete", "cost of the worst plan over the optimum's", worst(complete), UNACCEPTABLE, described(complete)
        ),
        claim(
            "complete",
            "share of optimal plans, TreeOpt",
            optimal_share(complete),
            "below F-Greedy's",
            holds=optimal_share(complete) < optimal_share(forward),
            note=f"F-Greedy: {described(forward)}",
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Figure 7, all panels."""
    draw(rows, figure, PLANNERS)


EXPERIMENT = Experiment(
    id="q-treeopt",
    title="TreeOpt against DMJoin and F-Greedy",
    source="q-aware-join-ordering-2009, figure 7",
    claim="TreeOpt is optimal for every acyclic join and plans faster than F-Greedy; on complete joins it decays (50×)",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
