"""The worked examples of a-greedy-2004, whose numbers have one right answer.

Works on the paper's own small tables; must not know the policies' windows, or Spark.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thalweg.lab.experiment import Experiment, Row, Setting
from thalweg.results import Result, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Figure 2: which of the filters F1 F2 F3 F4 drop each tuple, and the stream of tuples.
DROPS = {1: "0000", 2: "0010", 3: "0011", 4: "0111", 5: "1101", 6: "1101", 7: "1000"}
STREAM = (1, 2, 1, 4, 7, 2, 5, 4)

# Section 2's probes for three orders of the filters; the last is the optimum.
PAPER_PROBES = {"F1 F2 F3 F4": 20, "F3 F2 F4 F1": 18, "F3 F1 F2 F4": 16}


def probes(drops: NDArray[np.bool_], order: Sequence[int]) -> int:
    """How many filters a stream is tested by: for each tuple, up to and including the first that drops it.

    >>> probes(figure_2_stream(), (2, 0, 1, 3))
    16
    """
    in_order = drops[:, list(order)]
    first = np.where(in_order.any(axis=1), in_order.argmax(axis=1) + 1, len(order))
    return int(first.sum())


def figure_2_stream() -> NDArray[np.bool_]:
    """Figure 2's stream, a row a tuple and a column a filter, true where the filter drops the tuple."""
    return np.array([[bit == "1" for bit in DROPS[kind]] for kind in STREAM])


def settings(_quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Every order of figure 2's four filters."""
    return [{"example": "figure 2", "order": list(order)} for order in permutations(range(4))]


def measure(setting: Setting) -> list[Row]:
    """The probes of one order."""
    order = setting["order"]
    name = " ".join(f"F{position + 1}" for position in order)
    return [{"example": setting["example"], "order": name, "probes": probes(figure_2_stream(), order)}]


def judge(rows: list[Row]) -> list[Result]:
    """The three orders the paper names, and that no order beats its optimum."""
    measured = {row["order"]: row["probes"] for row in rows}
    named = [exactly(order, "probes", measured[order], paper) for order, paper in PAPER_PROBES.items()]
    best = min(measured.values())
    return [*named, exactly("best of all orders", "probes", best, min(PAPER_PROBES.values()))]


def plot(rows: list[Row], figure: "Figure") -> None:
    """A bar for each order, from the cheapest."""
    rows = sorted(rows, key=lambda row: (row["probes"], row["order"]))
    axes = figure.subplots()
    colours = ["tab:orange" if row["order"] in PAPER_PROBES else "tab:blue" for row in rows]
    axes.barh([row["order"] for row in rows], [row["probes"] for row in rows], color=colours)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.set_xlabel("filters evaluated over the stream (orange: the orders the paper names)")


EXPERIMENT = Experiment(
    id="examples",
    title="The worked examples",
    source="a-greedy-2004, figure 2",
    claim="F1 F2 F3 F4 takes 20 probes, F3 F2 F4 F1 takes 18, and the optimum F3 F1 F2 F4 takes 16",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
