"""Figure 16: how A-Greedy and Sweep get over a change of the selectivities.

Recovered is an order within 1/alpha of the greedy order's cost: closer orders the policies leave alone by design.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import compared, draw_timeline, timeline, timeline_settings
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MUCH_FASTER = 0.6  # of the other's time to recover, at most
LESS_WASTE = 0.9  # of the other's, at most


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Different permutations of the selectivities."""
    return timeline_settings(["a-greedy", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That A-Greedy recovers much faster."""
    return recovers_faster(rows, "sweep")


def recovers_faster(rows: list[Row], other: str) -> list[Result]:
    """Judge A-Greedy's recovery beside another policy's."""
    results = []
    for column, measure, bound in (
        ("recovery", "tuples to recover", MUCH_FASTER),
        ("wasted", "work beyond the greedy order's, in tuples", LESS_WASTE),
    ):
        share, note = compared(rows, column, "a-greedy", other)
        results.append(at_most("after the change", f"{measure}, as a share of {other}'s", share, bound, note))
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """The timeline of one permutation."""
    draw_timeline(rows, figure, ["a-greedy", "sweep"])


EXPERIMENT = Experiment(
    id="fig16",
    title="Adaptivity of A-Greedy and Sweep",
    source="a-greedy-2004, figure 16",
    claim="After a change A-Greedy converges to the new greedy order much faster than Sweep",
    settings=settings,
    measure=timeline,
    judge=judge,
    plot=plot,
)
