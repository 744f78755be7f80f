"""Figures 5 and 6: routing calls against skew, for 2, 4, 6 and 8 operators (tables 5 and 6)."""

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.cbr.contest import CLASSES, CONTESTANTS, KNOWS, LEARNS, ONE_ORDER, SELECTIVITY, draw
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 65.0  # per cent fewer calls than Selectivity, at most
BELOW, ABOVE = 20.6, 9.3  # per cent fewer, on average where A < B and where A > B
NEAR = 3.0  # percentage points that count as about
WORSE = 0.3  # per cent more calls than Selectivity, at most
CLOSE = 10.0  # per cent more calls than Content-Knows that count as closely following, on average
STREAMS = 5  # for each cell of the table: with one stream, chance alone showed 0.36% more calls without skew
JOINT = 60.0  # per cent fewer evaluations than one order, at the greatest skew and 8 operators


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """All of table 6."""
    from thalweg_lab.experiments.cbr.stream import TUPLES, A, B

    chosen = (0, 1, 4, 9) if quick else range(len(A))
    return [
        {"operators": n, "a": A[at], "b": B[n][at], "tuples": TUPLES, "seed": 1000 * n + 10 * at + seed}
        for n in ((2, 8) if quick else (2, 4, 6, 8))
        for at in chosen
        for seed in range(1 if quick else STREAMS)
    ]


def measure(setting: Setting) -> list[Row]:
    """One cell of table 6: a row for each router."""
    from thalweg_lab.experiments.cbr.contest import contest, rows_of
    from thalweg_lab.experiments.cbr.stream import Stream, diagonal

    stream = Stream(diagonal(setting["operators"], setting["a"] / 100, setting["b"] / 100), setting["seed"])
    counts = contest(stream, setting["tuples"], CONTESTANTS, setting["seed"])
    return rows_of(counts, operators=setting["operators"], a=setting["a"], b=setting["b"])


def averaged(rows: list[Row]) -> dict[tuple[str, int, int], dict[str, float]]:
    """The measurements of each router in each cell of the table, averaged over the streams."""
    found: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["router"], row["operators"], row["a"]), []).append(row)
    columns = ("calls", "fewer", "late_calls", "late_fewer")
    return {key: {name: mean(row[name] for row in own) for name in columns} for key, own in found.items()}


def judge(rows: list[Row]) -> list[Result]:
    """The greatest and the mean savings, and how closely Content-Learns follows Content-Knows."""
    of = averaged(rows)
    cells = sorted({(row["operators"], row["a"], row["b"]) for row in rows})
    fewer = {(n, a, b): of[LEARNS, n, a]["fewer"] for n, a, b in cells}
    best = max(fewer, key=lambda cell: fewer[cell])
    behind = {
        when: mean(100 * (of[LEARNS, n, a][when] / of[KNOWS, n, a][when] - 1) for n, a, _ in cells)
        for when in ("calls", "late_calls")
    }
    most = max(n for n, _, _ in cells)
    one_order, classes = (of[name, most, 5]["calls"] for name in (ONE_ORDER, CLASSES))
    table = "; ".join(
        f"N = {n}: " + ", ".join(f"{a}/{b} {fewer[m, a, b]:+.0f}" for m, a, b in cells if m == n)
        for n in sorted({n for n, _, _ in cells})
    )
    learns = (
        f"{of[LEARNS, best[0], best[1]]['late_fewer']:.1f} in the second half of the stream; until then profiles take "
        f"4000 tuples an operator, a third of 100,000 for eight, and classes are told apart one by one"
    )
    greedy = (
        "Content-Learns goes to the best operator, Selectivity draws lots: where A > B, calls are saved by that too, "
        "not only by classes"
    )
    return [
        at_least(f"N = {best[0]}, A/B = {best[1]}/{best[2]}", "per cent fewer calls, most", fewer[best], MOST, learns),
        at_least(
            "A < B",
            "per cent fewer calls, mean",
            mean(value for (_, a, b), value in fewer.items() if a < b),
            BELOW - NEAR,
            f"the paper: 20.6; {table}",
        ),
        at_least(
            "A > B",
            "per cent fewer calls, mean",
            mean(value for (_, a, b), value in fewer.items() if a > b),
            ABOVE - NEAR,
            f"the paper: 9.3; {greedy}",
        ),
        at_most("all", "per cent more calls than Selectivity, most", max(-value for value in fewer.values()), WORSE),
        at_most(
            "all",
            "per cent more calls than Content-Knows, mean",
            behind["calls"],
            CLOSE,
            f"{behind['late_calls']:.1f} in the second half; one tuple in eight goes to the profiled operator first",
        ),
        at_least(
            f"N = {most}, A/B = 5/100",
            "per cent fewer evaluations, class orders against one A-Greedy order",
            100 * (1 - classes / one_order),
            JOINT,
            f"beyond the paper; learning included, {one_order:.2f} and {classes:.2f} a tuple; Selectivity "
            f"{of[SELECTIVITY, most, 5]['calls']:.2f}",
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """A panel for each number of operators."""
    numbers = sorted({row["operators"] for row in rows})
    for axes, n in zip(figure.subplots(1, len(numbers), squeeze=False)[0], numbers, strict=True):
        draw(axes, [row for row in rows if row["operators"] == n], "a", "calls")
        axes.set_title(f"N = {n}")
        axes.set_xlabel("A, per cent")
        axes.set_ylim(bottom=0)
    axes.legend(fontsize=6)


EXPERIMENT = Experiment(
    id="cbr-calls",
    title="Routing calls against skew",
    source="content-based-routing-2004, figures 5 and 6",
    claim="Up to 65% fewer routing calls than Selectivity; on average 20.6% fewer where A < B, 9.3% where A > B",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
