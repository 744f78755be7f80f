"""Figure 9: how fast tuples are processed, against the number of filters.

All filters drop alike, so that chance decides on Independent's order. It does worse than a random order, probably
because filters that agree have like drop rates at any time, and come to stand one after the other.
"""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy import convergence
from thalweg_lab.experiments.a_greedy.convergence import EVALUATIONS, RIVALS, draw, edges, listed, measure
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIMAL_UP_TO = 12  # filters
SMALL = 6  # filters
NEAR = 0.03  # a share of the optimal rate
WIDER = 0.02  # by which a gap has widened
MEASURED = (8, 16)  # filters for which the policies also go by measured times

LEVELS_OFF = "levels off from n = 8 on; A-Greedy's profile tuples, twice as many, meet ever more filters"
CACHED = (
    "filters in front are measured as cheaper, probably by their place in the cache, which keeps Independent's orders "
    "from grouping like filters"
)


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Numbers of filters."""
    numbers = (2, 4, 8, 12, 16) if quick else (2, 3, 4, 5, 6, 8, 10, 12, 16)
    without_optimal = {name: count for name, count in RIVALS.items() if name != "optimal"}
    equal = [{"filters": n, "policies": RIVALS if n <= OPTIMAL_UP_TO else without_optimal} for n in numbers]
    measured = [{"filters": n, "policies": without_optimal, "costs": "measured"} for n in MEASURED]
    return convergence.settings([*equal, *measured], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """Whether A-Greedy leads, and by more with more filters; how near Optimal it is; and what measured times change."""
    equal = [row for row in rows if row["costs"] == "equal"]
    fewer = edges(equal, "filters", "a-greedy", "independent", EVALUATIONS)
    gap = edges(equal, "filters", "a-greedy", "independent")
    optimal = edges(equal, "filters", "a-greedy", "optimal")
    measured = edges([row for row in rows if row["costs"] == "measured"], "filters", "a-greedy", "independent")
    few, many, most = min(gap), max(optimal), max(gap)
    least = min(edge.share for n, edge in gap.items() if n > few)
    rate = "rate, A-Greedy over Independent"
    return [
        claim(f"n = {few}..{most}", f"{rate}, least beyond n = {few}", least, "> 0", holds=least > 0, note=listed(gap)),
        at_least(
            f"n = {few}..{most}",
            "filters evaluated, Independent over A-Greedy, widening",
            fewer[most].share - fewer[few].share,
            WIDER,
            note=listed(fewer),
        ),
        at_least(f"n = {few}..{most}", f"{rate}, widening", gap[most].share - gap[few].share, WIDER, note=LEVELS_OFF),
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
        claim(
            f"n = {most}, by measured times",
            rate,
            measured[most].share,
            "> 0",
            holds=measured[most].share > 0,
            note=f"{CACHED}; {listed(measured)}",
        ),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy."""
    draw([row for row in rows if row["costs"] == "equal"], figure, "filters", "number of filters n")


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
