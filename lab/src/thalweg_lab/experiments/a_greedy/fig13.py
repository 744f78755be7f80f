"""Figure 13: the run time of figure 12, broken down into processing tuples and the overhead of adapting.

Processing is the time of the same order held fixed, in the same race; overhead is the policy's time beyond it.
"""

from statistics import fmean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.convergence import EVALUATIONS, TIME, measure
from thalweg_lab.experiments.a_greedy.fig12 import POLICIES, PROBABILITY, settings
from thalweg_lab.experiments.a_greedy.plots import COLOURS
from thalweg_lab.experiments.experiment import Experiment, Row
from thalweg_lab.results import Result, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ADAPTIVE = ("a-greedy", "sweep", "local-swaps")
PROCESSING, OVERHEAD = "processing_nanoseconds", "overhead_nanoseconds"


def average(rows: list[Row], filters: int, policy: str, column: str) -> float:
    """The mean of a column over the seeds."""
    return fmean(row[column] for row in rows if row["filters"] == filters and row["policy"] == policy)


def judge(rows: list[Row]) -> list[Result]:
    """That all process tuples alike, and that overhead alone sets A-Greedy apart where filters are many."""
    numbers = sorted({row["filters"] for row in rows})
    many = numbers[-1]

    def of(policy: str, column: str) -> float:
        return average(rows, many, policy, column)

    def apart(column: str) -> float:
        return max(
            average(rows, n, policy, column) / average(rows, n, "optimal", column) - 1
            for n in numbers
            for policy in ADAPTIVE
        )

    shares = {policy: of(policy, OVERHEAD) / of(policy, TIME) for policy in ADAPTIVE}
    control = max(abs(average(rows, n, "optimal", OVERHEAD) / average(rows, n, "optimal", TIME)) for n in numbers)
    span = f"n = {numbers[0]}..{many}"
    note = "the worst of A-Greedy, Sweep and LocalSwaps; similar to Optimal means a similar order"
    results = [
        at_most(span, "overhead of Optimal, either way", control, 0.02, "a control: it does not adapt"),
        at_most(span, "filters evaluated over Optimal's", apart(EVALUATIONS), 0.02, note),
        at_most(span, "time of processing tuples over Optimal's", apart(PROCESSING), 0.05, note),
    ]
    for policy in ADAPTIVE[1:]:
        gap = of("a-greedy", TIME) - of(policy, TIME)
        overhead = of("a-greedy", OVERHEAD) - of(policy, OVERHEAD)
        ratio = shares["a-greedy"] / shares[policy]
        results += [
            at_least(
                f"n = {many}",
                f"part of the gap from a-greedy to {policy} that is overhead",
                overhead / gap,
                0.75,
                note=f"{gap:.1f} ns a tuple, of which {overhead:.1f} ns overhead",
            ),
            at_least(
                f"n = {many}",
                f"overhead's share, a-greedy as a multiple of {policy}",
                ratio,
                1.5,
                note=", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
            ),
        ]
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """For each number of filters a bar for each policy, its overhead hatched on top."""
    axes = figure.subplots()
    numbers = sorted({row["filters"] for row in rows})
    width = 0.8 / len(POLICIES)
    for place, policy in enumerate(POLICIES):
        at = [k + (place - (len(POLICIES) - 1) / 2) * width for k in range(len(numbers))]
        processing = [average(rows, n, policy, PROCESSING) for n in numbers]
        overhead = [average(rows, n, policy, OVERHEAD) for n in numbers]
        axes.bar(at, processing, width, color=COLOURS[policy], label=policy)
        axes.bar(at, overhead, width, bottom=processing, color="white", edgecolor=COLOURS[policy], hatch="////")
    axes.bar([0], [0], color="white", edgecolor="black", hatch="////", label="overhead")
    axes.set_xticks(range(len(numbers)), [str(n) for n in numbers])
    axes.set_xlabel("number of filters n")
    axes.set_ylabel(f"time at p = {PROBABILITY} (nanoseconds per tuple)")
    axes.set_ylim(top=1.25 * axes.get_ylim()[1])
    axes.legend(ncols=3, loc="upper left")


EXPERIMENT = Experiment(
    id="fig13",
    title="Run-time breakdown of all policies",
    source="a-greedy-2004, figure 13",
    claim="A-Greedy's widening gap to Sweep and LocalSwaps at p = 0.05 is solely its run-time overhead",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
