"""Figure 10: how fast tuples are processed, against the selectivity of the filters."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy import convergence
from thalweg_lab.experiments.a_greedy.convergence import draw, measure, rise_and_fall
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERMEDIATE = (0.3, 0.7)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Selectivities of all filters."""
    # From 0.1 and 0.9 outwards independent filters already agree on more than 80% of the tuples.
    selectivities = (0.1, 0.3, 0.5, 0.65, 0.9) if quick else (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    return convergence.settings(({"selectivity": selectivity} for selectivity in selectivities), quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That the edge is greatest in the middle, in time and in filters evaluated."""
    return rise_and_fall(rows, "selectivity", INTERMEDIATE)


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy."""
    draw(rows, figure, "selectivity", "selectivity of each filter (share passed)")


EXPERIMENT = Experiment(
    id="fig10",
    title="Effect of selectivity",
    source="a-greedy-2004, figure 10",
    claim="A-Greedy's edge over Independent is greatest at intermediate selectivity",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
