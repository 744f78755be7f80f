"""Parameter sweeps: runs a plain function over many settings on Spark, one task a setting.

Knows how to spread the work, watch it, stop it and report failures. Must not know what the function measures.
"""

import json
import pkgutil
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from thalweg.output import Json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.25
# Spark gives a cancelled Python worker two seconds to stop before it kills it.
CANCEL_SECONDS = 5.0
LONGEST_MESSAGE = 300


class SweepError(RuntimeError):
    """A setting failed; the message names it and gives the Python error."""


@dataclass(frozen=True)
class ParameterSweep:
    """A function to run over settings, with a name for reports of progress.

    The function must live at the top level of a module the workers can import: it travels by name. It takes
    one setting and returns a value. Settings and values are plain JSON.
    """

    name: str
    function: Callable[[Json], Json]
    settings: Sequence[Json]


def run_sweep(
    spark: "SparkSession",
    function: Callable[[Json], Json],
    settings: Sequence[Json],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Json]:
    """Run a function over settings as one Spark job; the results come in the settings' order.

    >>> import math
    >>> run_sweep(spark, math.sqrt, [4, 9])  # doctest: +SKIP
    [2.0, 3.0]
    """
    named = None if on_progress is None else lambda _, done, total: on_progress(done, total)
    [(_, outcome)] = run_sweeps(spark, [ParameterSweep("sweep", function, settings)], on_progress=named)
    if isinstance(outcome, SweepError):
        raise outcome
    return outcome


def run_sweeps(
    spark: "SparkSession",
    jobs: Sequence[ParameterSweep],
    *,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Iterator[tuple[str, list[Json] | SweepError]]:
    """Run several sweeps at once; hand over the results of each, or its failure, as soon as it is complete.

    Each sweep is a Spark job, all submitted at the start: Spark's FIFO scheduler gives free cores to the earlier
    jobs first, so no core idles while the last settings of a sweep finish. A single job for all would keep the
    cores as busy, but Spark hands over a job's results only when the whole job is done: an interruption would
    lose everything. Leaving the iteration early, by an exception, Ctrl-C or `break`, cancels the jobs that still run.
    """
    events: SimpleQueue[tuple[_Running, int | list[Json] | SweepError]] = SimpleQueue()
    running = {job.name: _Running(job, reference(job.function)) for job in jobs}
    if len(running) != len(jobs):
        raise ValueError("sweeps that run together need different names")
    try:
        # Spark is talked to from other threads only: Ctrl-C in the middle of a call would leave py4j's
        # connection unusable, and the next call has to cancel the jobs.
        for started in running.values():
            Thread(target=_collect, args=(spark, started, events), daemon=True).start()
        if on_progress is not None and _is_classic(spark):  # a Connect session has no status tracker
            Thread(target=_watch, args=(spark, list(running.values()), events), daemon=True).start()
        while running:
            source, news = events.get()
            name, total = source.job.name, len(source.job.settings)
            if isinstance(news, int):
                if on_progress is not None and name in running:
                    on_progress(name, news, total)
                continue
            del running[name]
            if on_progress is not None and isinstance(news, list):
                on_progress(name, total, total)
            yield name, news
    finally:
        if running:
            _cancel(spark, list(running.values()))


@dataclass(frozen=True, eq=False)
class _Running:
    job: ParameterSweep
    function: str
    tag: str = field(default_factory=lambda: f"thalweg-sweep-{uuid.uuid4().hex}")
    finished: Event = field(default_factory=Event)


def _collect(spark: "SparkSession", running: _Running, events: "SimpleQueue[Any]") -> None:
    try:
        events.put((running, _results(spark, running)))
    except SweepError as failure:
        events.put((running, failure))
    except Exception as error:  # noqa: BLE001 - any error of Spark must reach the waiting thread
        message = f"Spark could not run the sweep {running.job.name}: {_short(error)}"
        events.put((running, SweepError(message)))
    finally:
        running.finished.set()


def _results(spark: "SparkSession", running: _Running) -> list[Json]:
    settings = [json.dumps(setting, default=_plain) for setting in running.job.settings]
    if not settings:
        return []
    # A Connect session has no job groups, and a classic session's tags cannot be interrupted from another thread.
    if _is_classic(spark):
        spark.sparkContext.setJobGroup(running.tag, running.job.name, interruptOnCancel=True)
    else:
        spark.addTag(running.tag)
    # A range of n rows in n partitions puts each setting in a task of its own without a shuffle.
    indices = spark.range(0, len(settings), 1, len(settings))
    measured = indices.mapInArrow(partial(_measure, running.function, settings), "setting long, outcome string")
    outcomes = {row["setting"]: json.loads(row["outcome"]) for row in measured.collect()}
    failed = [index for index, outcome in sorted(outcomes.items()) if "error" in outcome]
    if failed:
        first = failed[0]
        raise SweepError(
            f"{len(failed)} of {len(settings)} settings failed; the first, {_clip(settings[first])}, "
            f"raised {outcomes[first]['error']}"
        )
    return [outcomes[index]["result"] for index in range(len(settings))]


def _measure(reference: str, settings: list[str], batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Runs on a Spark worker. Errors travel as results: Spark would retry them and wrap them in Java."""
    import pyarrow as pa

    for batch in batches:
        for index in batch.column(0).to_pylist():
            try:
                result = pkgutil.resolve_name(reference)(json.loads(settings[index]))
                outcome = json.dumps({"result": result}, default=_plain)
            except Exception as error:  # noqa: BLE001 - reported with its setting, by the driver
                frame = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{frame.filename.rpartition('/')[2]}, line {frame.lineno}"
                outcome = json.dumps({"error": _clip(f"{type(error).__name__}: {error}") + f" ({where})"})
            yield pa.RecordBatch.from_pydict({"setting": [index], "outcome": [outcome]})


def _watch(spark: "SparkSession", watched: list[_Running], events: "SimpleQueue[Any]") -> None:
    tracker = spark.sparkContext.statusTracker()
    while watched := [running for running in watched if not running.finished.is_set()]:
        time.sleep(POLL_SECONDS)
        for running in watched:
            stages = [
                tracker.getStageInfo(stage)
                for job in tracker.getJobIdsForGroup(running.tag)
                if (info := tracker.getJobInfo(job)) is not None
                for stage in info.stageIds
            ]
            events.put((running, sum(stage.numCompletedTasks for stage in stages if stage is not None)))


def _cancel(spark: "SparkSession", unfinished: list[_Running]) -> None:
    # In a thread, so that a server that no longer answers cannot hold up the exit.
    canceller = Thread(target=_interrupt, args=(spark, unfinished), daemon=True)
    canceller.start()
    canceller.join(CANCEL_SECONDS)


def _interrupt(spark: "SparkSession", unfinished: list[_Running]) -> None:
    interrupt = spark.sparkContext.cancelJobGroup if _is_classic(spark) else spark.interruptTag
    # Again and again: a job that was not yet submitted when its tag was interrupted starts all the same.
    while unfinished := [running for running in unfinished if not running.finished.is_set()]:
        for running in unfinished:
            interrupt(running.tag)
        time.sleep(POLL_SECONDS)


def _is_classic(spark: "SparkSession") -> bool:
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def reference(function: Callable[[Json], Json]) -> str:
    """The name workers import a function by.

    >>> import json
    >>> reference(json.dumps)
    'json:dumps'
    """
    reference = f"{function.__module__}:{function.__qualname__}"
    if function.__module__ == "__main__" or "<" in reference:
        raise ValueError(
            f"Spark workers cannot import {function.__qualname__} from {function.__module__}: "
            "define it at the top level of a module and pass it from there"
        )
    return reference


def _plain(value: Json) -> Json:
    """A value that JSON does not have, as plain values: NumPy scalars and arrays convert themselves."""
    if hasattr(value, "tolist"):
        return value.tolist()
    kind = type(value).__name__
    raise TypeError(f"a sweep's settings and results are dicts, lists, strings and numbers; turn {kind} into those")


def _short(error: Exception) -> str:
    """The most useful line of a Spark error: the last line of a Python traceback, else the first line."""
    lines = [line for line in str(error).partition("JVM stacktrace:")[0].splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        lines = [line for line in lines if not line.startswith(" ")][::-1]
    return _clip(lines[0] if lines else type(error).__name__)


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."
