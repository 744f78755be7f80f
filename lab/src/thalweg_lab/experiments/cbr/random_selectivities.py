"""Figures 10 and 11: random selectivities, and aggregate selectivities of 5 to 35%.

The time of a stream is that of its operators and of routing. In the paper 2.2 microseconds for a routing decision are
1.75% of the time, so an operator takes about 124; the time of routing and statistics is measured here.
"""

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.cbr.contest import CLASSES, LEARNS, ONE_ORDER, SELECTIVITY
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering.types import Floats

OPERATORS = (2, 4, 6, 8)
AGGREGATES = (5, 15, 25, 35)  # per cent
OF_AGGREGATES = 6  # operators
STREAMS = 50
MICROSECONDS = 2.2 / 0.0175 - 2.2  # of an operator
WORSE = 0.3  # per cent, at most
CONTESTANTS = (SELECTIVITY, LEARNS, ONE_ORDER, CLASSES)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Fifty streams for each number of operators, and for each aggregate selectivity."""
    from thalweg_lab.experiments.cbr.stream import TUPLES

    seeds = range(3 if quick else STREAMS)
    free: list[Setting] = [{"operators": n, "aggregate": None} for n in OPERATORS]
    bound: list[Setting] = [{"operators": OF_AGGREGATES, "aggregate": share} for share in AGGREGATES]
    return [{**setting, "tuples": TUPLES, "seed": seed} for setting in (*free, *bound) for seed in seeds]


def measure(setting: Setting) -> list[Row]:
    """One stream: a row for each router."""
    import numpy as np

    from thalweg.kernels import compile_kernels
    from thalweg_lab.experiments.cbr.contest import contest
    from thalweg_lab.experiments.cbr.stream import Stream

    compile_kernels()
    n, random = setting["operators"], np.random.default_rng(setting["seed"])
    selectivities = random.integers(0, 11, (n, n)) / 10
    if setting["aggregate"] is not None:
        selectivities = scaled(random.uniform(0.05, 1.0, (n, n)), setting["aggregate"] / 100)
    counts = contest(Stream(selectivities, setting["seed"]), setting["tuples"], CONTESTANTS, setting["seed"])
    times = {name: counted.calls * MICROSECONDS + 1e6 * counted.seconds for name, counted in counts.items()}
    return [
        {
            "operators": n,
            "aggregate": setting["aggregate"],
            "seed": setting["seed"],
            "router": name,
            "faster": 100 * (1 - times[name] / times[SELECTIVITY]),
            "calls": counted.calls / counted.tuples,
        }
        for name, counted in counts.items()
    ]


def scaled(selectivities: "Floats", aggregate: float) -> "Floats":
    """Selectivities raised to a power at which all operators together pass the wanted share of the tuples.

    >>> import numpy as np
    >>> scaled(np.array([[0.5, 0.5]]), 0.5).round(3).tolist()
    [[0.707, 0.707]]
    """
    low, high = 0.0, 16.0
    for _ in range(60):
        power = (low + high) / 2
        if (selectivities**power).prod(axis=1).mean() > aggregate:
            low = power
        else:
            high = power
    return selectivities**high


def improvements(rows: list[Row], router: str, column: str) -> dict[int, list[float]]:
    """By how many per cent a router's streams are faster than Selectivity's, by a column."""
    is_bound = column == "aggregate"
    found: dict[int, list[float]] = {}
    for row in rows:
        if row["router"] == router and (row["aggregate"] is not None) == is_bound:
            found.setdefault(row[column], []).append(row["faster"])
    return found


def judge(rows: list[Row]) -> list[Result]:
    """That the gain grows with the number of operators, and that nothing is lost anywhere."""
    by_number, by_share = (improvements(rows, LEARNS, column) for column in ("operators", "aggregate"))
    means = {n: mean(values) for n, values in by_number.items()}
    few, many = min(means), max(means)
    ours = {n: mean(values) for n, values in improvements(rows, CLASSES, "operators").items()}
    listed = ", ".join(f"N = {n} {value:+.1f} (class orders {ours[n]:+.1f})" for n, value in means.items())
    shares = ", ".join(f"{share}% {mean(values):+.1f}" for share, values in by_share.items())
    slowest = min((row for row in rows if row["router"] == LEARNS), key=lambda row: row["faster"])
    own = improvements(rows, CLASSES, "operators") | improvements(rows, CLASSES, "aggregate")
    return [
        claim(
            f"N = {few}..{many}",
            f"per cent less time than Selectivity, growth from N = {few}",
            means[many] - means[few],
            "> 0",
            holds=means[many] > means[few],
            note=listed,
        ),
        claim(
            f"aggregate selectivity {min(by_share)}..{max(by_share)}%",
            "per cent less time, least mean",
            min(mean(values) for values in by_share.values()),
            "> 0",
            holds=min(mean(values) for values in by_share.values()) > 0,
            note=shares,
        ),
        at_most(
            "all streams",
            "per cent more time than Selectivity, worst",
            max(-slowest["faster"], 0.0),
            WORSE,
            f"N = {slowest['operators']}: profiling sends one tuple in eight to an operator that may be the worst",
        ),
        at_most(
            "class orders, all streams",
            "per cent more time than Selectivity, worst",
            max(-min(min(values) for values in own.values()), 0.0),
            WORSE,
            "beyond the paper",
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Boxes over the streams."""
    for axes, column in zip(figure.subplots(1, 2), ("operators", "aggregate"), strict=True):
        found = improvements(rows, LEARNS, column)
        axes.boxplot(list(found.values()), whis=(0, 100))
        axes.set_xticks(range(1, len(found) + 1), [str(value) for value in found])
        axes.set_xlabel("operators" if column == "operators" else "aggregate selectivity, per cent")
        axes.axhline(0, color="black", linewidth=0.8)
    figure.axes[0].set_ylabel("Content-Learns: per cent less time than Selectivity")


EXPERIMENT = Experiment(
    id="cbr-random",
    title="Random selectivities",
    source="content-based-routing-2004, figures 10 and 11",
    claim="The gain grows with the number of operators; never worse than Selectivity by more than 0.3%",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
