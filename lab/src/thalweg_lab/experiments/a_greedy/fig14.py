"""Figure 14: how fast policies process tuples, against the cost of the expensive half of eight filters.

The paper does not give p; it is .05 here as in figures 12 and 13, of which this is the continuation: at .01 profiling
everything costs a tenth of the time, far from the quarter that figure 15 shows.

Two streams are measured. *Alike*: Table 1's, where every filter has a selectivity of 50%; the four cheap filters make
two groups, the four expensive filters the other two. On it LocalSwaps has nothing to miss: `worst_stable` finds
no order that it would leave alone and that costs more than the optimum. *Mixed*: the different selectivities of section
9.4, with a cheap and an expensive filter in each group. There an expensive filter hides the cheap filter of its group:
the cheap filter hardly drops tuples that pass the expensive filter, so that the two are not swapped, although the cheap
filter alone does better.
"""

from collections.abc import Sequence
from itertools import permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg_lab.experiments.a_greedy.change import ALPHA, DROPS, set_scale
from thalweg_lab.experiments.a_greedy.convergence import CHUNK, EVALUATIONS, TIME, edges, listed, race, twin
from thalweg_lab.experiments.a_greedy.plots import line
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg_lab.workload import Workload

COSTS = (1, 10, 50, 100)
PROBABILITY = 0.05  # of drop-profiling
LEARNERS = ("a-greedy", "sweep", "local-swaps", "independent")
POLICIES = ("optimal", *LEARNERS)
SETTLE = 10  # chunks that the policies learn from first: twenty windows
SAMPLE = 200_000  # tuples from which the optimal order is computed
LEAST = 0.03  # a share of the rate that counts as a lead
MISSED = 1.03  # an order that costs this many times the optimum's misses it

ALIKE, MIXED = "alike", "mixed"


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Costs of the expensive filters, for both streams; orders differ much from seed to seed where mixed."""
    if quick:
        return [*settings_of(ALIKE, (1, 100), seeds=2, turns=6), *settings_of(MIXED, (50, 100), seeds=6, turns=4)]
    return [*settings_of(ALIKE, COSTS, seeds=8, turns=15), *settings_of(MIXED, COSTS, seeds=16, turns=6)]


def settings_of(stream: str, costs: Sequence[int], *, seeds: int, turns: int) -> list[Setting]:
    """Settings for one stream."""
    base: Setting = {"stream": stream, "turns": turns}
    return [base | {"cost": cost, "seed": seed} for cost in costs for seed in range(seeds)]


def measure(setting: Setting) -> list[Row]:
    """The pace of each policy, settled, in one race, and how good its order is; a row a policy."""
    from thalweg.ordering import AsWritten, Policy, optimal_order, order_cost, policy
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    stream, costs = stream_of(setting, random)
    engine = Engine(costs, seed=setting["seed"])
    options: dict[str, Any] = {"p": PROBABILITY, "adaptive_p": False, "seed": setting["seed"]}
    options["order"] = random.permutation(stream.filters).tolist()
    learners = {name: policy(name, stream.filters, **options) for name in LEARNERS}
    engine.race(learners, (stream.masks(CHUNK, random) for _ in range(SETTLE)))

    # A filter of cost 100 does not take 100 times as long: its probes do not wait for each other. What is optimal
    # therefore follows from the times that the policies go by, averaged over filters that cost the same.
    seen = learners["a-greedy"].profile.mean_times
    times = np.array([seen[np.array(costs) == cost].mean() for cost in costs])
    sample = stream.masks(SAMPLE, random)
    best = optimal_order(sample, times)
    policies: dict[str, Policy] = {"optimal": AsWritten(stream.filters, order=best)} | learners
    paces = race(engine, policies, stream, random, turns=setting["turns"], twins=True)
    about = {key: setting[key] for key in ("stream", "cost", "seed")}
    stable = worst_stable(sample, times)
    return [
        about
        | {
            "policy": name,
            "tuples_per_second": 1 / paces[name].seconds,
            TIME: 1e9 * paces[name].seconds,
            EVALUATIONS: paces[name].evaluations,
            "creation_share": paces[name].creation,
            "processing_nanoseconds": 1e9 * paces[twin(name)].seconds,
            "overhead_nanoseconds": 1e9 * (paces[name].seconds - paces[twin(name)].seconds),
            "order_cost": order_cost(sample, each.order, times) / order_cost(sample, best, times),
            "worst_stable": stable,
        }
        for name, each in policies.items()
    ]


def stream_of(setting: Setting, random: np.random.Generator) -> "tuple[Workload, list[int]]":
    """A setting's stream, and its filters' costs."""
    from thalweg_lab.workload import Workload

    cost, half = setting["cost"], len(DROPS) // 2
    if setting["stream"] == ALIKE:
        return Workload((0.5,) * len(DROPS)), [1] * half + [cost] * half
    return Workload(DROPS).permuted(random), [1, cost] * half


def worst_stable(masks: NDArray[np.int64], costs: NDArray[np.float64]) -> float:
    """The cost of the worst order in which LocalSwaps sees no two neighbours to swap, over the optimum's.

    >>> masks = np.array([0b01, 0b10, 0b10, 0b10])
    >>> worst_stable(masks, np.array([1.0, 1.0])), worst_stable(masks, np.array([1.0, 3.0]))
    (1.0, 1.0)
    """
    filters = costs.size
    subsets = np.arange(1 << filters)
    share = np.bincount(masks, minlength=subsets.size) / masks.size
    reaching = np.where(subsets[:, None] & subsets, 0.0, share)  # of each mask, past the filters of a subset
    dropped = np.array([reaching @ (subsets >> number & 1) for number in range(filters)])
    ranks = dropped / costs[:, None]
    orders = np.array(list(permutations(range(filters))))
    before = np.cumsum(1 << orders, axis=1) - (1 << orders)
    total = (costs[orders] * reaching.sum(axis=1)[before]).sum(axis=1)
    first, then = ranks[orders[:, :-1], before[:, :-1]], ranks[orders[:, 1:], before[:, :-1]]
    stable = (first >= ALPHA * then).all(axis=1)
    return float(total[stable].max() / total.min())


def judge(rows: list[Row]) -> list[Result]:
    """That lower overheads win, and that LocalSwaps misses the optimum, and so falls behind Sweep, at high costs."""
    results = []
    alike = [row for row in rows if row["stream"] == ALIKE]
    dear = max(row["cost"] for row in alike)
    for policy in ("sweep", "local-swaps"):
        lead = edges(alike, "cost", policy, "a-greedy")
        results.append(
            at_least(f"{ALIKE}, c = {dear}", f"rate, {policy} over a-greedy", lead[dear].share, LEAST, listed(lead))
        )
    for stream in (ALIKE, MIXED):
        of = [row for row in rows if row["stream"] == stream and row["policy"] == "local-swaps"]
        results += [_missed(of, stream, cost) for cost in (50, 100) if any(row["cost"] == cost for row in of)]
    mixed = edges([row for row in rows if row["stream"] == MIXED], "cost", "sweep", "local-swaps")
    results.append(
        at_least(f"{MIXED}, c = {dear}", "rate, sweep over local-swaps", mixed[dear].share, LEAST, listed(mixed))
    )
    return results


def _missed(rows: list[Row], stream: str, cost: int) -> Result:
    of = [row for row in rows if row["cost"] == cost]
    ratio = fmean(row["order_cost"] for row in of)
    worst = max(row["worst_stable"] for row in of)
    note = f"no order that it would leave alone costs more than {worst:.2f} times the optimum"
    return at_least(f"{stream}, c = {cost}", "cost of LocalSwaps's order over the optimum's", ratio, MISSED, note)


def plot(rows: list[Row], figure: "Figure") -> None:
    """A line for each policy: the stream of Table 1, and beside it mixed selectivities."""
    from matplotlib.ticker import EngFormatter

    for place, stream in enumerate((ALIKE, MIXED)):
        axes = figure.add_subplot(1, 2, place + 1)
        of = [row for row in rows if row["stream"] == stream]
        for policy in POLICIES:
            line(axes, of, "cost", "tuples_per_second", policy)
        axes.set_xlabel(f"cost c of four filters (probes), {stream}")
        axes.set_ylabel(f"processing rate at p = {PROBABILITY} (tuples per second)")
        axes.yaxis.set_major_formatter(EngFormatter())
        axes.set_ylim(bottom=0)
        set_scale(axes, [row["cost"] for row in of])
        axes.legend()


EXPERIMENT = Experiment(
    id="fig14",
    title="Varying the filter cost",
    source="a-greedy-2004, figure 14",
    claim="Sweep and LocalSwaps outperform A-Greedy; LocalSwaps misses the optimal order at c = 50 and c = 100",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
