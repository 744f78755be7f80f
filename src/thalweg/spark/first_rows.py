"""Looks at the first rows of a DataFrame before it runs, if they cost little, and not for long.

Above an aggregation, a sort, a join or a Python function the first rows cost as much as all of them.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.spark.frames import once_a_frame
from thalweg.spark.plan_text import plan_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLE_SECONDS = 3.0  # after which the job is cancelled, and the query runs without it
CANCEL_EVERY = 0.05  # seconds
INTERRUPT = "spark.job.interruptOnCancel"  # Spark's name of a thread's setting; Connect interrupts by itself

# Steps of a physical plan whose first rows cost little.
FIRST_ROWS_ARE_CHEAP = re.compile(
    r"^(Project|Filter|ColumnarToRow|RowToColumnar|Range|LocalTableScan|Scan\b.*|FileScan|BatchScan|Union|Coalesce|"
    r"Sample|InMemoryTableScan|Subquery|ReusedSubquery|CommandResult|EmptyRelation|Generate)$"
)
CACHED = "InMemoryTableScan"
STEP = re.compile(r"^[\s:+\-|]*(?:\*\s*)?(?:\(\d+\)\s*)?([A-Za-z]+)", re.MULTILINE)


class NoSampleError(Exception):
    """No sample was taken; the message says why."""


@once_a_frame
def estimated_size(frame: DataFrame) -> int | None:
    """Spark's estimate of a DataFrame's size in bytes; None where it has none."""
    if hasattr(frame, "_jdf"):
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001 - no public way
        return size if size < 1 << 60 else None
    return size_in(plan_text(frame, "cost"))  # Connect tells it in words only


def size_in(explained: str) -> int | None:
    r"""The size in bytes of the outermost step of a plan that Spark explains with statistics.

    >>> size_in("Filter (id > 3), Statistics(sizeInBytes=1.5 KiB)\n+- Range, Statistics(sizeInBytes=7.8 MiB)")
    1536
    """
    found = re.search(r"sizeInBytes=([0-9.]+) ([KMGTPE]?)i?B", explained)
    if found is None or found[2] == "E":  # Spark's answer for a source of unknown size
        return None
    return int(float(found[1]) * 1024 ** " KMGTP".index(found[2] or " "))


def costly_step(frame: DataFrame) -> str | None:
    """A step of a DataFrame's plan that would have to run for all rows before the first row comes; None if none."""
    return costly_step_in(_physical_plan(frame)) or _unfilled_cache(frame)


@once_a_frame
def _physical_plan(frame: DataFrame) -> str:
    physical = plan_text(frame, "simple").partition("== Physical Plan ==")[2]
    return physical.lstrip("\n").partition("\n\n")[0]


def costly_step_in(physical_plan: str) -> str | None:
    r"""The same, of the text of a physical plan.

    >>> costly_step_in("*(1) Filter (id#0L > 3)\n+- *(1) Range (0, 10, step=1, splits=2)")
    >>> costly_step_in("*(2) HashAggregate(keys=[])\n+- Exchange hashpartitioning(k#1, 200)\n   +- *(1) Range (0, 9)")
    'HashAggregate'
    """
    cached_below: int | None = None  # the depth of a cache, whose rows are there already
    for line in physical_plan.splitlines():
        step = STEP.match(line)
        if step is None or (cached_below is not None and step.start(1) > cached_below):
            continue
        cached_below = step.start(1) if step[1] == CACHED else None
        if step[1] != "AdaptiveSparkPlan" and not FIRST_ROWS_ARE_CHEAP.match(step[1]):
            return step[1]
    return None


def _unfilled_cache(frame: DataFrame) -> str | None:
    """A cache that the first look would fill with all rows; Connect does not tell."""
    from py4j.protocol import Py4JError

    if not hasattr(frame, "_jdf"):
        return None
    try:
        leaves = frame._jdf.queryExecution().withCachedData().collectLeaves()  # noqa: SLF001 - no public way
        for number in range(leaves.size()):
            leaf = leaves.apply(number)
            if leaf.nodeName().startswith("InMemoryRelation") and not leaf.cacheBuilder().isCachedColumnBuffersLoaded():
                return "a cache that is not filled yet"
    except (Py4JError, TypeError):
        return None
    return None


def first_rows(frame: DataFrame, columns: Sequence[Column], count: int) -> pa.Table:
    """Some columns of the first rows of a DataFrame."""
    with time_limit(frame):
        return frame.select(*columns).limit(count).toArrow()


@contextmanager
def time_limit(frame: DataFrame) -> Iterator[None]:
    """Cancel the jobs that are started within, if they take too long. Jobs that fail give no sample.

    Their tasks are interrupted: a task that looks up only between two batches of rows would keep its core meanwhile.
    """
    from pyspark.errors import PySparkException

    spark = frame.sparkSession
    context = spark.sparkContext if hasattr(frame, "_jdf") else None
    tag = f"thalweg-sample-{uuid.uuid4().hex[:12]}"
    done, expired = threading.Event(), threading.Event()

    def watch() -> None:
        done.wait(SAMPLE_SECONDS)
        while not done.is_set():  # again and again: a job that is submitted after its tag was cancelled still starts
            expired.set()
            (context.cancelJobsWithTag if context else spark.interruptTag)(tag)
            done.wait(CANCEL_EVERY)

    (context.addJobTag if context else spark.addTag)(tag)
    interrupt_before = context.getLocalProperty(INTERRUPT) if context else None
    if context:
        context.setLocalProperty(INTERRUPT, "true")
    watcher = threading.Thread(target=watch, name="thalweg-sample", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if expired.is_set():
            raise NoSampleError(f"a sample took longer than {SAMPLE_SECONDS:g} seconds") from None
        if isinstance(error, PySparkException):  # of a UDF that stays in Spark: the job itself will tell
            raise NoSampleError(f"it failed with {type(error).__name__}") from None
        raise
    finally:
        done.set()
        watcher.join()
        (context.removeJobTag if context else spark.removeTag)(tag)
        if context:
            context.setLocalProperty(INTERRUPT, interrupt_before)  # type: ignore[arg-type]  # None takes it away
