"""cascade: learnt thresholds hold the stated precision and recall in at least 95 of 100 seeded runs. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "cascade"
RUNS = 100
ROWS, BATCH = 20_000, 500
KEEPS = 0.4  # share of the rows that the costly predicate keeps
NOISE = 0.15  # of the score
PRECISION, RECALL, CONFIDENCE = 0.9, 0.9, 0.95


def measure(
    spark: SparkSession | None,  # noqa: ARG001 - as all scenarios
    tick: Callable[[int, int], None],
    *,
    runs: int = RUNS,
) -> list[Result]:
    """In how many runs both hold, and how many rows the costly predicate was not asked for."""
    found = []
    for seed in range(runs):
        found.append(_run(seed))
        tick(seed + 1, runs)
    held = sum(precision >= PRECISION and recall >= RECALL for precision, recall, _ in found) / runs
    spared = float(np.mean([share for _, _, share in found]))
    note = f"{ROWS:,} rows each, precision and recall {PRECISION:g}, confidence {CONFIDENCE:g}; {spared:.0%} spared"
    return [
        at_least(NAME, "share of runs that hold precision and recall", held, 0.95, note),
        at_least(NAME, "rows that the costly predicate is not asked for", spared, 0.2),
    ]


def _run(seed: int) -> tuple[float, float, float]:
    """The precision and the recall of a run, and the share of rows that were spared."""
    from thalweg.spark.filters.worker.cascade.proxy import Proxy
    from thalweg.spark.filters.worker.cascade.thresholds import Promise

    random = np.random.default_rng(seed)
    hidden = random.random(ROWS)
    scores, truths = hidden + random.normal(0, NOISE, ROWS), hidden > 1 - KEEPS
    proxy = Proxy(None, Promise(PRECISION, RECALL, CONFIDENCE), seed=seed)
    kept = np.zeros(ROWS, np.bool_)
    for start in range(0, ROWS, BATCH):
        part = slice(start, start + BATCH)
        split = proxy.split(scores[part])
        kept[part] = split.accepted | (split.asked & truths[part])
        proxy.note(scores[part][split.asked], truths[part][split.asked])
    return float(truths[kept].mean()), float(kept[truths].mean()), proxy.spared / ROWS
