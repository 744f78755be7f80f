"""Figure 3(a): how often the chart's plan for Q1 is the best, and when it is not; also for real flights."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, median
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.experiments.om.contest import (
    FLIGHT_PARTS,
    FLIGHTS,
    GENERATED,
    MOST_ERRATIC,
    OM,
    SINGLE,
    drawn,
    flown,
    plan_costs,
    run,
)
from thalweg_lab.results import Result, at_least, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BURST = (500, 600)  # rounds; section 5.2 has its burst in these seconds
STRETCH = 100  # rounds that are averaged in the figure
FIDELITY = 0.80
MOVES_PER_SWITCH = 84 / 23


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The same stream, drawn several times, and parts of the year of flights."""
    drawn = [{"data": GENERATED, "seed": seed} for seed in range(3 if quick else 50)]
    return drawn + [{"data": FLIGHTS, "seed": part} for part in range(2 if quick else FLIGHT_PARTS)]


def measure(setting: Setting) -> list[Row]:
    """A row for each stretch of rounds; its jump is the mean change of selectivity from a round to the next."""
    data, seed = setting["data"], setting["seed"]
    if data == GENERATED:
        rounds = [each.observed for each in drawn(SINGLE, MOST_ERRATIC, seed, BURST)]
    else:
        rounds = flown(SINGLE, seed)
    costs = plan_costs(SINGLE, data)
    done, counted = run(OM, costs, rounds), run(OM, costs, rounds, counted=True)
    log = done.log
    (alias,) = rounds[0].selectivities
    shares = [float(each.selectivities[alias]) for each in rounds]
    jumps = [0.0, *(abs(after - before) for before, after in pairwise(shares))]
    return [
        {
            **setting,
            "from": start,
            "burst": data == GENERATED and BURST[0] <= start < BURST[1],
            "jump": mean(jumps[start : start + STRETCH]),
            "counted": counted.counts.fidelity,
            "repeated": done.repeated_fidelity,
            "fidelity": mean(record.is_hit for record in log[start : start + STRETCH]),
            "moves": sum(record.is_move for record in log[start : start + STRETCH]),
            "switches": sum(record.is_switch for record in log[start : start + STRETCH]),
        }
        for start in range(0, len(log), STRETCH)
    ]


def judge(rows: list[Row]) -> list[Result]:
    """Fidelity, where it is lost, and moves against switches."""
    generated = [row for row in rows if row["data"] == GENERATED]
    flights = [row for row in rows if row["data"] == FLIGHTS]
    middle = median(row["jump"] for row in flights)
    return [
        *_judge("Q1, k = 10", generated, [row["burst"] for row in generated], "in bursts", "the paper: 80% on average"),
        *_judge(
            "late departures, k = 10",
            flights,
            [row["jump"] > middle for row in flights],
            "where selectivity jumps most",
            _found(flights),
        ),
    ]


def _found(flights: list[Row]) -> str:
    counted, repeated = (mean(row[key] for row in flights) for key in ("counted", "repeated"))
    return (
        f"with counts instead of estimates {counted:.1%}; the best plan of the hour before is the best again in "
        f"{repeated:.1%}: what is missed comes from estimates, since delays change within an hour"
    )


def _judge(scenario: str, rows: list[Row], is_erratic: list[bool], where: str, note: str) -> list[Result]:
    streams = len({row["seed"] for row in rows})
    moves, switches = (sum(row[key] for row in rows) / streams for key in ("moves", "switches"))
    erratic, calm = (
        mean(row["fidelity"] for row, inside in zip(rows, is_erratic, strict=True) if inside is wanted)
        for wanted in (True, False)
    )
    return [
        at_least(scenario, "fidelity", mean(row["fidelity"] for row in rows), FIDELITY, note),
        claim(
            scenario,
            f"fidelity {where} less that elsewhere",
            erratic - calm,
            "misses are concentrated in bursts",
            holds=erratic < calm,
            note=f"{erratic:.1%} {where}, {calm:.1%} elsewhere",
        ),
        at_least(
            scenario,
            "moves for each switch",
            moves / max(switches, 1.0),
            round(MOVES_PER_SWITCH, 1),
            f"{moves:.0f} moves and {switches:.0f} switches in 600 rounds; the paper: 84 and 23",
        ),
    ]


def plot(rows: list[Row], figure: Figure) -> None:
    """Fidelity by stretches of rounds, of generated streams."""
    axes = figure.subplots()
    generated = [row for row in rows if row["data"] == GENERATED]
    starts = sorted({row["from"] for row in generated})
    axes.bar(
        starts,
        [100 * mean(row["fidelity"] for row in generated if row["from"] == start) for start in starts],
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
