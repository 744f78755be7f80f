"""Figures 7 and 8: whether the right classifier is learnt among decoys, with random correlation.

Decoys are a constant, a sequence number and a random foreign key for each operator. Each operator has a random
selectivity in each class, so that all pass 0.5^N of the tuples on average, as section 7.5 says of these streams. The
paper's "random amounts of correlation" can be read otherwise: with only a random share of each operator's selectivity
depending on the class, tried first, savings were about half (11, 17 and 10% on three streams each).
"""

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.cbr.contest import CLASSES, CONTESTANTS, KNOWS, LEARNS, draw
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEWER = {4: 20.0, 6: 28.0, 8: 33.0}  # per cent fewer calls than Selectivity, by number of operators
WRONG = 1.2  # per cent of the calls that use a wrong classifier, at most
CLOSE = 10.0  # per cent more calls than Content-Knows that count as about equal
RIGHT = 98.0  # per cent of the calls with class orders that use the right classifier, of the calls that use any
STREAMS = 50


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Fifty streams for each number of operators."""
    from thalweg_lab.experiments.cbr.stream import TUPLES

    return [{"operators": n, "tuples": TUPLES, "seed": seed} for n in FEWER for seed in range(6 if quick else STREAMS)]


def measure(setting: Setting) -> list[Row]:
    """One stream: a row for each router."""
    import numpy as np

    from thalweg_lab.experiments.cbr.contest import contest, rows_of
    from thalweg_lab.experiments.cbr.stream import Stream

    n = setting["operators"]
    selectivities = np.random.default_rng(setting["seed"]).random((n, n))
    counts = contest(Stream(selectivities, setting["seed"]), setting["tuples"], CONTESTANTS, setting["seed"])
    return rows_of(counts, operators=n, seed=setting["seed"])


def judge(rows: list[Row]) -> list[Result]:
    """Fewer calls, few of them with a wrong classifier, and not many more than Content-Knows."""

    def of(router: str, column: str, operators: int | None = None) -> list[float]:
        return [row[column] for row in rows if row["router"] == router and operators in {None, row["operators"]}]

    results = []
    for n, about in FEWER.items():
        best = mean(of(CLASSES, "fewer", n))
        note = (
            f"{mean(of(LEARNS, 'late_fewer', n)):.1f} in the second half, when all is learnt; "
            f"Content-Knows {mean(of(KNOWS, 'fewer', n)):.1f}, class orders {best:.1f}"
        )
        results.append(
            at_least(f"{n} operators", "per cent fewer calls, mean", mean(of(LEARNS, "fewer", n)), about, note)
        )
    behind, late = (
        mean(100 * (learns / knows - 1) for learns, knows in zip(of(LEARNS, when), of(KNOWS, when), strict=True))
        for when in ("calls", "late_calls")
    )
    right, wrong = sum(of(CLASSES, "right")), sum(of(CLASSES, "wrong"))
    used = f"right {mean(of(LEARNS, 'right')):.1f}, none for the rest"
    return [
        *results,
        at_most("all", "per cent of calls with a wrong classifier", mean(of(LEARNS, "wrong")), WRONG, used),
        at_most("all", "per cent more calls than Content-Knows, mean", behind, CLOSE, f"{late:.1f} in the second half"),
        at_least(
            "class orders",
            "per cent of the calls by classes that use the right classifier",
            100 * right / max(right + wrong, 1e-9),
            RIGHT,
            f"beyond the paper; classes are used for {mean(of(CLASSES, 'right')):.0f}% of all calls, learning included",
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Which classifiers are used, and their saving."""
    left, right = figure.subplots(1, 2)
    numbers = sorted({row["operators"] for row in rows})
    own = [row for row in rows if row["router"] == LEARNS]
    below = [0.0] * len(numbers)
    for column, colour in (("right", "#009e73"), ("wrong", "#d55e00")):
        shares = [mean(row[column] for row in own if row["operators"] == n) for n in numbers]
        left.bar([str(n) for n in numbers], shares, bottom=below, color=colour, label=f"{column} classifier")
        below = [height + share for height, share in zip(below, shares, strict=True)]
    left.set_ylabel("per cent of Content-Learns' calls")
    left.set_xlabel("operators")
    left.legend()
    draw(right, rows, "operators", "fewer")
    right.set_ylabel("per cent fewer calls than Selectivity")
    right.legend(fontsize=7)


EXPERIMENT = Experiment(
    id="cbr-quality",
    title="The right classifier among decoys",
    source="content-based-routing-2004, figures 7 and 8",
    claim="20, 28 and 33% fewer calls for 4, 6 and 8 operators; a wrong classifier for at most 1.2% of the calls; "
    "Content-Learns about as good as Content-Knows",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
