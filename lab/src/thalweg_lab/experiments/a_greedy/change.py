"""Shared by the experiments with change: streams whose selectivities are permuted, and how policies follow them.

The paper permutes "filters with different selectivities" without printing them: here they are spread evenly around
Table 1's 50%. Neither does it say which filters are expensive: here that is drawn for each seed. How good an order is
at a time is told by its cost on a sample of the stream, which has no noise. Where filters are evaluated and counted
instead of timed, policies are told that all cost the same (see `convergence`). (a-greedy-2004, section 9.4)
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean, median
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg_lab.experiments.a_greedy.convergence import Edge, edges, equal_costs
from thalweg_lab.experiments.a_greedy.plots import COLOURS, line
from thalweg_lab.experiments.experiment import Row, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from thalweg.ordering import Policy
    from thalweg_lab.engine import Engine, EngineRun
    from thalweg_lab.workload import Workload

DROPS = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85)
ALPHA = 0.9  # Table 1: policies leave an order within 1/alpha of a better order alone, so that counts as recovered
BLOCK = 2000  # tuples for which filter evaluations are counted together
SAMPLE = 50_000  # tuples on which orders are costed
WORTH_SEEING = 1.3  # the old order's cost after a change, as a multiple of the new order's
CHANGE_AT = 600_000  # the tuple of the change in figures 16 to 18
SETTLED = 100_000  # tuples at the end of a stretch over which policies are taken to have settled
TURN = 50_000  # tuples that a policy processes at most in a turn where times are compared

SECONDS = "seconds_per_million_tuples"


class SteadyStretch:
    """A stretch of the stream without change, with the cost a tuple of any order on it."""

    def __init__(
        self, workload: "Workload", random: np.random.Generator, costs: Sequence[int] = (1,) * len(DROPS)
    ) -> None:
        self.workload = workload
        self._costs = costs
        self._sample = workload.masks(SAMPLE, random)
        self._known: dict[tuple[int, ...], float] = {}

    def cost(self, order: tuple[int, ...]) -> float:
        """The cost of an order, a tuple."""
        from thalweg.ordering import order_cost

        if order not in self._known:
            self._known[order] = order_cost(self._sample, order, self._costs)
        return self._known[order]

    @cached_property
    def greedy(self) -> tuple[int, ...]:
        """The order of a greedy choice."""
        from thalweg.ordering import greedy_order

        return greedy_order(self._sample, self._costs)

    def changed(self, random: np.random.Generator) -> "SteadyStretch":
        """The stretch after a change that is worth seeing: many permutations hardly hurt the order there was."""
        while True:
            after = SteadyStretch(self.workload.permuted(random), random, self._costs)
            if after.cost(self.greedy) >= WORTH_SEEING * after.cost(after.greedy):
                return after


class Track(NamedTuple):
    """A policy's way through a stretch, block by block."""

    evaluated: NDArray[np.int64]  # filters evaluated for the query
    costs: NDArray[np.float64]  # the cost of the order at the block's beginning, over the greedy order's


def permuted(random: np.random.Generator) -> SteadyStretch:
    """A first stretch: each filter has one of the selectivities."""
    from thalweg_lab.workload import Workload

    return SteadyStretch(Workload(DROPS).permuted(random), random)


def mixed_costs(cost: int, random: np.random.Generator) -> list[int]:
    """Probes of four filters of cost 1 and of four expensive filters, in random places.

    >>> sorted(mixed_costs(10, np.random.default_rng(0)))
    [1, 1, 1, 1, 10, 10, 10, 10]
    """
    costs: list[int] = random.permutation([1, cost] * (len(DROPS) // 2)).tolist()
    return costs


def policies(setting: Setting) -> "dict[str, Policy]":
    """The policies of a setting, with the defaults of Table 1 and p fixed, as in the paper."""
    from thalweg.ordering import policy

    return {name: policy(name, len(DROPS), adaptive_p=False, seed=setting["seed"]) for name in setting["policies"]}


def track(
    engine: "Engine",
    policies: "Mapping[str, Policy]",
    stretches: Sequence[tuple[SteadyStretch, int]],
    random: np.random.Generator,
) -> "tuple[dict[str, EngineRun], dict[str, list[Track]]]":
    """Let policies process stretches of given lengths, and follow their orders through each stretch."""
    costs: dict[str, list[list[float]]] = {name: [[] for _ in stretches] for name in policies}

    def chunks() -> Iterator[NDArray[np.int64]]:
        for place, (stretch, tuples) in enumerate(stretches):
            for _ in range(tuples // BLOCK):
                for name, policy in policies.items():  # all have processed the block before
                    costs[name][place].append(stretch.cost(policy.order) / stretch.cost(stretch.greedy))
                yield stretch.workload.masks(BLOCK, random)

    runs = engine.race(policies, chunks())
    ends = np.cumsum([tuples // BLOCK for _, tuples in stretches])[:-1]
    tracks = {
        name: [
            Track(evaluated, np.array(each))
            for evaluated, each in zip(np.split(np.array(run.series), ends), costs[name], strict=True)
        ]
        for name, run in runs.items()
    }
    return runs, tracks


def recovery(costs: NDArray[np.float64], level: float) -> int:
    """How many tuples pass until the order's cost is as good as a level; all of them if it never is.

    >>> recovery(np.array([1.5, 1.2, 1.1, 1.0]), level=1.0)
    4000
    """
    recovered = costs <= level / ALPHA
    return BLOCK * (int(recovered.argmax()) if recovered.any() else costs.size)


def summary(before: NDArray[np.float64], after: NDArray[np.float64]) -> Row:
    """The cost of an order over the greedy order's, before a change and as it developed after the change."""
    tail = SETTLED // BLOCK
    changes = np.diff(after)
    steps = np.abs(changes[changes != 0])
    return {
        "cost_before": float(before[-tail:].mean()),
        "cost_after": float(after[-tail:].mean()),
        "recovery": recovery(after, 1.0),  # to the greedy order's level
        "wasted": float((after - 1).sum()) * BLOCK,  # tuples that the greedy order would have processed besides
        "steps": steps.size,
        "mean_step": float(steps.mean()) if steps.size else 0.0,
    }


def timeline_settings(policies: Sequence[str], *, quick: bool) -> list[Setting]:
    """Settings for `timeline`: several seeds, the first of which is drawn.

    >>> [setting["drawn"] for setting in timeline_settings(["a-greedy"], quick=True)][:2]
    [True, False]
    """
    base: Setting = {"policies": list(policies), "tuples": 800_000 if quick else 1_400_000}
    return [base | {"seed": seed, "drawn": seed == 0} for seed in range(10 if quick else 40)]


def timeline(setting: Setting) -> list[Row]:
    """One change of the selectivities: a row for each policy, and where drawn a row for each of its blocks."""
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    before = permuted(random)
    after = before.changed(random)
    stretches = [(before, CHANGE_AT), (after, setting["tuples"])]
    racing = policies(setting)
    for policy in racing.values():
        equal_costs(policy)
    _, tracks = track(Engine([1] * len(DROPS), seed=setting["seed"]), racing, stretches, random)
    rows: list[Row] = []
    for name, (first, second) in tracks.items():
        about = {"seed": setting["seed"], "policy": name}
        rows.append(about | summary(first.costs, second.costs))
        greedy = [BLOCK * stretch.cost(stretch.greedy) for stretch, tuples in stretches for _ in range(tuples // BLOCK)]
        blocks = [*first.evaluated.tolist(), *second.evaluated.tolist()]
        if setting["drawn"]:
            rows += [
                about | {"tuple": k * BLOCK, "evaluated": evaluated, "greedy": greedy[k]}
                for k, evaluated in enumerate(blocks)
            ]
    return rows


def summaries(rows: list[Row], policy: str, column: str) -> list[float]:
    """A column of the summaries of a policy, a value a seed."""
    return [row[column] for row in rows if row["policy"] == policy and column in row]


def compared(rows: list[Row], column: str, policy: str, other: str) -> tuple[float, str]:
    """The median of a policy as a share of the other policy's, and both as a note.

    >>> rows = [{"policy": name, "recovery": tuples} for name, tuples in (("a", 1000), ("b", 4000))]
    >>> compared(rows, "recovery", "a", "b")
    (0.25, 'a 1,000, b 4,000')
    """
    medians = {name: median(summaries(rows, name, column)) for name in (policy, other)}
    share = medians[policy] / medians[other] if medians[other] else float("inf")
    return share, ", ".join(f"{name} {value:,.0f}" for name, value in medians.items())


def draw_timeline(rows: list[Row], figure: "Figure", policies: Sequence[str]) -> None:
    """Filters evaluated in each block of the first seed, and the cost of the greedy order."""
    from matplotlib.ticker import EngFormatter

    axes = figure.subplots()
    blocks = [row for row in rows if "tuple" in row]
    for policy in policies:
        line(axes, blocks, "tuple", "evaluated", policy)
        axes.lines[-1].set(marker="", linewidth=0.8)
    greedy = {row["tuple"]: row["greedy"] for row in blocks}
    axes.plot(list(greedy), list(greedy.values()), "--", color="black", linewidth=1, label="greedy order, expected")
    axes.axvline(CHANGE_AT, color="0.5", linewidth=0.8, linestyle=":")
    axes.set_xlabel("tuples processed (dotted: the change)")
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.set_ylabel(f"filters evaluated per {BLOCK} tuples")
    axes.legend()


def spans(period: int, tuples: int, random: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """A stream whose selectivities are permuted after each period."""
    from thalweg_lab.workload import Workload

    workload = Workload(DROPS)
    for _ in range(tuples // period):
        workload = workload.permuted(random)
        for start in range(0, period, TURN):
            yield workload.masks(min(TURN, period - start), random)


def total_settings(
    periods: Sequence[int], costs: Sequence[int], policies: Sequence[str], *, quick: bool
) -> list[Setting]:
    """Settings for `total`: every period with every cost, long enough for some changes, with several seeds.

    >>> len(total_settings([100_000], [1, 10], ["sweep"], quick=True))
    8
    """
    least = 1_000_000 if quick else 2_000_000
    return [
        {"period": period, "tuples": max(4 * period, least), "cost": cost, "policies": list(policies), "seed": seed}
        for period in periods
        for cost in costs
        for seed in range(4 if quick else 10)
    ]


def total(setting: Setting) -> list[Row]:
    """The time that policies take for a stream with periodic changes, in turns; a row a policy.

    The time is the processor's, so that other work on the machine counts little. A run that ends would drop profile
    tuples that wait for a batch to fill, hence batches of one tuple, which is also the paper's way.
    """
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    engine = Engine(mixed_costs(setting["cost"], random), batch=1, seed=setting["seed"])
    racing = policies(setting)
    seconds = dict.fromkeys(racing, 0.0)
    for masks in spans(setting["period"], setting["tuples"], random):
        for name in random.permutation(list(racing)):
            before = thread_time()
            engine.run(racing[name], [masks])
            seconds[name] += thread_time() - before
    about = {key: setting[key] for key in ("period", "cost", "seed")}
    return [about | {"policy": name, SECONDS: 1e6 * seconds[name] / setting["tuples"]} for name in racing]


def lead(rows: list[Row], over: str, policy: str, other: str) -> dict[float, Edge]:
    """By which share a policy's total time is shorter than the other's, for each value of the varied parameter."""
    return edges(rows, over, policy, other, SECONDS)


def draw_totals(rows: list[Row], figure: "Figure", x: str, label: str) -> None:
    """Total times, and beside them how they compare to A-Greedy's in the same race."""
    from matplotlib.ticker import PercentFormatter

    times, shares = figure.subplots(1, 2)
    for policy in dict.fromkeys(row["policy"] for row in rows):
        line(times, rows, x, SECONDS, policy)
        over = lead(rows, x, "a-greedy", policy)
        shares.errorbar(
            list(over),
            [edge.share for edge in over.values()],
            [edge.error for edge in over.values()],
            marker="o",
            markersize=4,
            color=COLOURS[policy],
        )
    times.set_ylabel("total time (seconds per million tuples)")
    times.set_ylim(bottom=0)
    times.legend()
    shares.set_ylabel("total time over A-Greedy's (bars: standard error)")
    shares.yaxis.set_major_formatter(PercentFormatter(1))
    for axes in (times, shares):
        axes.set_xlabel(label)
        set_scale(axes, [row[x] for row in rows])


def set_scale(axes: "Axes", values: Sequence[float]) -> None:
    """A logarithmic scale with a mark at each value."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_xticks(sorted(set(values)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter(NullFormatter())


def mean_of(rows: list[Row], policy: str, column: str) -> float:
    """The mean over the seeds."""
    return fmean(summaries(rows, policy, column))
