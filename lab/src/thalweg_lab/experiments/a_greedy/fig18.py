"""Figure 18: how A-Greedy and Independent get over a change of the selectivities.

That Independent adapts quickly is judged beside Sweep, as in the paper's summary (section 9.1).
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import compared, draw_timeline, mean_of, timeline, timeline_settings
from thalweg_lab.experiments.a_greedy.fig16 import MUCH_FASTER
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORSE = 1.005  # times the other's cost, at least: the cost of an order has no noise


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Different permutations of the selectivities."""
    return timeline_settings(["a-greedy", "independent", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That Independent adapts quickly, to an order that is worse before and after."""
    share, note = compared(rows, "recovery", "independent", "sweep")
    results = [
        at_most("after the change", "tuples to recover, Independent as a share of Sweep's", share, MUCH_FASTER, note)
    ]
    for when in ("before", "after"):
        costs = {name: mean_of(rows, name, f"cost_{when}") for name in ("independent", "a-greedy")}
        ratio = costs["independent"] / costs["a-greedy"]
        note = "mean cost over the greedy order's: " + ", ".join(f"{name} {cost:.3f}" for name, cost in costs.items())
        note += "; by how much Independent errs depends on which selectivities the permutations pair"
        results.append(
            at_least(f"settled, {when} the change", "cost of Independent's order over A-Greedy's", ratio, WORSE, note)
        )
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """The timeline of one permutation."""
    draw_timeline(rows, figure, ["a-greedy", "independent"])


EXPERIMENT = Experiment(
    id="fig18",
    title="Adaptivity of A-Greedy and Independent",
    source="a-greedy-2004, figure 18",
    claim="Independent adapts quickly as well, but its order is worse than A-Greedy's both before and after the change",
    settings=settings,
    measure=timeline,
    judge=judge,
    plot=plot,
)
