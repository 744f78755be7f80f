"""The demonstration: a drifting, correlated stream through adaptive filters on local Spark.

A Structured Streaming query runs four strategies side by side over the same rows and counts how many filters each
evaluates. The rows are numbers; whether a filter drops a row is a function of the number, so every run sees the same
stream. Filters come in correlated pairs, and their drop rates change places from phase to phase.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from thalweg.ordering import AGreedy, AsWritten, Independent, Policy, optimal_order
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.types import Booleans, Floats, Integers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PHASES = (  # drop rates of the six filters, a line a phase; neighbours decide alike on most rows
    (0.10, 0.15, 0.30, 0.35, 0.60, 0.65),
    (0.60, 0.65, 0.10, 0.15, 0.30, 0.35),
    (0.30, 0.35, 0.60, 0.65, 0.10, 0.15),
)
FILTERS = len(PHASES[0])
SHARED = 0.8  # share of the rows on which a filter decides by its pair's common number
ROWS_PER_BATCH = 40_000
BATCHES_PER_PHASE = 15
BATCHES = BATCHES_PER_PHASE * len(PHASES)
PHASE_ROWS = ROWS_PER_BATCH * BATCHES_PER_PHASE
SEED = 2004
SCHEMA = "strategy string, phase long, tuples long, evaluations long, kept long"

OPTIMAL = "optimal"
STRATEGIES = (AsWritten.name, Independent.name, AGreedy.name, OPTIMAL)


def uniform(rows: Integers, salt: int) -> Floats:
    """A number in [0, 1) for each row, the same in every run (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(SEED + salt)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def keeps(filter_index: int) -> Callable[[Integers], Booleans]:
    """A filter of the demonstration, by its index: which rows it keeps."""

    def keep(rows: Integers) -> Booleans:
        drop = np.array([phase[filter_index] for phase in PHASES])[phase_of(rows)]
        shares = uniform(rows, 3 * filter_index) < SHARED
        number = np.where(shares, uniform(rows, 100 + filter_index // 2), uniform(rows, 3 * filter_index + 1))
        return np.asarray(number >= drop)

    return keep


def phase_of(rows: Integers) -> Integers:
    """Which phase of the stream each row belongs to."""
    return np.asarray(rows // PHASE_ROWS % len(PHASES))


_pipelines: dict[str, Pipeline] = {}  # of this worker process: they go on learning from task to task


def pipeline(strategy: str, phase: int, clock: Callable[[], float] = time.perf_counter) -> Pipeline:
    """The worker's pipeline of a strategy; the optimum knows each phase beforehand: a pipeline for each phase."""
    key = f"{strategy} {phase}" if strategy == OPTIMAL else strategy
    if key not in _pipelines:
        kinds: dict[str, type[Policy]] = {Independent.name: Independent, AGreedy.name: AGreedy}
        order = optimal_of(phase) if strategy == OPTIMAL else None
        policy = kinds.get(strategy, AsWritten)(FILTERS, order=order)
        _pipelines[key] = Pipeline(policy, [keeps(filter_index) for filter_index in range(FILTERS)], clock=clock)
    return _pipelines[key]


def optimal_of(phase: int) -> tuple[int, ...]:
    """The cheapest order of a phase, from rows of its own."""
    rows = np.arange(phase * PHASE_ROWS, phase * PHASE_ROWS + 20_000)
    masks = sum((~keeps(filter_index)(rows)).astype(np.int64) << filter_index for filter_index in range(FILTERS))
    return optimal_order(masks, np.ones(FILTERS))


def run_strategies(
    batches: Iterable[pa.RecordBatch], clock: Callable[[], float] = time.perf_counter
) -> Iterator[pa.RecordBatch]:
    """Worker side: every strategy filters every row; a line of counts each."""
    for batch in batches:
        rows = batch.column("value").to_numpy()
        for phase in np.unique(phase_of(rows)).tolist():
            part = rows[phase_of(rows) == phase]
            for strategy in STRATEGIES:
                line = pipeline(strategy, phase, clock)
                before = line.evaluations + line.extra_evaluations
                kept = int(line.keep(part).sum())
                spent = line.evaluations + line.extra_evaluations - before
                names = ["strategy", "phase", "tuples", "evaluations", "kept"]
                values = [[strategy], [phase], [part.size], [spent], [kept]]
                yield pa.record_batch(values, names)


def main(console: Console) -> None:
    """Run the demonstration and show its results."""
    from thalweg.spark.start import local_session

    console.print(
        f"[bold]{FILTERS} correlated filters[/] on a stream whose drop rates change places "
        f"every {PHASE_ROWS:,} rows, on local Spark."
    )
    with console.status("Starting Spark ..."):
        spark = local_session("thalweg-demo")
    stream = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", ROWS_PER_BATCH)
        .option("numPartitions", 2)
        .option("startTimestamp", 0)
        .load()
    )
    counted = stream.select("value").mapInArrow(run_strategies, SCHEMA)
    totals: Counter[tuple[str, int, str]] = Counter()
    finished = threading.Event()
    try:
        with Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
        ) as progress:
            task = progress.add_task("micro-batches", total=BATCHES)

            def take(frame: DataFrame, number: int) -> None:
                if number >= BATCHES:
                    finished.set()
                    return
                for row in frame.collect():
                    for measure in ("tuples", "evaluations", "kept"):
                        totals[row["strategy"], row["phase"], measure] += row[measure]
                progress.update(task, completed=number + 1)

            query = counted.writeStream.foreachBatch(take).start()
            while not finished.wait(0.2) and query.isActive:
                pass
            query.stop()
            failure: Any = query.exception()
            if failure:
                raise failure
    finally:
        spark.stop()
    console.print(closing_table(totals))


def closing_table(totals: Counter[tuple[str, int, str]]) -> Table:
    """Filters evaluated per tuple, profiling included, in each phase and over all."""
    table = Table(title="Filters evaluated per tuple (profiling included)")
    table.add_column("strategy")
    phases = range(len(PHASES))
    for phase in phases:
        table.add_column(f"phase {phase + 1}", justify="right")
    table.add_column("all", justify="right", style="bold")
    table.add_column("rows kept", justify="right")
    for strategy in STRATEGIES:
        evaluations = [totals[strategy, phase, "evaluations"] for phase in phases]
        tuples = [totals[strategy, phase, "tuples"] for phase in phases]
        cells = [f"{e / t:.2f}" for e, t in zip([*evaluations, sum(evaluations)], [*tuples, sum(tuples)], strict=True)]
        kept = sum(totals[strategy, phase, "kept"] for phase in phases)
        table.add_row(strategy, *cells, f"{kept:,}")
    kept_by_all = {sum(totals[strategy, phase, "kept"] for phase in phases) for strategy in STRATEGIES}
    if len(kept_by_all) > 1:
        raise AssertionError(f"the strategies kept different rows: {kept_by_all}")
    return table
