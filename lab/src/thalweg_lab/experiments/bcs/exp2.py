"""Experiment 2: the improvement over A-Greedy against the period of change."""

from statistics import median
from typing import TYPE_CHECKING

from thalweg_lab.experiments.bcs.contest import ADWIN, BCS, COLOURS, MARTINGALE, improvements, measure
from thalweg_lab.experiments.bcs.contest import settings as streams
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIODS = (250_000, 500_000, 1_000_000)
DETECTORS = (BCS, MARTINGALE, ADWIN)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The same changes, more or less often."""
    return streams(PERIODS, 3 if quick else 50)


def judge(rows: list[Row]) -> list[Result]:
    """That the improvement grows with the period."""
    results = []
    for name in DETECTORS:
        medians = [median(improvements(rows, name, period)) for period in PERIODS]
        results.append(
            claim(
                f"{name}, every {PERIODS[0]:,} to {PERIODS[-1]:,} tuples",
                "median improvement at the longest period less that at the shortest, per cent",
                medians[-1] - medians[0],
                "shrinks at 250K and grows at 1000K",
                holds=medians[0] < medians[1] < medians[2],
                note=", ".join(f"{period:,}: {value:.1f}" for period, value in zip(PERIODS, medians, strict=True))
                + "; the sooner a change is found, the less the period matters",
            )
        )
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """Medians, from the worst to the best stream."""
    from matplotlib.ticker import EngFormatter

    axes = figure.subplots()
    for name in DETECTORS:
        of = [improvements(rows, name, period) for period in PERIODS]
        middle = [median(values) for values in of]
        spread = [[m - min(each) for m, each in zip(middle, of, strict=True)]]
        spread.append([max(each) - m for m, each in zip(middle, of, strict=True)])
        axes.errorbar(PERIODS, middle, spread, marker="o", color=COLOURS[name], capsize=3, label=name)
    axes.set_xscale("log")
    axes.set_xticks(PERIODS)
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.minorticks_off()
    axes.set_xlabel("tuples between two changes")
    axes.set_ylabel("fewer filter evaluations than A-Greedy, per cent")
    axes.legend()


EXPERIMENT = Experiment(
    id="bcs-exp2",
    title="The improvement over A-Greedy, by how often probabilities change",
    source="bcs-change-detection-2012, experiment 2, figures 2(b) and 2(c)",
    claim="The improvement shrinks when probabilities change every 250K tuples and grows when every 1000K",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
