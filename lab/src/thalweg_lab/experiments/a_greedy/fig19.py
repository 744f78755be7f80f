"""Figure 19: the total time to process a stream, against the period after which its selectivities change."""

from typing import TYPE_CHECKING

from thalweg_lab.experiments.a_greedy.change import draw_totals, lead, total, total_settings
from thalweg_lab.experiments.a_greedy.convergence import listed
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OFTEN = 100_000  # tuples: a stream that changes after this many or fewer changes often
CLEARLY = 0.02  # a share of the total time that is no noise


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Periods of change, with the paper's costs 1 and 10."""
    full = (20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000)
    periods = (50_000, 100_000, 2_000_000) if quick else full
    return total_settings(periods, [10], ["a-greedy", "independent", "sweep"], quick=quick)


def judge(rows: list[Row]) -> list[Result]:
    """That A-Greedy and Independent are ahead where changes are frequent, and Sweep where they are rare."""
    results = []
    for policy in ("a-greedy", "independent"):
        ahead = lead(rows, "period", policy, "sweep")
        often = [edge.share for period, edge in ahead.items() if period <= OFTEN]
        value = sum(often) / len(often)
        scenario = f"a change every {OFTEN:,} tuples or fewer"
        results.append(at_least(scenario, f"lead of {policy} over sweep in time", value, CLEARLY, listed(ahead)))
    behind = lead(rows, "period", "sweep", "a-greedy")
    rare = max(behind)
    return [
        *results,
        at_least(f"a change every {rare:,} tuples", "lead of sweep over a-greedy in time", behind[rare].share, 0.0),
    ]


def plot(rows: list[Row], figure: "Figure") -> None:
    """Total times over the period."""
    draw_totals(rows, figure, "period", "tuples between two changes")


EXPERIMENT = Experiment(
    id="fig19",
    title="Varying the rate of change",
    source="a-greedy-2004, figure 19",
    claim="A-Greedy and Independent outperform Sweep at high rates of change; Sweep overtakes A-Greedy at low rates",
    settings=settings,
    measure=total,
    judge=judge,
    plot=plot,
)
