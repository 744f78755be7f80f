"""What learning one order costs beside a clairvoyant, and how soon a hidden change is followed."""

from __future__ import annotations

from statistics import mean, median

import numpy as np

from thalweg.ordering import greedy_order, optimal_order, order_cost
from thalweg.ordering.types import Integers
from thalweg_lab.benches.adaptivity.streams import (
    FILTERS,
    KNOWN,
    batches,
    drawn_workload,
    gradual,
    returning,
    run_stream,
    stationary,
    sudden,
    where_pipeline,
    where_policy,
)
from thalweg_lab.results import Result, at_most

# Each stream with the most evaluations that there should be for each evaluation of the clairvoyant.
RATIOS = {
    "stationary": (stationary, 1.02),
    "sudden": (sudden, 1.05),
    "gradual": (gradual, 1.05),
    "returning": (returning, 1.06),
}
QUIET = 1_000_000  # rows before a hidden change, and rows among which false restarts are counted
DEAREST = 1.5  # costs of filters are from 1 to 10 to this power
MATTERS = 0.01  # share of the cost that an order has to save to be worth a look
PIECE = 2000  # rows after which the order is looked at


def ratio(name: str, seeds: int) -> list[Result]:
    """Evaluations, profiling included, for each evaluation of the clairvoyant."""
    stream, most = RATIOS[name]
    found = [run_stream(where_pipeline(where_policy(seed)), stream(seed)) for seed in range(seeds)]
    ratios = [regret.ratio for regret in found]
    note = f"{seeds} streams, from {min(ratios):.3f} to {max(ratios):.3f}; {sum(r.restarts for r in found)} restarts"
    return [at_most(name, "evaluations / clairvoyant's", mean(ratios), most, note)]


def hidden(seeds: int) -> list[Result]:
    """Rows until the order follows a change that no count of ordinary processing shows."""
    rows = []
    for seed in range(seeds):
        masks, dropper = hidden_change(seed)
        pipeline = where_pipeline(where_policy(seed))
        for batch in batches(masks[:QUIET]):
            pipeline.keep(batch)
        start = QUIET
        while start < masks.size and pipeline.policy.order[0] != dropper:
            pipeline.keep(masks[start : start + PIECE])
            start += PIECE
        rows.append(start - QUIET)
    note = f"{seeds} streams, after {QUIET:,} quiet rows; from {min(rows):,} to {max(rows):,} rows"
    return [at_most("hidden", "rows until a hidden change is followed, median", median(rows), 30_000, note)]


def quiet(seeds: int) -> list[Result]:
    """Restarts and detected changes where nothing changes."""
    restarts = detected = 0
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        pipeline = where_pipeline(where_policy(seed))
        for batch in batches(drawn_workload(random).masks(QUIET, random)):
            pipeline.keep(batch)
        restarts += len(pipeline.restarts)
        detected += getattr(pipeline.policy, "detected", 0)
    note = f"{restarts} restarts and {detected} detected changes in {seeds} streams of {QUIET:,} rows"
    return [at_most("quiet", "false restarts in a million rows", (restarts + detected) / seeds, 1, note)]


def optimum(seeds: int) -> list[Result]:
    """How much the greedy order costs more than the best order of all, where filters differ in cost."""
    gaps = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        masks = drawn_workload(random).masks(KNOWN, random)
        dropped, costs = masks[masks > 0], 10.0 ** random.uniform(0.0, DEAREST, FILTERS)
        greedy, best = greedy_order(dropped, costs), optimal_order(dropped, costs)
        gaps.append(order_cost(dropped, greedy, costs) / order_cost(dropped, best, costs) - 1.0)
    often = sum(gap > MATTERS for gap in gaps)
    note = f"{seeds} workloads, at most {max(gaps):.3%}, on average {mean(gaps):.3%}; more than 1% in {often}"
    return [at_most("optimum", "share of workloads in which greedy costs 1% more", often / seeds, 0.05, note)]


def hidden_change(seed: int) -> tuple[Integers, int]:
    """A stream whose last filter begins to drop all rows that the first two drop, and no other rows more often.

    Returns the drop masks, and the filter that should run first then.
    """
    random = np.random.default_rng(seed)
    masks = drawn_workload(random).masks(2 * QUIET, random)
    order = greedy_order(masks[:KNOWN], np.ones(FILTERS))
    later = masks[QUIET:]
    later[(later & (1 << order[0] | 1 << order[1])) > 0] |= 1 << order[-1]
    return masks, order[-1]
