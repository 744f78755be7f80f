"""Table 2: how A-Greedy spends its time.

The overhead as a whole is the time beyond that of the same order held fixed, in the same race. The creation of
profile tuples is clocked where it happens. The window, the view and its violations (finding and correcting them)
take tens of nanoseconds, too short for a clock in their midst: they are measured apart, by replaying profile
tuples (see `replay`), and multiplied by how many there were. What is left of the overhead is the rest: choosing
which tuples to profile, reading clocks, and caches and branch predictors that profiling has disturbed.

A filter takes tens of nanoseconds here, as does the bookkeeping, which therefore has a larger share than in the paper.
"""

from collections import defaultdict
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

from thalweg_lab.experiments.a_greedy import convergence
from thalweg_lab.experiments.a_greedy.convergence import contestants, race, settle, twin, workload
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Percent of the time: tuple processing, profile-tuple creation, window, view, violations; by n and p.
PAPER = {
    (3, 0.01): (98.77, 0.88, 0.20, 0.15, 0.0),
    (3, 0.05): (94.17, 4.17, 0.93, 0.73, 0.0),
    (8, 0.01): (96.62, 2.92, 0.20, 0.22, 0.04),
    (8, 0.05): (84.77, 13.34, 0.91, 0.98, 0.0),
}
PARTS = ("processing", "creation", "window", "view", "violations")
BOOKKEEPING = PARTS[2:]
COLOURS = {
    "creation": "tab:orange",
    "window": "tab:blue",
    "view": "tab:green",
    "violations": "tab:red",
    "rest": "0.8",
}
FACTOR = 2.0  # by which a share may differ from the paper's and count as like it
REPLAYED = 200_000  # tuples


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The table's four columns; several A-Greedys run in one race, for a steadier mean."""
    changes = ({"filters": n, "p": p, "costs": "measured", "policies": {"a-greedy": 4}} for n, p in PAPER)
    return convergence.settings(changes, quick=quick)


def measure(setting: Setting) -> list[Row]:
    """The share of each part in the time of A-Greedy, settled."""
    from thalweg_lab.engine import TIME_EVERY, Engine
    from thalweg_lab.experiments.a_greedy.replay import bookkeeping

    random = np.random.default_rng(setting["seed"])
    stream = workload(setting)
    policies = contestants(setting, stream, random)
    engine = Engine([1] * stream.filters, seed=setting["seed"])
    settle(engine, policies, stream, random)
    paces = race(engine, policies, stream, random, turns=setting["turns"], twins=True)
    rows = []
    for name, policy in policies.items():
        pace, held = paces[name], paces[twin(name)]
        parts = bookkeeping(policy, stream.masks(REPLAYED, random), TIME_EVERY, random)
        shares = {part: seconds * pace.profiled / pace.seconds for part, seconds in parts.items()}
        shares |= {"processing": held.seconds / pace.seconds, "creation": pace.creation}
        shares["rest"] = 1 - sum(shares.values())
        about = {key: setting[key] for key in ("filters", "p", "seed")}
        rows.append(about | shares | {"corrections": pace.changes / pace.profiled})
    return rows


def means(rows: list[Row]) -> dict[tuple[int, float], dict[str, float]]:
    """The mean share of each part, and the mean corrections, for each column of the table."""
    columns: defaultdict[tuple[int, float], list[Row]] = defaultdict(list)
    for row in rows:
        columns[row["filters"], row["p"]].append(row)
    values = (*PARTS, "rest", "corrections")
    return {column: {name: mean(row[name] for row in of) for name in values} for column, of in columns.items()}


def judge(rows: list[Row]) -> list[Result]:
    """Creation within a factor of the paper's, and how much is neither tuple processing nor creation."""
    shares = means(rows)
    results = []
    for (n, p), of in shares.items():
        paper = PAPER[n, p][1] / 100
        results.append(
            claim(
                f"n = {n}, p = {p:g}",
                "creation of profile tuples, share of time",
                of["creation"],
                f"{paper:.2%}, within a factor of {FACTOR:g}",
                holds=paper / FACTOR <= of["creation"] <= paper * FACTOR,
            )
        )
    for (n, p), of in shares.items():
        parts = ", ".join(f"{part} {of[part]:.2%}" for part in BOOKKEEPING)
        chance = f"{1000 * of['corrections']:.1f} corrections by chance in 1000 profile tuples, as filters drop alike"
        results.append(
            at_most(
                f"n = {n}, p = {p:g}",
                "neither tuple processing nor creation, share of time",
                sum(of[part] for part in BOOKKEEPING),
                0.02,
                note=f"{parts}; {chance}; besides, {of['rest']:.2%} that no part explains",
            )
        )
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """The overhead's parts, stacked, beside the paper's."""
    axes = figure.subplots()
    shares = means(rows)
    for place, (column, of) in enumerate(shares.items()):
        measured = {part: 100 * share for part, share in of.items()}
        paper = dict(zip(PARTS, PAPER[column], strict=True))
        for height, source, percents in ((place - 0.2, "measured", measured), (place + 0.2, "paper", paper)):
            left = 0.0
            for part, colour in COLOURS.items():
                percent = max(percents.get(part, 0.0), 0.0)  # the rest is a difference, and may be below zero
                axes.barh(height, percent, 0.36, left=left, color=colour)
                left += percent
            axes.text(left, height, f" {source}", va="center", fontsize=8)
    axes.set_yticks(range(len(shares)), [f"n = {n}, p = {p:g}" for n, p in shares])
    axes.set_xlim(right=1.15 * axes.get_xlim()[1])  # room for the words
    axes.invert_yaxis()
    axes.set_xlabel("share of A-Greedy's time besides tuple processing (%)")
    axes.legend(axes.patches[: len(COLOURS)], COLOURS)


EXPERIMENT = Experiment(
    id="table2",
    title="Run-time breakdown of A-Greedy",
    source="a-greedy-2004, table 2",
    claim="Creating profile tuples takes 0.88% to 13.34% of the time; with tuple processing it takes more than 98%",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
