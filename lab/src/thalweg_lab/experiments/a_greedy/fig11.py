"""Figure 11: how fast tuples are processed, against the correlation factor: how many filters agree.

Where the factor does not divide the number of filters, the last group is smaller. A filter outside a large group is
worth finding, so the edge lasts almost until all filters are one group.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy import convergence
from thalweg_lab.experiments.a_greedy.convergence import DEFAULTS, draw, measure, rise_and_fall
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Correlation factors, from independent filters to one group of all eight."""
    factors = (1, 2, 4, 6, 8) if quick else range(1, 9)
    return convergence.settings(({"gamma": factor} for factor in factors), quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That the edge rises from no correlation, and falls to correlation of all, in time and filters evaluated."""
    return rise_and_fall(rows, "gamma", (2, DEFAULTS["filters"] - 1))


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy."""
    draw(rows, figure, "gamma", "correlation factor Γ (of 8 filters)")


EXPERIMENT = Experiment(
    id="fig11",
    title="Effect of correlation",
    source="a-greedy-2004, figure 11",
    claim="A-Greedy's edge over Independent grows with the correlation factor, then shrinks as it nears n",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
