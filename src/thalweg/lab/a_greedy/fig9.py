"""Figure 9: how fast tuples are processed, against the number of filters.

All filters drop alike, so Independent cannot tell one from another and its order is arbitrary. Two readings of
it are set beside A-Greedy: Independent as it runs, several times, and the order as written, in which correlated
filters follow each other and which Independent has no reason to leave.
"""

from typing import TYPE_CHECKING

from thalweg.lab.a_greedy import convergence
from thalweg.lab.a_greedy.convergence import EVALUATIONS, RIVALS, TIME, draw, edges, listed, measure
from thalweg.lab.experiment import Experiment, Row, Setting
from thalweg.results import Result, at_least, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIMAL_UP_TO = 12  # filters
SMALL = 6  # filters
NEAR = 0.03  # a share of the optimal rate
WIDER = 0.02  # by which a gap has widened

RANDOM_ORDER = (
    "what the better order saves, profiling twice as often costs: Independent's order of equal filters is random, and "
    "the more groups there are, the less often it has two filters of one group in front"
)
WRITTEN_ORDER = "as good as any to Independent, and the worst: each filter follows one that it agrees with"


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Numbers of filters."""
    numbers = (2, 4, 8, 12, 16) if quick else (2, 3, 4, 5, 6, 8, 10, 12, 16)
    without_optimal = {name: count for name, count in RIVALS.items() if name != "optimal"}
    changes = ({"filters": n, "policies": RIVALS if n <= OPTIMAL_UP_TO else without_optimal} for n in numbers)
    return convergence.settings(changes, quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """Whether A-Greedy leads, and by more with more filters, on both readings; and how near Optimal it is."""
    results = []
    for other, cost, measured, note in (
        ("independent", EVALUATIONS, "filters evaluated, Independent over A-Greedy", ""),
        ("independent", TIME, "rate, A-Greedy over Independent", RANDOM_ORDER),
        ("as-written", TIME, "rate, A-Greedy over the order as written", WRITTEN_ORDER),
    ):
        gap = edges(rows, "filters", "a-greedy", other, cost)
        few, most = min(gap), max(gap)
        span = f"n = {few}..{most}"
        least = min(edge.share for n, edge in gap.items() if n > few)
        lead = f"{measured}, least beyond n = {few}"
        results.append(claim(span, lead, least, "> 0", holds=least > 0, note=listed(gap)))
        if cost == TIME:
            widening = gap[most].share - gap[few].share
            results.append(at_least(span, f"{measured}, widening", widening, WIDER, note=note))
    optimal = edges(rows, "filters", "a-greedy", "optimal")
    few, many = min(optimal), max(optimal)
    return [
        *results,
        at_least(
            f"n = {few}..{SMALL}",
            "rate, A-Greedy over Optimal, least",
            min(edge.share for n, edge in optimal.items() if n <= SMALL),
            -NEAR,
            note="near-optimal for few filters",
        ),
        claim(
            f"n = {few}..{many}",
            f"rate, A-Greedy over Optimal, at n = {many}",
            optimal[many].share,
            f"below that at n = {few}: overhead grows",
            holds=optimal[many].share < optimal[few].share,
            note=listed(optimal),
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy."""
    draw(rows, figure, "filters", "number of filters n")


EXPERIMENT = Experiment(
    id="fig9",
    title="Effect of the number of filters",
    source="a-greedy-2004, figure 9",
    claim="A-Greedy is faster than Independent, by more the more filters there are, and near Optimal for few",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
