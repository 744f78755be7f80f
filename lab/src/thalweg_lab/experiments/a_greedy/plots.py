"""How the figures of a-greedy-2004 look: one colour for each policy, everywhere.

Imports no Matplotlib, since listing experiments imports it; must not know any experiment.
"""

from collections import defaultdict
from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the palette of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS: dict[str, str] = {
    "optimal": "#000000",
    "a-greedy": "#d55e00",
    "sweep": "#0072b2",
    "independent": "#009e73",
    "local-swaps": "#cc79a7",
    "static-greedy": "#e69f00",
    "as-written": "#999999",
    "adjacent-swap": "#56b4e9",
    "marginal-rank": "#b8a800",
}


def line(axes: "Axes", rows: list[Row], x: str, y: str, policy: str) -> None:
    """Draw a policy's line: at each `x` the mean of `y` over the seeds."""
    values: defaultdict[float, list[float]] = defaultdict(list)
    for row in rows:
        if row["policy"] == policy:
            values[row[x]].append(row[y])
    points = sorted(values)
    means = [mean(values[point]) for point in points]
    axes.plot(points, means, marker="o", markersize=4, color=COLOURS[policy], label=policy)
