"""How the figures of q-aware-join-ordering-2009 look: shares of optimal plans, planning times, and box plots of costs.

Imports no Matplotlib, since listing experiments imports it; must not know any experiment.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Row
from thalweg_lab.experiments.q_aware.trials import ACYCLIC, CYCLIC, milliseconds, of, optimal_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS: dict[str, str] = {
    "linear": "#009e73",
    "star": "#e69f00",
    "acyclic": "#0072b2",
    "cyclic": "#cc79a7",
    "complete": "#d55e00",
}
DASHES = ("-", "--", ":")
FEW = 10  # times the least: a logarithmic axis that spans no more needs labels between powers of ten
WHISKERS = (0, 100)  # per cent: as in the paper, whiskers reach the best and the worst plan


def draw(
    rows: list[Row], figure: "Figure", planners: Sequence[str], boxes: Sequence[str] = ("acyclic", "complete")
) -> None:
    """Four panels: how often plans are optimal, how long planning takes, and the costs of the first planner's plans."""
    shares, times, *costs = figure.subplots(2, 2).flat
    for planner, dash in zip(planners, DASHES, strict=False):
        for shape in (*ACYCLIC, *CYCLIC):
            chosen = of(rows, planner, shape)
            numbers = sorted({row["streams"] for row in chosen})
            share = [100 * optimal_share([row for row in chosen if row["streams"] == n]) for n in numbers]
            spent = milliseconds(chosen)
            label = f"{planner}, {shape}" if len(planners) > 1 else shape
            shares.plot(numbers, share, dash, color=COLOURS[shape], label=label)
            times.plot(list(spent), list(spent.values()), dash, color=COLOURS[shape])
    shares.set_ylabel("optimal plans (%)")
    shares.legend(fontsize=5, ncols=len(planners))
    times.set_ylabel("time to plan (ms)")
    _logarithmic(times)
    for axes in (shares, times):
        axes.set_xlabel("number of streams")
    for axes, shape in zip(costs, boxes, strict=True):
        _boxes(axes, of(rows, planners[0], shape))
        axes.set_title(f"{planners[0]}, {shape}", fontsize=8)


def _boxes(axes: "Axes", rows: list[Row]) -> None:
    numbers = sorted({row["streams"] for row in rows})
    ratios = [[row["ratio"] for row in rows if row["streams"] == n] for n in numbers]
    axes.boxplot(ratios, positions=numbers, widths=0.6, whis=WHISKERS, manage_ticks=False)
    axes.set_xlabel("number of streams")
    axes.set_ylabel("cost over optimum")
    _logarithmic(axes)


def _logarithmic(axes: "Axes") -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}" if axes.get_ylim()[1] < FEW * axes.get_ylim()[0] else "")
    axes.tick_params(axis="y", which="both", labelsize=7)
