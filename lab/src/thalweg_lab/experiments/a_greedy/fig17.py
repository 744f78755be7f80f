"""Figure 17: how A-Greedy and LocalSwaps get over a change of the selectivities.

A cost changes smoothly if it changes often by little instead of seldom by much; the measure is the mean step by
which the order's cost changes when it does. The largest step would tell little: it is taken when the best filter
comes to the front, by any policy. Sweep is measured too, since LocalSwaps is to be smoother than Sweep.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import draw_timeline, mean_of, timeline, timeline_settings
from thalweg_lab.experiments.a_greedy.fig16 import recovers_faster
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOOTHER = 0.8  # of the other's mean step, at most


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Different permutations of the selectivities."""
    return timeline_settings(["a-greedy", "local-swaps", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That A-Greedy recovers much faster, and that LocalSwaps recovers more smoothly than Sweep."""
    steps = {name: mean_of(rows, name, "mean_step") for name in ("local-swaps", "sweep")}
    counts = {name: mean_of(rows, name, "steps") for name in steps}
    note = ", ".join(f"{name} {counts[name]:.0f} steps of {step:.1%}" for name, step in steps.items())
    share = steps["local-swaps"] / steps["sweep"] if steps["sweep"] else float("inf")
    return [
        *recovers_faster(rows, "local-swaps"),
        at_most("after the change", "mean step of LocalSwaps, as a share of Sweep's", share, SMOOTHER, note),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """The timeline of one permutation."""
    draw_timeline(rows, figure, ["a-greedy", "local-swaps"])


EXPERIMENT = Experiment(
    id="fig17",
    title="Adaptivity of A-Greedy and LocalSwaps",
    source="a-greedy-2004, figure 17",
    claim="A-Greedy converges much faster than LocalSwaps, whose cost changes more smoothly than Sweep's",
    settings=settings,
    measure=timeline,
    judge=judge,
    plot=plot,
)
