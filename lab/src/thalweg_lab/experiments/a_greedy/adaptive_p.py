"""Beyond the paper: A-Greedy with a drop-profiling probability that falls while nothing changes.

The paper leaves that to future work (a-greedy-2004, section 10); `thalweg.ordering.sampling` says how it is done here.
A-Greedy with an adaptive p is set beside the same with p fixed at .01, on streams that are stable, whose
selectivities are permuted, and whose costs are exchanged between cheap and expensive filters. The last stream has
the change that is worst for it: a filter becomes the best by far, but only on tuples that the filters before it drop,
so that ordinary processing shows nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg_lab.experiments.a_greedy.change import (
    BLOCK,
    DROPS,
    SETTLED,
    SteadyStretch,
    mixed_costs,
    permuted,
    recovery,
    track,
)
from thalweg_lab.experiments.a_greedy.convergence import CHUNK, equal_costs, race, twin
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering import AGreedy
    from thalweg_lab.engine import EngineRun

STABLE, SELECTIVITIES, COSTS, HIDDEN = "stable", "selectivities change", "costs change", "hidden change"
FIXED, ADAPTIVE = "fixed p", "adaptive p"
COLOURS = {FIXED: "#d55e00", ADAPTIVE: "#0072b2"}

PERIODS = (100_000, 300_000, 1_000_000)
EXPENSIVE = {STABLE: 100, COSTS: 10}  # probes of the expensive filters; all are cheap in the other scenarios
SETTLE = 10  # chunks after which p has fallen to its floor
FRACTION = 0.2  # of the fixed p's extra evaluations and overhead, at most
NO_WORSE = 1.02
LATER = 12.0  # times, at most: p falls to a tenth


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The scenarios, with several seeds."""
    seeds = 4 if quick else 16
    changing = [
        {"scenario": scenario, "period": period, "changes": max(3, 1_500_000 // period)}
        for scenario in (SELECTIVITIES, COSTS)
        for period in PERIODS
    ]
    stable = {"scenario": STABLE, "tuples": 2_000_000, "turns": 8 if quick else 30}
    hidden = {"scenario": HIDDEN, "before": 600_000, "after": 1_600_000}
    return [scenario | {"seed": seed} for scenario in (stable, *changing, hidden) for seed in range(seeds)]


def measure(setting: Setting) -> list[Row]:
    """One scenario; a row for the fixed p and a row for the adaptive p."""
    measures = {STABLE: stable, SELECTIVITIES: permuting, COSTS: exchanging, HIDDEN: hiding}
    about = {key: setting[key] for key in ("scenario", "period", "seed") if key in setting}
    return [about | {"policy": name} | row for name, row in measures[setting["scenario"]](setting).items()]


def contestants(setting: Setting, *, equal: bool = True) -> "dict[str, AGreedy]":
    """A-Greedy with a fixed and with an adaptive p, to which all filters seem to cost the same if they are equal."""
    from thalweg.ordering import AGreedy

    made = {name: AGreedy(len(DROPS), adaptive_p=name == ADAPTIVE, seed=setting["seed"]) for name in (FIXED, ADAPTIVE)}
    for policy in made.values():
        if equal:
            equal_costs(policy)
    return made


def stable(setting: Setting) -> dict[str, Row]:
    """No change: the extra evaluations from the first tuple on, and the time beyond that of the same order, held."""
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    stream = permuted(random).workload
    engine = Engine([1] * len(DROPS), seed=setting["seed"])
    runs = engine.race(contestants(setting), stream.chunks(setting["tuples"], random))
    engine = Engine(mixed_costs(EXPENSIVE[STABLE], random), seed=setting["seed"])
    policies = contestants(setting, equal=False)
    engine.race(policies, stream.chunks(SETTLE * CHUNK, random))
    paces = race(engine, policies, stream, random, turns=setting["turns"], twins=True)
    return {
        name: totals([run]) | {"overhead": paces[name].seconds / paces[twin(name)].seconds - 1}
        for name, run in runs.items()
    }


def permuting(setting: Setting) -> dict[str, Row]:
    """The selectivities are permuted after each period."""
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    stretches = [permuted(random)]
    for _ in range(setting["changes"]):
        stretches.append(stretches[-1].changed(random))
    engine = Engine([1] * len(DROPS), seed=setting["seed"])
    spans = [(stretch, setting["period"]) for stretch in stretches]
    runs, tracks = track(engine, contestants(setting), spans, random)
    recovered = recoveries({name: [stretch.costs for stretch in way[1:]] for name, way in tracks.items()})
    return {name: totals([run]) | recovered[name] for name, run in runs.items()}


def exchanging(setting: Setting) -> dict[str, Row]:
    """After each period the cheap filters become expensive and the expensive filters cheap.

    Work is counted in probes: the probes of the orders, and the mean of the filters for each extra evaluation.
    """
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    costs = mixed_costs(EXPENSIVE[COSTS], random)
    exchanged = [1 + EXPENSIVE[COSTS] - cost for cost in costs]
    stream = permuted(random).workload
    sides = [
        (Engine(probes, seed=setting["seed"]), SteadyStretch(stream, random, probes)) for probes in (costs, exchanged)
    ]
    policies = contestants(setting, equal=False)
    runs: dict[str, list[EngineRun]] = {name: [] for name in policies}
    ways: dict[str, list[NDArray[np.float64]]] = {name: [] for name in policies}
    work = dict.fromkeys(policies, 0.0)
    for number in range(setting["changes"] + 1):
        engine, side = sides[number % 2]
        ran, tracks = track(engine, policies, [(side, setting["period"])], random)
        for name in policies:
            [way] = tracks[name]
            runs[name].append(ran[name])
            ways[name].append(way.costs)
            work[name] += BLOCK * way.costs.sum() * side.cost(side.greedy)
            work[name] += ran[name].extra_evaluations * fmean(costs)
    recovered = recoveries({name: way[1:] for name, way in ways.items()})
    return {name: totals(runs[name]) | recovered[name] | {"work": work[name]} for name in policies}


def hiding(setting: Setting) -> dict[str, Row]:
    """The last filter becomes the best, unseen: how many tuples pass until it is first."""
    from thalweg_lab.engine import Engine

    random = np.random.default_rng(setting["seed"])
    policies = contestants(setting)
    found = {name: int(setting["after"]) for name in policies}

    def chunks() -> Iterator[NDArray[np.int64]]:
        for _ in range(setting["before"] // BLOCK):
            yield hidden_masks(BLOCK, random, better=False)
        for start in range(0, setting["after"], BLOCK):
            for name, policy in policies.items():
                if policy.order[0] == len(DROPS) - 1:
                    found[name] = min(found[name], start)
            yield hidden_masks(BLOCK, random, better=True)

    runs = Engine([1] * len(DROPS), seed=setting["seed"]).race(policies, chunks())
    return {name: totals([run]) | {"recovery": found[name]} for name, run in runs.items()}


def hidden_masks(tuples: int, random: np.random.Generator, *, better: bool) -> NDArray[np.int64]:
    """Three filters drop three tenths of the tuples each, no tuple twice, and five drop a tenth each.

    The last of them, once better, drops also every tuple that one of the first three drops. Tuples that pass these
    three it drops as seldom as ever.
    """
    drops = random.random((tuples, len(DROPS))) < 0.1  # noqa: PLR2004 - a tenth
    kind = random.integers(10, size=tuples) // 3  # three tenths of the tuples are of each of the first three kinds
    drops[:, :3] = kind[:, None] == np.arange(3)
    if better:
        drops[:, -1] |= drops[:, :3].any(axis=1)
    masks: NDArray[np.int64] = drops @ (1 << np.arange(len(DROPS)))
    return masks


def totals(runs: "Sequence[EngineRun]") -> Row:
    """The evaluations of several runs; their sum is the work where all filters cost the same."""
    extra = sum(run.extra_evaluations for run in runs)
    evaluations = sum(run.evaluations for run in runs)
    return {"evaluations": evaluations, "extra_evaluations": extra, "work": evaluations + extra}


def recoveries(ways: Mapping[str, Sequence[NDArray[np.float64]]]) -> dict[str, Row]:
    """The mean, over the changes, of the tuples until an order's cost was as good as where the best policy settled."""
    tail = min(SETTLED, BLOCK * len(ways[FIXED][0]) // 4) // BLOCK
    levels = [min(float(costs[-tail:].mean()) for costs in stretch) for stretch in zip(*ways.values(), strict=True)]
    return {
        name: {"recovery": fmean(recovery(costs, level) for costs, level in zip(each, levels, strict=True))}
        for name, each in ways.items()
    }


class RatioWithError(NamedTuple):
    """A value with an adaptive p over the value with a fixed p, and its standard error over the seeds."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def ratio(rows: list[Row], column: str) -> RatioWithError:
    """How the sums over all seeds compare; the error is that of the mean of the seeds' own ratios.

    >>> two = [{"policy": name, "seed": 0, "work": work} for name, work in ((FIXED, 2.0), (ADAPTIVE, 3.0))]
    >>> ratio(two, "work")
    RatioWithError(value=1.5, error=0.0)
    """
    of = {name: [row[column] for row in rows if row["policy"] == name] for name in (FIXED, ADAPTIVE)}
    each = [adaptive / max(fixed, 1e-9) for adaptive, fixed in zip(of[ADAPTIVE], of[FIXED], strict=True)]
    error = stdev(each) / sqrt(len(each)) if len(each) > 1 else 0.0
    return RatioWithError(sum(of[ADAPTIVE]) / sum(of[FIXED]), error)


def judge(rows: list[Row]) -> list[Result]:
    """That an adaptive p costs a fraction where nothing changes, and is no worse where the stream changes."""
    calm = [row for row in rows if row["scenario"] == STABLE]
    extra, overhead = ratio(calm, "extra_evaluations"), ratio(calm, "overhead")
    shares = {name: fmean(row["overhead"] for row in calm if row["policy"] == name) for name in (FIXED, ADAPTIVE)}
    listed = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    costs = f"{STABLE}, expensive filters of cost {EXPENSIVE[STABLE]}"
    results = [
        at_most(f"{STABLE}, start included", "extra evaluations over the fixed p's", extra.value, FRACTION, str(extra)),
        at_most(
            costs, "overhead in time over the fixed p's", overhead.value, FRACTION, f"beyond the order held: {listed}"
        ),
    ]
    for scenario, work in ((SELECTIVITIES, "evaluations in all"), (COSTS, "probes in all")):
        for period in sorted({row["period"] for row in rows if row["scenario"] == scenario}):
            of = [row for row in rows if row["scenario"] == scenario and row["period"] == period]
            where = f"{scenario} every {period:,} tuples"
            results += [_no_worse(of, where, work, "work"), _no_worse(of, where, "tuples to recover", "recovery")]
    unseen = [row for row in rows if row["scenario"] == HIDDEN]
    late, more = ratio(unseen, "recovery"), ratio(unseen, "work")
    means = {name: fmean(row["recovery"] for row in unseen if row["policy"] == name) for name in (FIXED, ADAPTIVE)}
    note = ", ".join(f"{name} {value:,.0f} tuples" for name, value in means.items())
    note += f"; all evaluations over the fixed p's {more}"
    return [*results, at_most(HIDDEN, "time until found over the fixed p's", late.value, LATER, note)]


def _no_worse(rows: list[Row], scenario: str, measure: str, column: str) -> Result:
    compared = ratio(rows, column)
    return claim(
        scenario,
        f"{measure} over the fixed p's",
        compared.value,
        f"<= {NO_WORSE:g} and two standard errors",
        holds=compared.value <= NO_WORSE + 2 * compared.error,
        note=str(compared),
    )


def plot(rows: list[Row], figure: "Figure") -> None:
    """Extra evaluations, and tuples to recover, in each scenario."""
    from matplotlib.ticker import EngFormatter, PercentFormatter

    scenarios = list(dict.fromkeys((row["scenario"], row.get("period")) for row in rows))
    names = [scenario if period is None else f"{scenario}\nevery {period:,}" for scenario, period in scenarios]
    extra, recovering = figure.subplots(1, 2, sharey=True)
    for shift, policy in ((-0.2, FIXED), (0.2, ADAPTIVE)):
        at = [place + shift for place in range(len(scenarios))]
        by_scenario = [
            [row for row in rows if (row["scenario"], row.get("period")) == scenario and row["policy"] == policy]
            for scenario in scenarios
        ]
        shares = [
            fmean(row["extra_evaluations"] / (row["evaluations"] + row["extra_evaluations"]) for row in measured)
            for measured in by_scenario
        ]
        times = [fmean(row.get("recovery", 0) for row in measured) for measured in by_scenario]
        extra.barh(at, shares, 0.4, color=COLOURS[policy])
        recovering.barh(at, times, 0.4, color=COLOURS[policy], label=policy)
    extra.set_yticks(range(len(names)), names, fontsize=7)
    extra.invert_yaxis()
    extra.set_xlabel("extra evaluations, of all evaluations")
    extra.xaxis.set_major_formatter(PercentFormatter(1))
    recovering.set_xlabel("tuples from a change to recovery")
    recovering.xaxis.set_major_formatter(EngFormatter())
    recovering.legend(loc="upper right")


EXPERIMENT = Experiment(
    id="adaptive-p",
    title="An adaptive drop-profiling probability",
    source="beyond a-greedy-2004, section 10",
    claim="An adaptive p costs a fraction of a fixed p's overhead while nothing changes, and is no worse otherwise",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
