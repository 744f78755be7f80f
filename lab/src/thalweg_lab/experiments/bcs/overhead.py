"""The overhead: reoptimisations, and the time of the adaptive loop, against A-Greedy's."""

from statistics import median
from typing import TYPE_CHECKING

from thalweg_lab.experiments.bcs.contest import ADWIN, ALONE, BCS, MARTINGALE, RIVALS, draw, measure
from thalweg_lab.experiments.bcs.contest import settings as streams
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIOD = 500_000
FEWER = 37.0  # per cent fewer reoptimisations than A-Greedy, at most
TENFOLD = (5.0, 20.0)  # the range that counts as about ten times
LOWER = 1.0  # times A-Greedy's loop: BCS's overhead is said to be lower


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Streams of experiment 1."""
    return streams([PERIOD], 3 if quick else 20)


def ratios(rows: list[Row], policy: str, column: str) -> list[float]:
    """A column of a policy over A-Greedy's, a value a stream."""
    of = {(row["policy"], row["seed"]): row[column] for row in rows}
    return [value / max(of[ALONE, seed], 1e-9) for (name, seed), value in of.items() if name == policy]


def judge(rows: list[Row]) -> list[Result]:
    """That BCS reoptimises less often than A-Greedy and takes less time, and that others take ten times as long."""
    fewer = [100 * (1 - ratio) for ratio in ratios(rows, BCS, "reoptimisations")]
    loops = {name: median(ratios(rows, name, "loop_microseconds")) for name in RIVALS}
    alone = median(row["loop_microseconds"] for row in rows if row["policy"] == ALONE)
    note = f"A-Greedy takes {alone:.2f} microseconds a profile tuple, all compiled; " + ", ".join(
        f"{name} {ratio:.1f} times that" for name, ratio in loops.items()
    )
    why = ". Analysis that rests saves less than watching 120 probabilities and 15 costs takes"
    return [
        at_least(BCS, "per cent fewer reoptimisations, best stream", max(fewer), FEWER, f"median {median(fewer):.0f}"),
        at_most(BCS, "adaptive loop over A-Greedy's", loops[BCS], LOWER, note + why),
        between(MARTINGALE, "adaptive loop over A-Greedy's", loops[MARTINGALE], TENFOLD, note),
        between(ADWIN, "adaptive loop over A-Greedy's", loops[ADWIN], TENFOLD, note),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Reoptimisations and loop times."""
    left, right = figure.subplots(1, 2)
    draw(left, rows, "reoptimisations")
    left.axhline(median(row["reoptimisations"] for row in rows if row["policy"] == ALONE), color="black", label=ALONE)
    left.set_ylabel("reoptimisations")
    left.legend()
    draw(right, rows, "loop_microseconds")
    right.axhline(median(row["loop_microseconds"] for row in rows if row["policy"] == ALONE), color="black")
    right.set_ylabel("adaptive loop, microseconds a profile tuple")
    right.set_ylim(bottom=0)


EXPERIMENT = Experiment(
    id="bcs-overhead",
    title="The overhead of change detection",
    source="bcs-change-detection-2012, section V-B",
    claim="Up to 37% fewer reoptimisations than A-Greedy; martingale and ADWIN2 cost about ten times A-Greedy's loop",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
