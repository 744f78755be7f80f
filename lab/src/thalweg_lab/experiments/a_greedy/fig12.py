"""Figure 12: how fast all policies process tuples at a high drop-profiling probability, against the filters."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy import convergence
from thalweg_lab.experiments.a_greedy.convergence import draw, edges, listed, measure
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = {"optimal": 1, "a-greedy": 1, "sweep": 1, "local-swaps": 1, "independent": 1}
PROBABILITY = 0.05  # of drop-profiling
LEAST = 0.03  # a share of the rate that counts as a lead, and as the widening of a lead


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Numbers of filters. The twins are for figure 13, which is drawn from the same measurements."""
    numbers = (2, 6, 12) if quick else (2, 3, 4, 6, 8, 10, 12)
    changes = ({"filters": n, "p": PROBABILITY, "policies": POLICIES, "twins": True} for n in numbers)
    return convergence.settings(changes, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That Sweep and LocalSwaps are ahead of A-Greedy for many filters, by more than for few."""
    results = []
    for policy in ("sweep", "local-swaps"):
        lead = edges(rows, "filters", policy, "a-greedy")
        few, many = min(lead), max(lead)
        widening = lead[many].share - lead[few].share
        measured = f"rate, {policy} over a-greedy"
        results += [
            at_least(f"n = {many}", measured, lead[many].share, LEAST, note=listed(lead)),
            at_least(f"n = {few}..{many}", f"{measured}, widening", widening, LEAST),
        ]
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy."""
    draw(rows, figure, "filters", f"number of filters n, at p = {PROBABILITY}")


EXPERIMENT = Experiment(
    id="fig12",
    title="Performance of all policies",
    source="a-greedy-2004, figure 12",
    claim="At p = 0.05 Sweep and LocalSwaps overtake A-Greedy as the number of filters grows",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
