"""How many tuples each kind of operator can handle a second, measured once on a machine and kept in its cache.

One job has a task for each operator that runs within a task, over the same cached rows, as a micro-batch of a session
has; two more tasks only read them, which is common to all plans. Spark tells what each task took, so that the start of
the job does not count. Thalweg's own join has a job of its own, since it moves rows: all of it counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from thalweg.charts import TupleRates
from thalweg.sealed import SavedStateError, seal, short_digest, unseal_json
from thalweg.spark.folder import StateFolder
from thalweg.spark.session.views import SETTINGS_OF_ONE_TASK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND, VERSION = "tuple rates", 3
ROWS = 200_000
JOINED_ROWS = 20_000  # on each side
FASTEST = 1e9  # tuples a second, of an operator that takes less time than the clock can tell
READ = ("read", "read again")  # tasks that only read the rows: the first is slow where Spark has just begun
GROUP = "spark.jobGroup.id"  # the property of a thread by which the jobs that it starts are found
EVENTS_MILLISECONDS = 10_000  # that Spark may take to note what its tasks took
MOST_TASKS = 1_000  # that Spark is asked for


def tuple_rates(spark: SparkSession, rows: int = ROWS, joined_rows: int = JOINED_ROWS) -> TupleRates:
    """The rates that were measured on this machine before, or else those of a measurement now."""
    known = known_rates(spark)
    if known is not None:
        return known
    rates = measure_rates(spark, rows, joined_rows)
    if rates is None:
        return TupleRates()  # the usual rates serve until they can be measured
    folder, file = _cache(spark)
    with contextlib.suppress(OSError):  # a machine without a cache measures every time
        folder.write(file, seal(KIND, VERSION, json.dumps(rates.to_json()).encode()))
    return rates


def known_rates(spark: SparkSession) -> TupleRates | None:
    """The rates that were measured on this machine before; None if there are none, or their file is damaged."""
    folder, file = _cache(spark)
    with contextlib.suppress(SavedStateError, OSError, ValueError, TypeError, AttributeError):
        content = folder.read([file]).get(file)
        return None if content is None else TupleRates.from_json(unseal_json(KIND, VERSION, content))
    return None


def _cache(spark: SparkSession) -> tuple[StateFolder, str]:
    """The folder and the name of the file for this machine, with this version of Spark and as many tasks at once."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    machine = [platform.node(), platform.machine(), platform.python_version()]
    version = [spark.version, str(spark.sparkContext.defaultParallelism)]
    return StateFolder(f"{cache}/thalweg"), f"tuple-rates-{short_digest([*machine, *version])}"


def measure_rates(spark: SparkSession, rows: int = ROWS, joined_rows: int = JOINED_ROWS) -> TupleRates | None:
    """Measure every kind of operator: two jobs side by side, so that Spark compiles them, then each alone.

    None if Spark has not told what each task took: it forgets tasks of programs with very many.
    """
    from pyspark.sql import DataFrame

    import thalweg as tw

    own = spark.newSession()  # with settings of its own
    for name, value in SETTINGS_OF_ONE_TASK.items():
        own.conf.set(name, value)
    cached = own.range(0, rows, 1, 1).selectExpr("id", "id % 1000 AS a", "cast(id AS string) AS s").cache()
    keyed = cached.where(f"id < {joined_rows}").selectExpr("id AS k")
    odd = tw.predicate(lambda a: a % 2 == 1, on="a", takes="numpy", name="odd")
    within_tasks = {
        READ[0]: cached.selectExpr("id", "NULL"),
        "equality": cached.where("a = 7").selectExpr("id", "NULL"),
        "range": cached.where("a > 7").selectExpr("id", "NULL"),
        "projection": cached.select("id", "a"),
        "aggregate": cached.groupBy("a").count(),
        "other": cached.where("s rlike '[1-4]5'").selectExpr("id", "NULL"),
        "python": tw.where(cached, odd, sample=False).selectExpr("id", "NULL"),
        "equi_join": keyed.join(keyed.alias("o").hint("shuffle_hash"), "k").selectExpr("k", "NULL"),
        READ[1]: cached.selectExpr("id", "NULL"),
    }
    together = reduce(DataFrame.union, within_tasks.values())
    timed = spark.range(0, joined_rows, 1, 1).selectExpr("id AS k", "timestamp_seconds(0) AS time")
    moved = tw.join({"l": timed, "r": timed}, "l.k = r.k", {"l": None, "r": None}, "time", select=["l.k"])
    try:
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(_seconds, (moved, together)))
        times = task_times(together)
    finally:
        cached.unpersist()
    if len(times) != len(within_tasks):
        return None
    tasks = dict(zip(within_tasks, times, strict=True))
    read = min((tasks[kind] for kind in READ), key=lambda task: task.processor)
    seconds = {kind: task.processor - read.processor for kind, task in tasks.items() if kind not in READ}
    seconds["python"] = tasks["python"].whole - read.whole  # most of it in another process
    seconds["equi_join"] = tasks["equi_join"].processor  # which reads fewer rows than the others
    seconds["multi_join"] = _seconds(moved)
    tuples = {"equi_join": 2 * joined_rows, "multi_join": 2 * joined_rows}
    return TupleRates(**{kind: _rate(tuples.get(kind, rows), spent) for kind, spent in seconds.items()})


class TaskTime(NamedTuple):
    """The seconds that a task took: from its start to its end, and of the processor for it in the JVM."""

    whole: float
    processor: float


def task_times(frame: DataFrame) -> list[TaskTime]:
    """What the task of each partition takes, of a DataFrame that is one stage; less if Spark has forgotten some."""
    context = frame.sparkSession.sparkContext
    group, before = f"thalweg-{uuid.uuid4().hex}", context.getLocalProperty(GROUP)
    context.setLocalProperty(GROUP, group)
    try:
        _seconds(frame)
    finally:
        context.setLocalProperty(GROUP, before)  # type: ignore[arg-type]  # None removes it
    scala = context._jsc.sc()  # noqa: SLF001 - PySpark has no other way to the times of tasks
    scala.listenerBus().waitUntilEmpty(EVENTS_MILLISECONDS)
    jobs = [context.statusTracker().getJobInfo(job) for job in context.statusTracker().getJobIdsForGroup(group)]
    stages = [stage for job in jobs if job is not None for stage in job.stageIds]
    found: dict[int, TaskTime] = {}
    for stage in stages:
        listed = scala.statusStore().taskList(stage, 0, MOST_TASKS)
        for task in (listed.apply(number) for number in range(listed.size())):
            if task.taskMetrics().isDefined():
                metrics = task.taskMetrics().get()
                found[task.index()] = TaskTime(metrics.executorRunTime() / 1e3, metrics.executorCpuTime() / 1e9)
    return [found[index] for index in sorted(found)]


def _seconds(frame: DataFrame) -> float:
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _rate(tuples: int, seconds: float) -> float:
    return min(tuples / max(seconds, 1e-9), FASTEST)
