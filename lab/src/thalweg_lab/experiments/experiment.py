"""The description of an experiment: its settings, its measurement, its plot, and how a paper's claim is judged.

Knows nothing of Spark, files or the console, and imports nothing heavy: listing experiments imports them all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg_lab.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Setting = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One figure, table or example of a paper.

    `settings(quick)` lists the settings to measure; a quick list is small enough for a test. `measure(setting)` runs
    on a Spark worker, so it must be a module's top-level function, take and return plain values, and import heavy
    modules (Numba, the engine) in its body. Its rows are flat and repeat the parts of the setting that readers need.
    `judge(rows)` sets the paper's claim beside the measurement; its scenarios need not name the experiment.
    `plot(rows, figure)` draws on an empty figure, starting with `axes = figure.subplots()`.
    """

    id: str
    title: str
    source: str
    claim: str
    settings: Callable[[bool], list[Setting]]
    measure: Callable[[Setting], list[Row]]
    judge: Callable[[list[Row]], list[Result]]
    plot: "Callable[[list[Row], Figure], None] | None" = None
