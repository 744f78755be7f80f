"""Figure 4: how good F-Greedy's plans are, by shape, and how long the optimal plans take to find.

F-Greedy is optimal for stars: every order of the outer streams is allowed, and the least growth first is best. It
is not for linear graphs, against the paper: an order that begins inside the path goes on in two directions, and
greed takes the end that grows less now, and does not look behind it. Only for the two streams at the ends of the path,
from where there is just one order, there is nothing to choose.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.q_aware import trials
from thalweg_lab.experiments.q_aware.plots import draw
from thalweg_lab.experiments.q_aware.trials import CYCLIC, described, measure, milliseconds, of, optimal_share, worst
from thalweg_lab.results import Result, at_least, between, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANNERS = ("f-greedy", "dmjoin")
DOUBLING = 1.4  # times as long for one more stream, at least; twice, once nothing else takes time


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """All shapes."""
    return trials.settings(PLANNERS, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """Where F-Greedy is optimal, how bad it gets elsewhere, and how DMJoin's time grows."""
    results = []
    for shape in ("linear", "star"):
        chosen = of(rows, "f-greedy", shape)
        note = described(chosen)
        if shape == "linear":
            note += "; inside a path greed chooses between two directions by the next stream alone"
        results.append(exactly(shape, "share of optimal plans", optimal_share(chosen), 1.0, note))
    for shape, about in (("acyclic", 5.0), ("complete", 15.0)):
        chosen = of(rows, "f-greedy", shape)
        note = f"about {about:g} in the paper, which does not say how selectivities are drawn; {described(chosen)}"
        results.append(
            between(shape, "cost of the worst plan over the optimum's", worst(chosen), (about / 2, about * 2), note)
        )
    spent = milliseconds(of(rows, "dmjoin", CYCLIC))
    *_, before, last = spent
    growth = (spent[last] / spent[before]) ** (1 / (last - before))
    note = ", ".join(f"{each:.3g} ms at n = {n}" for n, each in spent.items())
    return [
        *results,
        at_least(f"n = {before}..{last}", "DMJoin's time, growth by one more stream", growth, DOUBLING, note),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Figure 4, all panels."""
    draw(rows, figure, PLANNERS)


EXPERIMENT = Experiment(
    id="q-fgreedy",
    title="F-Greedy against DMJoin",
    source="q-aware-join-ordering-2009, figure 4",
    claim="F-Greedy is optimal for linear and star joins, not for other acyclic (up to 5×) and complete joins (up to "
    "15×); DMJoin's time is exponential",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
