"""Figure 21: the total time with a change every 1,000,000 tuples, against the cost of the expensive filters."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import draw_totals, lead, total, total_settings
from thalweg_lab.experiments.a_greedy.convergence import listed
from thalweg_lab.experiments.a_greedy.fig19 import CLEARLY
from thalweg_lab.experiments.a_greedy.fig20 import COSTS
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 1_000_000


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Costs of the expensive filters."""
    return total_settings([PERIOD], (1, 10, 50) if quick else COSTS, ["a-greedy", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That Sweep gains on A-Greedy as the cost grows, and is ahead where it is high."""
    ahead = lead(rows, "cost", "sweep", "a-greedy")
    low, high = min(ahead), max(ahead)
    growth = ahead[high].share - ahead[low].share
    return [
        at_least(f"cost {high}", "lead of sweep over a-greedy in time", ahead[high].share, 0.0, listed(ahead)),
        at_least(f"cost {high} beside {low}", "growth of that lead", growth, CLEARLY),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Total times over the cost."""
    draw_totals(rows, figure, "cost", "probes of an expensive filter")


EXPERIMENT = Experiment(
    id="fig21",
    title="Varying the filter cost, rare changes",
    source="a-greedy-2004, figure 21",
    claim="With a change every 1,000,000 tuples Sweep gains on A-Greedy as the filter cost, and so the overhead, grows",
    settings=settings,
    measure=total,
    judge=judge,
    plot=plot,
)
