"""Queries of a kind that grow: the times of their micro-batches, the highest rate by these times, latency and lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from thalweg.sizing import Costs
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.counters import Counters, task_seconds
from thalweg_lab.benches.load.feed import ROW_BYTES
from thalweg_lab.benches.load.fit import Timed, expected_seconds, fitted_costs
from thalweg_lab.benches.load.loaded_query import LoadedQuery, PacedRun, QueryKind, Setting, running
from thalweg_lab.results import Result, at_most, claim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOAD = 0.8  # of the highest rate, at which latency and lag are measured
DELAY = 1  # seconds by which rows are kept longer than their window
SHORT_INTERVAL = 0.1  # seconds
FILL_SECONDS = 15  # of event time that come at once, to fill a window
ALLOWED_ERROR = 0.3
MOST_TIMES = 10  # the rows of measured micro-batches, that micro-batches are thought to grow to
HIGHEST = "highest rate, rows/s"
P50, P99 = (f"latency at {LOAD:.0%} of it, p{percentile}, s" for percentile in (50, 99))
LAG = f"rows that wait at {LOAD:.0%} of it"
SHOWN = "is shown"


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    rows: tuple[int, int]  # of all streams in micro-batches that come at once: few and many
    interval: float  # seconds from a micro-batch to the next
    warm_machine: int = 25  # micro-batches, before anything is measured
    warm_up: int = 3  # micro-batches of each query
    batches: int = 3  # of each size
    intervals: int = 6  # of rows that come in real time
    tries: int = 6  # to find the highest rate
    load_intervals: int = 12  # at each share of the highest rate

    @property
    def least_rate(self) -> float:
        """Rows a second for a query that sustains no rate."""
        return self.rows[0] / self.interval


@dataclass(frozen=True)
class MeasuredSetting:
    """A setting: times of micro-batches, the rate that they allow for, and a run in real time at a share of it."""

    setting: Setting
    timed: tuple[Timed, ...]
    highest: float  # rows a second; 0 if a micro-batch without rows takes longer than the interval
    paced: PacedRun
    tasks: float  # of a micro-batch, for each core
    sent_bytes: float  # of a row that is shuffled
    kept_rows: int  # in the windows of a join, at the end
    kept_bytes: float  # of such a row


def swept(
    spark: SparkSession,
    kind: QueryKind,
    fitted: Sequence[Setting],
    held_out: Sequence[Setting],
    effort: Effort,
    tick: Tick,
) -> list[Result]:
    """All settings, the costs that were fitted to some of them, and how far off the model is for the others."""
    settings = (*fitted, *held_out)
    warm_machine(spark, kind, fitted[0], effort)
    # In a random order: a machine that is still getting faster would favour the settings that come last.
    by_setting: dict[Setting, MeasuredSetting] = {}
    for place in np.random.default_rng(0).permutation(len(settings)):
        by_setting[settings[place]] = measured_setting(spark, kind, settings[place], effort)
        tick(len(by_setting), len(settings) + 1)
    used, checked = ([by_setting[setting] for setting in some] for some in (fitted, held_out))
    results = [result for found in (*used, *checked) for result in setting_results(kind, found, effort)]
    costs = costs_of(kind, used, task_seconds(spark))
    told = ", ".join(label(kind, found.setting) for found in used)
    note = f"fitted to {told}, with {effort.rows[0]:,} and {effort.rows[1]:,} rows a micro-batch"
    results += [
        claim(kind.name, field.name, getattr(costs, field.name), SHOWN, holds=True, note=note)
        for field in fields(costs)
    ]
    for found in checked:
        for timed in found.timed:
            expected = expected_seconds(costs, timed)
            results.append(
                at_most(
                    kind.name,
                    f"{label(kind, found.setting)}, {timed.rows:,} rows: error of the model, held out",
                    abs(expected / timed.seconds - 1),
                    ALLOWED_ERROR,
                    f"measured {timed.seconds:.2f} s, by the model {expected:.2f} s",
                )
            )
    tick(1, 1)
    return results


def measured_setting(spark: SparkSession, kind: QueryKind, setting: Setting, effort: Effort) -> MeasuredSetting:
    """Measure a setting, in one query."""
    with running(spark, kind, setting, effort.interval) as loaded:
        warm_up(loaded, setting, effort)
        cores = spark.sparkContext.defaultParallelism
        timed = times(loaded, kind, setting, effort, cores)
        highest = rate_of({each.rows: each.seconds for each in timed}, effort.interval)
        before = Counters.of(spark)
        paced = loaded.pace(LOAD * highest or effort.least_rate, effort.intervals)
        spent = Counters.of(spark).since(before)
        kept_rows, kept_bytes = rows_in_windows(loaded) if kind.condition is not None else (0, 0.0)
        return MeasuredSetting(
            setting,
            timed,
            highest,
            paced,
            tasks=spent.tasks / paced.batches / cores,
            sent_bytes=spent.shuffled / paced.rows / kind.copies(setting),
            kept_rows=kept_rows,
            kept_bytes=kept_bytes,
        )


def warm_machine(spark: SparkSession, kind: QueryKind, setting: Setting, effort: Effort) -> None:
    """Let the JVM compile what all queries of a kind run."""
    with running(spark, kind, setting, SHORT_INTERVAL) as loaded:
        for _ in range(effort.warm_machine):
            loaded.burst(effort.rows[1])


def warm_up(loaded: LoadedQuery, setting: Setting, effort: Effort) -> None:
    """Let processes start and compile, and fill the window with a part of the rows that will come."""
    for _ in range(effort.warm_up):
        loaded.burst(effort.rows[1])
    for begin in range(0, setting.window if setting.window > 1 else 0, FILL_SECONDS):
        seconds = min(FILL_SECONDS, setting.window - begin)
        loaded.burst(effort.rows[1] // 3 * seconds, seconds)


def times(loaded: LoadedQuery, kind: QueryKind, setting: Setting, effort: Effort, cores: int) -> tuple[Timed, ...]:
    """The times of micro-batches with few and with many rows."""
    found = []
    for rows in effort.rows:
        seconds = loaded.bursts(rows, effort.batches)
        kept = loaded.kept(setting.window + DELAY) if kind.condition is not None else 0
        found.append(Timed(rows, setting.parts, kept, kind.copies(setting), cores, seconds))
    return tuple(found)


def rate_of(seconds: Mapping[int, float], interval: float) -> float:
    """The rows a second of micro-batches that take as long as the interval, by the times of two sizes.

    >>> rate_of({1000: 0.2, 2000: 0.3}, interval=1.0), rate_of({1000: 1.2, 2000: 1.3}, interval=1.0)
    (9000.0, 0.0)
    """
    (few, short), (many, long) = sorted(seconds.items())
    row = max(long - short, 1e-9) / (many - few)
    return min(max(many + (interval - long) / row, 0.0), MOST_TIMES * many) / interval


def rows_in_windows(loaded: LoadedQuery) -> tuple[int, float]:
    """How many rows the windows of a join have, and the memory of a row."""
    import thalweg as tw

    (description,) = tw.explain(loaded.query).joins
    rows = sum(source["rows_in_state"] for source in description["inputs"].values())
    return rows, float(description["memory_bytes"] / max(rows, 1))


def costs_of(kind: QueryKind, measured: Sequence[MeasuredSetting], task: float) -> Costs:
    """The costs that explain settings best; bytes are those of the setting with the most rows."""
    own = ROW_BYTES if kind.condition is not None else 0  # other queries do not send the rows themselves
    tasks = min(found.tasks for found in measured)
    sent = max(max(measured, key=lambda found: found.paced.rows).sent_bytes - own, 0.0)
    kept = max(max(measured, key=lambda found: found.kept_rows).kept_bytes - own, 0.0)
    timed = [timed for found in measured for timed in found.timed]
    return fitted_costs(timed, task=task, tasks=tasks, sent_bytes=sent, kept_bytes=kept)


def setting_results(
    kind: QueryKind, found: MeasuredSetting, effort: Effort, *, scenario: str | None = None, place: str = ""
) -> list[Result]:
    """The rate of a setting, and latency and lag at a share of it."""
    scenario, name = scenario or kind.name, label(kind, found.setting) + place
    taken = ", ".join(f"{timed.rows:,} rows in {timed.seconds:.2f} s" for timed in found.timed)
    note = f"a micro-batch each {effort.interval:g} s; micro-batches of {taken}"
    run = found.paced
    told = f"{effort.intervals * effort.interval:g} s of {about(run)}"
    return [
        claim(scenario, f"{name}: {HIGHEST}", found.highest, SHOWN, holds=True, note=note),
        *(
            claim(scenario, f"{name}: {measure}", value, "is sustained", holds=run.is_sustained, note=told)
            for measure, value in ((P50, run.latencies[0]), (P99, run.latencies[1]), (LAG, run.lag))
        ),
    ]


def about(run: PacedRun) -> str:
    """A run in real time, for notes."""
    return f"{run.rate:,.0f} rows/s in micro-batches of {run.batch_seconds:.2f} s"


def label(kind: QueryKind, setting: Setting) -> str:
    """The name of a setting in results.

    >>> join = QueryKind("join", ("stream", "streams"), None)
    >>> label(join, Setting(3)), label(join, Setting(3, window=60)), label(join, Setting(3, is_chain=True, cells=8))
    ('3 streams', '3 streams, window of 60 s', '3 streams in a chain, 8 cells')
    """
    parts = f"{setting.parts} {kind.part[setting.parts > 1]}"
    if setting.is_chain:
        return f"{parts} in a chain, {setting.cells} cells"
    return parts if setting.window == 1 else f"{parts}, window of {setting.window} s"
