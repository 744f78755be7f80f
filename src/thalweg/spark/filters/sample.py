"""A small job before the job: the outcomes of conditions on some rows of the input, and how long they take.

It may take a small share of the job's time, and is not taken where it would have to run the job: above an aggregation,
a sort, a join or a Python function the first rows cost as much as all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg.spark.filters.conditions import SparkCondition, opaque_truth
from thalweg.spark.filters.forms import SampledRows
from thalweg.spark.first_rows import time_limit
from thalweg.spark.frames import schema_of
from thalweg.spark.jvm import java_class
from thalweg.spark.operators import expression, if_null, literal, named

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLE_ROWS = 4000
LARGE_INPUT = 4 << 30  # bytes above which only the first partitions are sampled: a pass over all would take too long
THINNING = 0.1  # of the rows, where only the first are looked at: neighbours are often alike
PARTITION_ROWS = 2000  # of each partition

RAISED = 3  # where a condition raised, besides FALSE, TRUE and UNKNOWN
CODE_UNIT = 10**18  # a code counts this much in a number whose rest is a time in nanoseconds
LEAST_NANOSECONDS = 5.0  # that a condition takes, even if the clock says less


def take_sample(
    frame: DataFrame, conditions: Sequence[SparkCondition], columns: Mapping[str, Column], size: int | None
) -> SampledRows:
    """Run every condition on a sample of the rows, and time it, in one Spark job.

    The clock is read in the JVM between two conditions; the time to read it is measured and subtracted.
    """
    rows, where_from = _choose_rows(frame, size)
    clock = expression("cast(java_method('java.lang.System', 'nanoTime') as bigint)")
    sampled = rows.select(
        *(named(column, f"c{number}") for number, column in enumerate(columns.values())),
        *(named(clock, f"start{number}") for number in range(2)),
        *(named(tick, f"tick{number}") for number, tick in enumerate(_ticks(frame, conditions, clock))),
    )
    with time_limit(frame):
        table = sampled.toArrow().combine_chunks()
    numbers = np.array([table[name].to_numpy() for name in table.column_names[len(columns) :]], np.int64)
    codes, times = np.divmod(numbers, CODE_UNIT)
    # The fastest quarter: the first rows run before the JVM has compiled anything.
    steps = np.quantile(np.diff(times, axis=0), 0.25, axis=1) if table.num_rows else np.ones(len(conditions) + 1)
    return SampledRows(
        columns={column: table.column(number).combine_chunks() for number, column in enumerate(columns)},
        codes=np.where(codes[2:] == RAISED, -1, codes[2:]).T,
        seconds=np.maximum(steps[1:] - steps[0], LEAST_NANOSECONDS) * 1e-9,
        where_from=where_from,
    )


def _ticks(frame: DataFrame, conditions: Sequence[SparkCondition], clock: Column) -> list[Column]:
    """The outcome of each condition, and the time when it was known, in one number.

    The left side of a sum is evaluated before its right, here and now, as the clock is not deterministic. Spark may
    defer a condition on its own, or evaluate it ahead if it occurs twice.
    """
    if not conditions:
        return []
    opaque = opaque_truth(frame)
    return [if_null(condition.timed(opaque), literal(RAISED)) * CODE_UNIT + clock for condition in conditions]


def _choose_rows(frame: DataFrame, size: int | None) -> tuple[DataFrame, str]:
    """Some rows, and which they are: from as many places as can be had without reading everything."""
    thinned = frame.sample(fraction=THINNING, seed=1)
    if size is not None and size <= LARGE_INPUT:
        many = size * THINNING > SAMPLE_ROWS * row_width(frame)
        spread = _first_of_each_partition(thinned if many else frame)
        if spread is not None:
            return spread, "from the first rows of every partition"
    return thinned.limit(SAMPLE_ROWS), "from the first rows alone: not representative if the input is sorted"


def _first_of_each_partition(frame: DataFrame) -> DataFrame | None:
    """A limit for every partition, which ends its task early; Spark has it, but not in its public interface."""
    from py4j.protocol import Py4JError
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    if not isinstance(frame, ClassicFrame):
        return None
    try:
        spark = frame.sparkSession
        # Spark's plan of a limit is a limit of all rows over a limit of each partition.
        limit = frame.limit(PARTITION_ROWS)._jdf.queryExecution().logical()  # noqa: SLF001
        dataset = java_class(spark._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001
        return ClassicFrame(dataset.ofRows(spark._jsparkSession, limit.child()), spark)  # noqa: SLF001
    except (Py4JError, TypeError):
        return None


def row_width(frame: DataFrame) -> int:
    """How many bytes Spark thinks a row takes."""
    widths = {"string": 20, "binary": 100, "integer": 4, "date": 4, "float": 4, "boolean": 1}
    return 8 + sum(widths.get(each.dataType.typeName(), 8) for each in schema_of(frame).fields)
