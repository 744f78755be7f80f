"""Predicates that Spark evaluates: what is known of them before, and what a sample tells of them.

Spark keeps the written order of a conjunction, so whoever reorders it answers for the errors: an expression may raise
on rows that used to be rejected before they reached it. Where it might, it is evaluated in a form that cannot raise.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.spark.filters.worker.judges import FALSE, UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLE_ROWS = 4000
SMALL_INPUT = 16 << 20  # bytes, by Spark's estimate, below which a sample is not worth its job
LARGE_INPUT = 4 << 30  # bytes above which only the first partitions are sampled: a pass over all would take too long
THINNING = 0.1  # of the rows, where only the first are looked at, so that neighbours do not count for one another
PARTITION_ROWS = 2000  # of each partition

RAISED = 3  # where a condition raised, besides FALSE, TRUE and UNKNOWN
CODE_UNIT = 10**18  # a code counts this much in a number whose rest is a time in nanoseconds
LEAST_NANOSECONDS = 5.0  # that a condition takes, whatever the clock says


@dataclass(frozen=True)
class Sample:
    """What the predicates made of a sample of the rows."""

    columns: dict[str, pa.Array]  # the sampled rows
    codes: Integers  # a row each, a column for each expression: FALSE, TRUE, UNKNOWN, or -1 where it raised
    seconds: Floats  # a row, for each expression
    how: str  # which rows were sampled


def condition_of(condition: str | Column) -> Column:
    """A condition as a Column."""
    from pyspark.sql import functions as f

    return f.expr(condition) if isinstance(condition, str) else condition


def code_of(condition: Column, opaque: Column) -> Column:
    """The outcome as a number, FALSE, TRUE or UNKNOWN, and NULL where the expression raises.

    Spark has no general `try(...)`, but `try_multiply` of an interval catches whatever its arguments raise. What two
    expressions have in common, though, Spark evaluates once and ahead of both, where nothing is caught; only what
    stands in a branch it leaves there. So the condition stands in a branch that is always taken, which Spark cannot
    know.
    """
    from pyspark.sql import functions as f

    number = f.when(opaque, f.coalesce(condition.cast("int"), f.lit(UNKNOWN))).otherwise(f.lit(FALSE))
    return f.try_multiply(f.expr("interval '1' second"), number).cast("int")


def opaque_truth(frame: DataFrame) -> Column:
    """A condition that is always true, and of which Spark's optimizer does not know it."""
    from pyspark.sql import functions as f

    fixed = {"boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp"}
    once = [field for field in frame.schema.fields if frame.columns.count(field.name) == 1]
    best = min(once, key=lambda field: field.dataType.typeName() not in fixed, default=None)
    if best is None or best.dataType.typeName() in {"map", "variant"}:
        return f.rand() >= 0
    quoted = best.name.replace("`", "``")
    return f.hash(f.col(f"`{quoted}`")).bitwiseAND(1) < 2  # noqa: PLR2004 - the last bit is 0 or 1


def estimated_size(frame: DataFrame) -> int | None:
    """Spark's estimate of a DataFrame's size in bytes; None where it has none."""
    if hasattr(frame, "_jdf"):
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))  # noqa: SLF001 - as above
        return size if size < 1 << 60 else None
    text = io.StringIO()
    with contextlib.redirect_stdout(text):  # Connect tells it in words only
        frame.explain(mode="cost")
    return size_in(text.getvalue())


def size_in(explained: str) -> int | None:
    r"""The size in bytes of the outermost step of a plan that Spark explains with statistics.

    >>> size_in("Filter (id > 3), Statistics(sizeInBytes=1.5 KiB)\n+- Range, Statistics(sizeInBytes=7.8 MiB)")
    1536
    """
    found = re.search(r"sizeInBytes=([0-9.]+) ([KMGTPE]?)i?B", explained)
    if found is None or found[2] == "E":  # what Spark says of a source that it knows nothing of
        return None
    return int(float(found[1]) * 1024 ** " KMGTP".index(found[2] or " "))


def sample_rows(frame: DataFrame, conditions: Sequence[Column], columns: Sequence[str], size: int | None) -> Sample:
    """Run every condition on a sample of the rows, and time it, in one Spark job.

    The clock is read in the JVM between one condition and the next; what reading it takes is measured and subtracted.
    """
    from pyspark.sql import functions as f

    rows, how = _choose_rows(frame, size)
    clock = f.expr("cast(java_method('java.lang.System', 'nanoTime') as bigint)")
    # Code and time in one sum: its left side is evaluated before its right, here and now, as the clock is not
    # deterministic. Spark may defer a condition on its own, or evaluate it ahead if it occurs twice.
    opaque = opaque_truth(frame)
    ticks = [f.coalesce(code_of(one, opaque), f.lit(RAISED)) * f.lit(CODE_UNIT) + clock for one in conditions]
    table = (
        rows.select(
            *(f.col(column).alias(f"c{number}") for number, column in enumerate(columns)),
            *(clock.alias(f"start{number}") for number in range(2)),
            *(tick.alias(f"tick{number}") for number, tick in enumerate(ticks)),
        )
        .toArrow()
        .combine_chunks()
    )
    numbers = np.array([table[name].to_numpy() for name in table.column_names[len(columns) :]], np.int64)
    codes, times = np.divmod(numbers, CODE_UNIT)
    # The fastest quarter: the first rows run before the JVM has compiled anything.
    steps = np.quantile(np.diff(times, axis=0), 0.25, axis=1) if table.num_rows else np.ones(len(conditions) + 1)
    return Sample(
        columns={column: table.column(number).combine_chunks() for number, column in enumerate(columns)},
        codes=np.where(codes[2:] == RAISED, -1, codes[2:]).T,
        seconds=np.maximum(steps[1:] - steps[0], LEAST_NANOSECONDS) * 1e-9,
        how=how,
    )


def _choose_rows(frame: DataFrame, size: int | None) -> tuple[DataFrame, str]:
    """Some rows, and which they are: from as many places as can be had without reading everything."""
    thinned = frame.sample(fraction=THINNING, seed=1)
    if size is not None and size <= LARGE_INPUT:
        width = sum(_width(field.dataType) for field in frame.schema.fields)
        spread = _first_of_each_partition(thinned if size * THINNING > SAMPLE_ROWS * width else frame)
        if spread is not None:
            return spread, "of the first ones of every partition"
    return thinned.limit(SAMPLE_ROWS), "of the first ones alone: not representative if the input is sorted"


def _first_of_each_partition(frame: DataFrame) -> DataFrame | None:
    """A limit for every partition, which ends its task early; Spark has it, but not in its public interface."""
    from py4j.protocol import Py4JError
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    if not isinstance(frame, ClassicFrame):
        return None
    try:
        spark = frame.sparkSession
        limit = frame.limit(PARTITION_ROWS)._jdf.queryExecution().logical()  # noqa: SLF001 - of all, over one of each
        classic = spark._jvm.org.apache.spark.sql.classic  # type: ignore[union-attr]  # noqa: SLF001
        return ClassicFrame(classic.Dataset.ofRows(spark._jsparkSession, limit.child()), spark)  # noqa: SLF001
    except (Py4JError, TypeError):
        return None


def _width(kind: Any) -> int:  # noqa: ANN401 - a Spark type
    """How many bytes Spark thinks a value takes."""
    return {"string": 20, "binary": 100, "integer": 4, "date": 4, "float": 4, "boolean": 1}.get(kind.typeName(), 8)
