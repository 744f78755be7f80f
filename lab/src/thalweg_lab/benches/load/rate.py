"""The highest rate that a query sustains, found by trial, and latency and lag at shares of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.loaded_query import PacedRun, QueryKind, Setting, running
from thalweg_lab.benches.load.sweep import HIGHEST, Effort, about, label, rate_of, times, warm_machine, warm_up
from thalweg_lab.results import Result, claim

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOADS = (0.5, 0.8, 0.95)  # of the highest rate
STEP = 1.15  # from a rate that is tried to the next, until one is sustained and the next is not
FIRST = 0.8  # of the rate that the times of micro-batches promise


def load_measures(load: float) -> tuple[str, str, str]:
    """The names of what is measured at a share of the highest rate."""
    share = f"at {load:.0%} of it"
    return f"{share}: latency, p50, s", f"{share}: latency, p99, s", f"{share}: rows that wait"


def measured_rate(spark: SparkSession, kind: QueryKind, setting: Setting, effort: Effort, tick: Tick) -> list[Result]:
    """The highest rate, and what rows take at shares of it."""
    scenario, steps = f"{kind.name}-rate", effort.tries + len(LOADS) + 1
    warm_machine(spark, kind, setting, effort)
    with running(spark, kind, setting, effort.interval) as loaded:
        warm_up(loaded, setting, effort)
        cores = spark.sparkContext.defaultParallelism
        timed = times(loaded, kind, setting, effort, cores)
        promised = rate_of({each.rows: each.seconds for each in timed}, effort.interval)
        tick(1, steps)
        first = FIRST * promised or effort.least_rate
        highest, tried = search(lambda rate: loaded.pace(rate, effort.intervals), first, effort.tries)
        tick(1 + effort.tries, steps)
        told = "; ".join(f"{about(run)}, {'' if run.is_sustained else 'not '}sustained" for run in tried)
        name = label(kind, setting)
        note = f"{name}, a micro-batch each {effort.interval:g} s; tried for {effort.intervals} of them: {told}"
        results = [claim(scenario, HIGHEST, highest, "is sustained", holds=highest > 0, note=note)]
        for number, load in enumerate(LOADS):
            run = loaded.pace(load * (highest or first), effort.load_intervals)
            taken = f"{effort.load_intervals * effort.interval:g} s of {about(run)}"
            values = (*run.latencies, run.lag)
            results += [
                claim(scenario, measure, value, "is sustained", holds=run.is_sustained, note=taken)
                for measure, value in zip(load_measures(load), values, strict=True)
            ]
            tick(2 + effort.tries + number, steps)
    return results


def search(run: Callable[[float], PacedRun], first: float, tries: int) -> tuple[float, list[PacedRun]]:
    """The highest rate that was sustained, 0 if none was, and all runs: up or down by steps, and then between two.

    >>> from dataclasses import replace
    >>> some = PacedRun(0.0, (0.0, 0.0), 0, 0.0, True, 0, 0)
    >>> found, runs = search(lambda rate: replace(some, rate=rate, is_sustained=rate <= 150), first=100, tries=8)
    >>> round(found), [round(run.rate) for run in runs]
    (142, [100, 115, 132, 152, 142])
    """
    runs: list[PacedRun] = []
    rate, low, high = first, 0.0, float("inf")
    while len(runs) < tries:
        runs.append(run(rate))
        if runs[-1].is_sustained:
            low = rate
        else:
            high = rate
        if low and high <= low * STEP**0.6:
            break
        between = (low * high) ** 0.5 if low and high < float("inf") else None
        rate = between or (rate * STEP if low else rate / STEP)
    return low, runs
