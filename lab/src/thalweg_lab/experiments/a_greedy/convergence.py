"""Shared by the convergence experiments: the pace of policies that have settled on a stable stream.

Policies begin in random orders and learn until they have settled; then they process further chunks in turn.
Times are the processor's, so that other work on the machine counts little. It still disturbs caches: therefore
times are compared chunk by chunk, and a policy's time is the mean of the middle half of these comparisons.

The paper's filters cost the same. Measured, filters at the end of an order do not: they take up to three times as long
as filters in front (seldom probed, their windows are probably out of the cache), which favours the present order.
Policies are therefore told that all cost the same, unless a setting says otherwise; the paper's policies measured.
(a-greedy-2004, sections 9.2 and 9.3)
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg_lab.experiments.a_greedy.plots import COLOURS, line
from thalweg_lab.experiments.experiment import Row, Setting
from thalweg_lab.results import Result, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering import Policy
    from thalweg_lab.engine import Engine, EngineRun
    from thalweg_lab.workload import Workload

CHUNK = 40_000  # tuples in a turn: some milliseconds, beside which starting a run is nothing
SAMPLE = 200_000  # tuples from which the optimal order is computed
SETTLED = 2  # times that a policy's window has turned over, Sweep's at every position

# Table 1; where p is None, each policy has its own.
DEFAULTS: Setting = {"filters": 8, "selectivity": 0.5, "gamma": 2, "p": None, "costs": "equal"}

# Where filters drop alike, chance decides on the order of Independent: several of it average over that.
RIVALS = {"a-greedy": 2, "independent": 8, "optimal": 1}

CLEARLY = 0.01  # a difference of edges that is no noise

TIME, EVALUATIONS = "nanoseconds_per_tuple", "evaluations_per_tuple"


@dataclass(frozen=True)
class Pace:
    """How a settled policy does with an average tuple of the stream."""

    seconds: float
    evaluations: float  # filters evaluated because the query needed them
    profiled: float  # the share of tuples that were profiled
    creation: float  # the share of time spent on making profile tuples
    changes: float  # of the order


class Edge(NamedTuple):
    """By which share a policy beats another policy, and the standard error of that over the seeds."""

    share: float
    error: float

    def __str__(self) -> str:
        return f"{self.share:+.1%} ± {self.error:.1%}"


def settings(changes: Iterable[Setting], *, quick: bool) -> list[Setting]:
    """Settings for `measure`: the defaults but for each change, with several seeds.

    >>> len(settings([{"filters": 2}, {"filters": 4}], quick=True))
    6
    """
    base = DEFAULTS | {"policies": RIVALS, "turns": 15 if quick else 30}
    seeds = range(3 if quick else 10)
    return [base | change | {"seed": seed} for change in changes for seed in seeds]


def measure(setting: Setting) -> list[Row]:
    """The pace of each policy of a setting, settled, in one race; a row a policy.

    With `twins`, each policy's order is also run by a policy that keeps it: the difference is the cost of adapting.
    """
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    stream = workload(setting)
    policies = contestants(setting, stream, random)
    engine = Engine([1] * stream.filters, seed=setting["seed"])
    settle(engine, policies, stream, random)
    paces = race(engine, policies, stream, random, turns=setting["turns"], twins=setting.get("twins", False))
    about = {key: setting[key] for key in (*DEFAULTS, "seed")}
    return [about | _row(name, paces) for name in policies]


def workload(setting: Setting) -> "Workload":
    """The stream of a setting."""
    from thalweg_lab.workload import Workload

    return Workload((1 - setting["selectivity"],) * setting["filters"], setting["gamma"])


def contestants(setting: Setting, stream: "Workload", random: np.random.Generator) -> "dict[str, Policy]":
    """The policies of a setting, as many of each as it says; policies that learn begin in random orders."""
    from thalweg.ordering import AsWritten, optimal_order, policy

    def make(name: str) -> "Policy":
        if name == "optimal":
            best = optimal_order(stream.masks(SAMPLE, random), np.ones(stream.filters))
            return AsWritten(stream.filters, order=best)
        order, seed = random.permutation(stream.filters).tolist(), int(random.integers(1 << 31))
        made = policy(name, stream.filters, order=order, p=setting["p"], adaptive_p=False, seed=seed)
        if setting["costs"] == "equal":
            equal_costs(made)
        return made

    copies = setting["policies"].items()
    return {f"{name} {copy}": make(name) for name, count in copies for copy in range(1, count + 1)}


def equal_costs(policy: "Policy") -> None:
    """Let filters seem to cost the same, by more samples than any measurement can outweigh."""
    from thalweg.ordering.profile import LEAST_TIME

    policy.profile.arrays.mean_time[:] = LEAST_TIME
    policy.profile.arrays.time_count[:] = 1 << 60


def settle(engine: "Engine", policies: "Mapping[str, Policy]", stream: "Workload", random: np.random.Generator) -> None:
    """Let the policies that learn do so until their windows have turned over often enough."""
    from thalweg.ordering import Sweep

    def is_settled(policy: "Policy") -> bool:
        positions = policy.filters - 1 if isinstance(policy, Sweep) else 1
        return policy.profile.seen >= SETTLED * positions * policy.profile.window

    learning = {name: policy for name, policy in policies.items() if policy.sampler.probability}
    while learning := {name: policy for name, policy in learning.items() if not is_settled(policy)}:
        engine.race(learning, [stream.masks(CHUNK, random)])


def race(
    engine: "Engine",
    policies: "Mapping[str, Policy]",
    stream: "Workload",
    random: np.random.Generator,
    *,
    turns: int,
    twins: bool,
) -> dict[str, Pace]:
    """Let policies, and their twins if wanted, process the same chunks in turn."""
    from thalweg.ordering import AsWritten

    runs: defaultdict[str, list[EngineRun]] = defaultdict(list)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(turns):
        racing = dict(policies)
        if twins:
            racing |= {twin(name): AsWritten(each.filters, order=each.order) for name, each in policies.items()}
        masks = stream.masks(CHUNK, random)
        for name in random.permutation(list(racing)):
            before = thread_time()
            runs[name].append(engine.run(racing[name], [masks]))
            times[name].append(thread_time() - before)
    seconds = {name: np.array(each) for name, each in times.items()}
    common = np.median(list(seconds.values()), axis=0)  # the time of a chunk, with the machine as it was in that turn
    undisturbed = float(np.quantile(common, 0.1)) / CHUNK
    return {
        name: Pace(
            seconds=undisturbed * middle(seconds[name] / common),
            evaluations=mean(run.evaluations for run in each) / CHUNK,
            profiled=mean(run.profiled for run in each) / CHUNK,
            creation=middle(np.array([run.creation_seconds for run in each]) / seconds[name]),
            changes=mean(run.changes for run in each) / CHUNK,
        )
        for name, each in runs.items()
    }


def twin(name: str) -> str:
    """The name of the policy that holds this policy's order."""
    return f"{name}, held"


def middle(values: NDArray[np.float64]) -> float:
    """The mean of the middle half.

    >>> middle(np.array([1.0, 2.0, 4.0, 900.0]))
    3.0
    """
    cut = values.size // 4
    return float(np.sort(values)[cut : values.size - cut].mean())


def edges(rows: list[Row], over: str, policy: str, other: str, cost: str = TIME) -> dict[float, Edge]:
    """By how much a policy beats another policy in each race, for each value of the varied parameter.

    >>> fast, slow = ({"n": 2, "seed": 0, "policy": name, TIME: time} for name, time in (("a", 20), ("b", 30)))
    >>> edges([fast, slow], "n", "a", "b")
    {2: Edge(share=0.5, error=0.0)}
    """
    costs: defaultdict[tuple[float, int], defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        costs[row[over], row["seed"]][row["policy"]].append(row[cost])
    shares: defaultdict[float, list[float]] = defaultdict(list)
    for (value, _), of in sorted(costs.items()):
        if policy in of and other in of:
            shares[value].append(mean(of[other]) / mean(of[policy]) - 1)
    return {
        value: Edge(mean(each), stdev(each) / sqrt(len(each)) if len(each) > 1 else 0.0)
        for value, each in shares.items()
    }


def listed(edges: Mapping[float, Edge]) -> str:
    """Edges as a note.

    >>> listed({2: Edge(0.5, 0.01), 4: Edge(0.25, 0.01)})
    '2: +50.0% ± 1.0%, 4: +25.0% ± 1.0%'
    """
    return ", ".join(f"{value:g}: {edge}" for value, edge in edges.items())


def rise_and_fall(rows: list[Row], over: str, between: tuple[float, float]) -> list[Result]:
    """Judge whether A-Greedy's edge over Independent is greatest somewhere between, and clearly less at both ends."""
    low, high = between
    results = []
    for cost, name in ((TIME, "rate"), (EVALUATIONS, "filters evaluated")):
        edge = edges(rows, over, "a-greedy", "independent", cost)
        best = max(edge, key=lambda value: edge[value].share)
        margin = edge[best].share - max(edge[min(edge)].share, edge[max(edge)].share)
        results.append(
            claim(
                f"{over} {min(edge):g} to {max(edge):g}",
                f"{over} of the greatest edge over Independent, in {name}",
                best,
                f"{low:g} to {high:g}, with an edge {CLEARLY:.0%} above those at the ends",
                holds=low <= best <= high and margin >= CLEARLY,
                note=listed(edge),
            )
        )
    return results


def draw(rows: list[Row], figure: "Figure", x: str, label: str) -> None:
    """The policies' rates, and beside them how they compare to A-Greedy's in the same race."""
    from matplotlib.ticker import EngFormatter, PercentFormatter

    rates, leads = figure.subplots(1, 2)
    for policy in dict.fromkeys(row["policy"] for row in rows):
        line(rates, rows, x, "tuples_per_second", policy)
        lead = edges(rows, x, policy, "a-greedy")
        leads.errorbar(
            list(lead),
            [edge.share for edge in lead.values()],
            [edge.error for edge in lead.values()],
            marker="o",
            markersize=4,
            color=COLOURS[policy],
        )
    rates.set_ylabel("processing rate (tuples per second)")
    rates.yaxis.set_major_formatter(EngFormatter())
    rates.set_ylim(bottom=0)
    rates.legend()
    leads.set_ylabel("rate over A-Greedy's (± standard error)")
    leads.yaxis.set_major_formatter(PercentFormatter(1))
    for axes in (rates, leads):
        axes.set_xlabel(label)


def _row(name: str, paces: Mapping[str, Pace]) -> Row:
    pace = paces[name]
    row: Row = {
        "policy": name.partition(" ")[0],
        "tuples_per_second": 1 / pace.seconds,
        TIME: 1e9 * pace.seconds,
        EVALUATIONS: pace.evaluations,
        "profiled_share": pace.profiled,
        "creation_share": pace.creation,
    }
    if twin(name) in paces:
        processing = 1e9 * paces[twin(name)].seconds
        row |= {"processing_nanoseconds": processing, "overhead_nanoseconds": row[TIME] - processing}
    return row
