"""Shared by experiments 1 and 2 and the overhead: A-Greedy, alone and with each detector, on streams that change.

Fifteen filters, correlated in pairs as in a-greedy-2004, a window of 60,000 profile tuples and a drop-profiling
probability of 1%. All drop probabilities change at once, by at least a tenth. (bcs-change-detection-2012, section V-B)
"""

from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Row, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from thalweg.ordering import Policy

ALONE, BCS, PAPER, MARTINGALE, ADWIN = "a-greedy", "bcs", "bcs, unconfirmed", "martingale", "adwin"
RIVALS = (BCS, PAPER, MARTINGALE, ADWIN)
COLOURS = {BCS: "#d55e00", PAPER: "#e69f00", MARTINGALE: "#0072b2", ADWIN: "#009e73"}
CHANGES = 5
AS_IN_PAPER: dict[str, dict[str, int]] = {PAPER: {"confirm": 0}, MARTINGALE: {"reflect": 0}}


def settings(periods: Sequence[int], streams: int) -> list[Setting]:
    """So many streams of each period."""
    return [{"period": period, "changes": CHANGES, "seed": seed} for period in periods for seed in range(streams)]


def a_greedy(seed: int) -> "Policy":
    """A-Greedy with the paper's parameters."""
    from thalweg.ordering import AGreedy
    from thalweg_lab.experiments.bcs.stream import FILTERS, WINDOW, P

    return AGreedy(FILTERS, window=WINDOW, p=P, adaptive_p=False, seed=seed)


def contestants(seed: int, names: Sequence[str] = RIVALS) -> "dict[str, Policy]":
    """A-Greedy alone, and with detectors."""
    from thalweg.drift import Watched, detector

    made: dict[str, Policy] = {ALONE: a_greedy(seed)}
    for name in names:
        made[name] = Watched(a_greedy(seed), detector(name.partition(",")[0], **AS_IN_PAPER.get(name, {})))
    return made


def measure(setting: Setting) -> list[Row]:
    """One stream: a row for A-Greedy alone and a row for each detector."""
    import numpy as np

    from thalweg.drift import Watched
    from thalweg_lab.experiments.bcs.stream import abrupt, count, regimes

    _warm_up()
    random = np.random.default_rng(setting["seed"])
    policies = contestants(setting["seed"])
    stretches = regimes(setting["changes"], random)
    counts = count(policies, abrupt(stretches, setting["period"], random), setting["seed"])
    alone = counts[ALONE]
    rows = []
    for name, policy in policies.items():
        counted = counts[name]
        rows.append(
            {
                "period": setting["period"],
                "seed": setting["seed"],
                "policy": name,
                "evaluations_per_tuple": counted.evaluations / counted.tuples,
                "improvement": 100 * (1 - counted.evaluations / alone.evaluations),
                "detected": policy.detected if isinstance(policy, Watched) else 0,
                "reoptimisations": counted.reoptimisations,
                "loop_microseconds": 1e6 * counted.loop_seconds / max(counted.profiled, 1),
            }
        )
    return rows


@cache
def _warm_up() -> None:
    """Load the compiled code, once a process, so that no policy's loop is timed with it."""
    import numpy as np

    from thalweg_lab.experiments.bcs.stream import abrupt, count, regimes

    random = np.random.default_rng(0)
    count(contestants(0), abrupt(regimes(1, random), 100_000, random))


def improvements(rows: list[Row], policy: str, period: int | None = None) -> list[float]:
    """By how many per cent a policy's evaluations are fewer than A-Greedy's, a value a stream."""
    return [row["improvement"] for row in rows if row["policy"] == policy and period in {None, row["period"]}]


def listed(rows: list[Row]) -> str:
    """Worst, median and best improvement of every detector, as a note.

    >>> listed([{"policy": "bcs", "period": 1, "improvement": value} for value in (1.0, 2.0, 6.0)])
    'worst/median/best per cent: bcs +1/+2/+6'
    """
    of = {name: improvements(rows, name) for name in RIVALS}
    spans = [f"{name} {min(each):+.0f}/{median(each):+.0f}/{max(each):+.0f}" for name, each in of.items() if each]
    return "worst/median/best per cent: " + ", ".join(spans)


def draw(axes: "Axes", rows: list[Row], column: str) -> None:
    """A box for each detector, over the streams."""
    names = [name for name in RIVALS if any(row["policy"] == name for row in rows)]
    boxes = axes.boxplot(
        [[row[column] for row in rows if row["policy"] == name] for name in names], patch_artist=True, whis=(0, 100)
    )
    for box, name in zip(boxes["boxes"], names, strict=True):
        box.set_facecolor(COLOURS[name])
    axes.set_xticks(range(1, len(names) + 1), [name.replace(", ", ",\n") for name in names], fontsize=8)
