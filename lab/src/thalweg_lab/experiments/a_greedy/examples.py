"""The worked examples of a-greedy-2004, whose numbers have one right answer, run through the policies themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, exactly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering.policy import Policy
    from thalweg.ordering.types import Integers

# Figure 2: which of the filters F1 F2 F3 F4 drop each tuple (F1 is bit 0), and the stream of tuples.
DROPS = {1: 0b0000, 2: 0b0100, 3: 0b1100, 4: 0b1110, 5: 0b1011, 6: 0b1011, 7: 0b0001}
STREAM = (1, 2, 1, 4, 7, 2, 5, 4)
LATER = (3, 6)  # example 5

PROBING, CORRECTING, CORRELATED, LOCAL = 2, 5, 6, 7  # the examples, by number
SIZES = (4, 5, 10, 20, 50)  # filters of examples 6 and 7: divisors of 100
A_GREEDY, INDEPENDENT, LOCAL_SWAPS = "a-greedy", "independent", "local-swaps"


def settings(_quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """The examples, those with n filters for several n."""
    sized = [{"example": example, "filters": filters} for example in (CORRELATED, LOCAL) for filters in SIZES]
    return [{"example": PROBING}, {"example": CORRECTING}, *sized]


def measure(setting: Setting) -> list[Row]:
    """The rows of one example."""
    measures: dict[int, Callable[[Setting], list[Row]]] = {
        PROBING: probes,
        CORRECTING: correction,
        CORRELATED: correlated,
        LOCAL: local_optimum,
    }
    return [{**setting, **row} for row in measures[setting["example"]](setting)]


def probes(_setting: Setting) -> list[Row]:
    """Example 2: the filters evaluated on the stream, in three orders and in the best."""
    from thalweg.ordering import optimal_order, order_cost

    masks = [DROPS[number] for number in STREAM]
    orders = [(0, 1, 2, 3), (2, 1, 3, 0), (2, 0, 1, 3), optimal_order(masks, np.ones(4))]
    return [{"what": what, "value": order_cost(masks, order) * 8} for what, order in zip(PROBES, orders, strict=True)]


def correction(_setting: Setting) -> list[Row]:
    """Examples 3 to 5: the matrix view before and after two more tuples, and the corrected order."""
    from thalweg.ordering import AGreedy, MatrixView

    policy = AGreedy(4, window=6, order=(2, 0, 1, 3))
    policy.update([DROPS[number] for number in STREAM if DROPS[number]])
    before = str(MatrixView.of(policy))
    policy.update([DROPS[number] for number in LATER])
    order = " ".join(f"F{number + 1}" for number in policy.order)
    values = (before, order, str(MatrixView.of(policy)))
    return [{"what": what, "value": value} for what, value in zip(CORRECTION, values, strict=True)]


def correlated(setting: Setting) -> list[Row]:
    """Example 6: filters 1 to n-1 keep the values 1..49, filter n keeps 50..100."""
    from thalweg.ordering import AGreedy, Independent, order_cost

    filters = setting["filters"]
    last = 1 << (filters - 1)
    values = np.repeat([last, last - 1], [49, 51])
    shuffled = np.random.default_rng(0).permutation(np.tile(values, 20))
    rows = []
    for policy in (AGreedy(filters), Independent(filters)):
        policy.update(shuffled)
        rows.append({"what": policy.name, "value": order_cost(values, policy.order)})
    return rows


def local_optimum(setting: Setting) -> list[Row]:
    """Example 7: filter i drops the i-th part of the values; then the last keeps only the part before its own."""
    from thalweg.ordering import AGreedy, LocalSwaps, order_cost

    filters = setting["filters"]
    part = np.arange(100) * filters // 100
    before = 1 << part
    last = 1 << (filters - 1)
    after = np.where(part == filters - 2, before, before | last)
    rows = []
    for policy in (AGreedy(filters), LocalSwaps(filters)):
        for values in (before, after):
            for _ in range(20):  # a window of 1000 is full of the new values after ten
                policy.update(profiled(policy, values))
        rows.append({"what": policy.name, "value": order_cost(after, policy.order)})
    return rows


def profiled(policy: Policy, masks: Integers) -> list[int]:
    """The masks that profiling reveals: the filter that drops a tuple, and the filters that the policy asks for."""
    known = []
    for mask in masks.tolist():
        position = next(place for place, number in enumerate(policy.order) if mask >> number & 1)
        known.append(sum(mask & 1 << number for number in (policy.order[position], *policy.needs(position))))
    return known


PROBES = {"F1 F2 F3 F4": 20.0, "F3 F2 F4 F1": 18.0, "F3 F1 F2 F4": 16.0, "the best order": 16.0}
CORRECTION = {
    "view of F3 F1 F2 F4": "4 2 3 3\n  2 1 1\n    0 0\n      0",
    "order after tuples 3 and 6": "F4 F3 F1 F2",
    "view after it": "4 3 3 3\n  1 1 0\n    1 0\n      0",
}


def expected(row: Row) -> float | str:
    """The paper's values; its printed 1 + 200/n in example 7 is a slip for 1 + 1/n."""
    example, what = row["example"], row["what"]
    if example == PROBING:
        return PROBES[what]
    if example == CORRECTING:
        return CORRECTION[what]
    n = int(row["filters"])
    costs = {
        (CORRELATED, A_GREEDY): 1.49,
        (CORRELATED, INDEPENDENT): 0.49 * n + 0.51,
        (LOCAL, A_GREEDY): 1 + 1 / n,
        (LOCAL, LOCAL_SWAPS): (n + 1) / 2,
    }
    return costs[example, what]


def judge(rows: list[Row]) -> list[Result]:
    """Each number beside the paper's."""
    results = []
    for row in rows:
        where = f"example {row['example']}" + (f", n = {row['filters']}" if "filters" in row else "")
        value, right = row["value"], expected(row)
        if isinstance(right, float):
            value, right = round(value, 6), round(right, 6)
        measure = (
            row["what"] if row["example"] in {PROBING, CORRECTING} else f"filters evaluated per tuple, {row['what']}"
        )
        results.append(exactly(where, measure, value, right))
    return results


def plot(rows: list[Row], figure: Figure) -> None:
    """Examples 6 and 7: cost against the number of filters."""
    for axes, example in zip(figure.subplots(1, 2), (CORRELATED, LOCAL), strict=True):
        chosen = [row for row in rows if row["example"] == example]
        for policy in dict.fromkeys(row["what"] for row in chosen):
            points = [(row["filters"], row["value"]) for row in chosen if row["what"] == policy]
            axes.plot(*zip(*points, strict=True), marker="o", label=policy)
        axes.set_title(f"example {example}")
        axes.set_xlabel("filters")
        axes.set_ylabel("filters evaluated per tuple")
        axes.legend()


EXPERIMENT = Experiment(
    id="examples",
    title="The worked examples",
    source="a-greedy-2004, examples 2 to 7",
    claim="20, 18 and 16 probes; both matrix views and the corrected order; the costs of examples 6 and 7",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
