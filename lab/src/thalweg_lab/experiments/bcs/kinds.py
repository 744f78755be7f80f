"""Beyond the paper: changes that are abrupt, gradual or recurring, and none at all.

The paper looks at abrupt changes only (section VII). Here A-Greedy runs alone, with the default window and with a
window that holds everything, and with each detector, on four kinds of streams. The cost of an order is set beside a
clairvoyant's, which has the greedy order of the very tuples that come; a policy has recovered from a change when it
costs at most 1/alpha of that, since within 1/alpha no policy changes its order.
"""

from collections.abc import Iterator
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering import Policy

NONE, ABRUPT, GRADUAL, RECURRING = "none", "abrupt", "gradual", "recurring"
KINDS = (NONE, ABRUPT, GRADUAL, RECURRING)
SHORT, LONG = "a-greedy", "a-greedy, all history"
BCS, FORGETFUL, MARTINGALE, ADWIN = "bcs", "bcs, no memory", "martingale", "adwin"
COLOURS = {
    SHORT: "#56b4e9",
    LONG: "#999999",
    BCS: "#d55e00",
    FORGETFUL: "#e69f00",
    MARTINGALE: "#0072b2",
    ADWIN: "#009e73",
}
PERIOD = 300_000
STRETCHES = 6
SLOPE = 200_000  # tuples that a gradual change takes
SAMPLE = 10_000  # tuples of a chunk from which the clairvoyant's order is made
ALPHA = 0.9
HARMLESS = 0.5  # per cent
EARLY = 10  # blocks of 5000 tuples
KEEPS_PACE = {GRADUAL: "; a window of 1000 profile tuples may keep pace with so slow a change by itself"}


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Several streams of each kind."""
    period = 200_000 if quick else PERIOD
    return [
        {"kind": kind, "period": period, "stretches": STRETCHES, "seed": seed}
        for kind in KINDS
        for seed in range(2 if quick else 20)
    ]


def stream(setting: Setting, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The stream of a setting, in chunks."""
    from thalweg_lab.experiments.bcs.stream import gradual, regimes

    kind, period, stretches = setting["kind"], setting["period"], setting["stretches"]
    drawn = regimes({NONE: 0, RECURRING: 2}.get(kind, stretches - 1), random)
    before = drawn[0]
    for place in range(stretches):
        now = drawn[place % len(drawn)]
        slope = min(SLOPE, period) if kind == GRADUAL and place else 0
        yield from gradual(before, now, slope, random)
        yield from now.chunks(period - slope, random)
        before = now


def contestants(seed: int) -> "dict[str, Policy]":
    """A-Greedy alone, with a short and a long window, and with the long window watched."""
    from thalweg.drift import Martingale, Watched
    from thalweg.ordering import AGreedy
    from thalweg_lab.experiments.bcs.contest import a_greedy
    from thalweg_lab.experiments.bcs.stream import FILTERS, P

    return {
        SHORT: AGreedy(FILTERS, p=P, adaptive_p=False, seed=seed),
        LONG: a_greedy(seed),
        BCS: Watched(a_greedy(seed), "bcs"),
        FORGETFUL: Watched(a_greedy(seed), "bcs", remember=0),
        MARTINGALE: Watched(a_greedy(seed), Martingale(reflect=False)),
        ADWIN: Watched(a_greedy(seed), "adwin"),
    }


def measure(setting: Setting) -> list[Row]:
    """One stream: a row a policy."""
    from thalweg.drift import Watched
    from thalweg.ordering import greedy_order, order_cost
    from thalweg_lab.experiments.bcs.stream import BLOCK, count

    clairvoyant: list[float] = []

    def chunks() -> Iterator[NDArray[np.int64]]:
        for masks in stream(setting, np.random.default_rng(setting["seed"])):
            sample = masks[:: max(masks.size // SAMPLE, 1)]
            order = greedy_order(sample, np.ones(15))
            clairvoyant.extend([order_cost(sample, order)] * -(-masks.size // BLOCK))
            yield masks

    policies = contestants(setting["seed"])
    counts = count(policies, chunks(), setting["seed"])
    least = BLOCK * np.array(clairvoyant)
    rows = []
    for name, policy in policies.items():
        ways = np.split(counts[name].blocks / least, setting["stretches"])
        changes = [] if setting["kind"] == NONE else ways[1:]
        if setting["kind"] == RECURRING:
            changes = ways[3:]  # when each regime was there before
        rows.append(
            {
                "kind": setting["kind"],
                "seed": setting["seed"],
                "policy": name,
                "evaluations": counts[name].evaluations,
                "excess": 100 * float(counts[name].evaluations / least.sum() - 1),
                "recovery": fmean(BLOCK * recovered(way) for way in changes) if changes else 0.0,
                "early": 100 * fmean(float(way[:EARLY].mean()) - 1 for way in changes) if changes else 0.0,
                "detected": policy.detected if isinstance(policy, Watched) else 0,
            }
        )
    return rows


def recovered(way: NDArray[np.float64]) -> int:
    """After how many blocks costs are within 1/alpha of the clairvoyant's and stay there on average.

    >>> recovered(np.array([1.5, 1.0, 1.3, 1.1, 1.0, 1.0]))
    3
    """
    rest = np.cumsum(way[::-1])[::-1] / np.arange(way.size, 0, -1)
    good = (way <= 1 / ALPHA) & (rest <= 1 / ALPHA)
    good[:-1] &= way[1:] <= 1 / ALPHA
    return int(good.argmax()) if good.any() else int(way.size)


def values(rows: list[Row], kind: str, policy: str, column: str) -> list[float]:
    """A column, a value a stream."""
    return [row[column] for row in rows if row["kind"] == kind and row["policy"] == policy]


def judge(rows: list[Row]) -> list[Result]:
    """That detection never hurts, helps with every kind of change, and that memory helps with recurring regimes."""
    results = []
    for reference in (LONG, SHORT):
        ratios = [
            100 * (mine / theirs - 1)
            for mine, theirs in zip(
                values(rows, NONE, BCS, "evaluations"), values(rows, NONE, reference, "evaluations"), strict=True
            )
        ]
        measure = f"evaluations beyond those of {reference}, per cent"
        results.append(at_most(NONE, measure, fmean(ratios), HARMLESS, f"worst stream {max(ratios):.2f}"))
    for kind in (ABRUPT, GRADUAL, RECURRING):
        excess = {name: fmean(values(rows, kind, name, "excess")) for name in COLOURS}
        results.append(
            claim(
                kind,
                "cost of BCS beyond a clairvoyant's, per cent",
                excess[BCS],
                "less than A-Greedy's with either window",
                holds=excess[BCS] < min(excess[SHORT], excess[LONG]),
                note=", ".join(f"{name} {value:.1f}" for name, value in excess.items()),
            )
        )
        recovery = {name: fmean(values(rows, kind, name, "recovery")) for name in COLOURS}
        results.append(
            claim(
                kind,
                "tuples until BCS has recovered",
                recovery[BCS],
                "fewer than A-Greedy with either window",
                holds=recovery[BCS] < min(recovery[SHORT], recovery[LONG]),
                note=", ".join(f"{name} {value:,.0f}" for name, value in recovery.items()) + KEEPS_PACE.get(kind, ""),
            )
        )
    early = {name: fmean(values(rows, RECURRING, name, "early")) for name in COLOURS}
    results.append(
        claim(
            RECURRING,
            "cost of BCS beyond a clairvoyant's in the 50,000 tuples after a regime returned, per cent",
            early[BCS],
            "less than without memory",
            holds=early[BCS] < early[FORGETFUL],
            note=", ".join(f"{name} {value:.1f}" for name, value in early.items()),
        )
    )
    return results


def plot(rows: list[Row], figure: "Figure") -> None:
    """Excess cost and tuples to recover, by kind."""
    from matplotlib.ticker import EngFormatter

    cost, time = figure.subplots(1, 2)
    width = 0.8 / len(COLOURS)
    for axes, column in ((cost, "excess"), (time, "recovery")):
        for shift, (name, colour) in enumerate(COLOURS.items()):
            at = [place + width * (shift - len(COLOURS) / 2) for place in range(len(KINDS))]
            axes.bar(at, [fmean(values(rows, kind, name, column)) for kind in KINDS], width, color=colour, label=name)
        axes.set_xticks(range(len(KINDS)), KINDS)
    cost.set_ylabel("cost beyond a clairvoyant's, per cent")
    time.set_ylabel("tuples from a change to recovery")
    time.yaxis.set_major_formatter(EngFormatter())
    time.legend(fontsize=7, loc="upper left")


EXPERIMENT = Experiment(
    id="drift-kinds",
    title="Abrupt, gradual, recurring and no change",
    source="beyond bcs-change-detection-2012, section VII",
    claim="Detection does no harm where nothing changes, helps with any kind of change; memory helps with recurrence",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
