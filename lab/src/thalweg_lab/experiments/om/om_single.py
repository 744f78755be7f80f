"""Figure 3(a): how often the chart's plan for Q1 is the best, and when it is not."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRETCH = 100  # rounds that are averaged in the figure
FIDELITY = 0.80
MOVES_PER_SWITCH = 84 / 23


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The same stream, drawn several times."""
    return [{"seed": seed} for seed in range(3 if quick else 50)]


def measure(setting: Setting) -> list[Row]:
    """A row for each stretch of rounds."""
    from thalweg_lab.experiments.om.contest import MOST_ERRATIC, OM, SINGLE, drawn, run
    from thalweg_lab.experiments.om.series import BURST

    log = run(OM, SINGLE, drawn(SINGLE, MOST_ERRATIC, setting["seed"], BURST)).log
    return [
        {
            "seed": setting["seed"],
            "from": start,
            "burst": BURST[0] <= start < BURST[1],
            "fidelity": mean(record.is_hit for record in log[start : start + STRETCH]),
            "moves": sum(record.is_move for record in log[start : start + STRETCH]),
            "switches": sum(record.is_switch for record in log[start : start + STRETCH]),
        }
        for start in range(0, len(log), STRETCH)
    ]


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity, where it is lost, and moves against switches."""
    streams = len({row["seed"] for row in rows})
    moves, switches = (sum(row[key] for row in rows) / streams for key in ("moves", "switches"))
    burst, calm = (mean(row["fidelity"] for row in rows if row["burst"] is inside) for inside in (True, False))
    return [
        at_least(
            "Q1, k = 10", "fidelity", mean(row["fidelity"] for row in rows), FIDELITY, "the paper: 80% on average"
        ),
        claim(
            "Q1, k = 10",
            "fidelity in bursts less that outside",
            burst - calm,
            "misses are concentrated in bursts",
            holds=burst < calm,
            note=f"{burst:.1%} in bursts, {calm:.1%} outside",
        ),
        at_least(
            "Q1, k = 10",
            "moves for each switch",
            moves / max(switches, 1.0),
            round(MOVES_PER_SWITCH, 1),
            f"{moves:.0f} moves and {switches:.0f} switches in 600 rounds; the paper: 84 and 23",
        ),
    ]


def plot(rows: list[Row], figure: Figure) -> None:
    """Fidelity by stretches of rounds."""
    axes = figure.subplots()
    starts = sorted({row["from"] for row in rows})
    axes.bar(
        starts,
        [100 * mean(row["fidelity"] for row in rows if row["from"] == start) for start in starts],
        width=0.8 * STRETCH,
        align="edge",
    )
    axes.set_xlabel("round")
    axes.set_ylabel("fidelity, per cent")


EXPERIMENT = Experiment(
    id="om-single",
    title="Fidelity of the charts for a query over a single stream",
    source="om-plan-charts-2005, figure 3(a)",
    claim="About 80% of the plans for Q1 are the best; misses come with bursts; moves outnumber switches, 84 to 23",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
