"""Figure 20: the total time with a change every 100,000 tuples, against the cost of the expensive filters."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import draw_totals, lead, total, total_settings
from thalweg_lab.experiments.a_greedy.convergence import listed
from thalweg_lab.experiments.a_greedy.fig19 import CLEARLY
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 100_000
COSTS = (1, 10, 50, 100)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Costs of the expensive filters."""
    return total_settings([PERIOD], COSTS, ["a-greedy", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That A-Greedy is ahead of Sweep at every cost, and by more where the cost is high."""
    ahead = lead(rows, "cost", "a-greedy", "sweep")
    low, high = min(ahead), max(ahead)
    least = min(edge.share for edge in ahead.values())
    growth = ahead[high].share - ahead[low].share
    return [
        at_least(f"costs {low} to {high}", "least lead of a-greedy over sweep in time", least, 0.0, listed(ahead)),
        at_least(f"cost {high} beside {low}", "growth of that lead", growth, CLEARLY),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Total times over the cost."""
    draw_totals(rows, figure, "cost", "probes of an expensive filter")


EXPERIMENT = Experiment(
    id="fig20",
    title="Varying the filter cost, frequent changes",
    source="a-greedy-2004, figure 20",
    claim="With a change every 100,000 tuples A-Greedy stays ahead of Sweep, and the gap grows with the filter cost",
    settings=settings,
    measure=total,
    judge=judge,
    plot=plot,
)
