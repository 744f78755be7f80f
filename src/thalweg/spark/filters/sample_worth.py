"""Whether a sample before the job is worth its price: it may take a small share of the job's time, and no more.

No row has been seen yet, so the job's time is a rough estimate: rows by Spark's estimate of the input's size, and
typical times a row. Where only classes of rows are in question, the Python predicates are timed on a few rows first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg.ordering import AsWritten
from thalweg.spark.filters.choose import choose
from thalweg.spark.filters.forms import Form, Place, SampledRows
from thalweg.spark.filters.sample import row_width
from thalweg.spark.first_rows import costly_step, estimated_size, first_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.query import FilterQuery

LEAST_JOB_SECONDS = 2.5  # that the job must take: a sample takes some 0.2 s, hence at most 8 per cent of it
LEAST_CHANGED_JOB_SECONDS = 0.25  # that a job must take whose order changes without a sample: that takes some 0.02 s
CONDITION_SECONDS = 0.3e-6  # a row, in a condition that is not cheap: a regular expression on a short text
LOOKUP_SECONDS = 0.1e-6  # a row, in a join with a broadcast table
CHEAP_CONDITION_KEEPS = 0.5  # of the rows, as long as nothing is known: cheap conditions always run first
WORTH_ORDERING = 2  # conditions or lookups that take time: with fewer there is nothing to choose
FEWEST_ROWS_WITH_CLASSES = 100_000  # below which Python predicates are not even timed
FIRST_ROWS = 128  # on which Python predicates are timed
CONNECT_CORES = 8  # that a Connect server is thought to have: it does not tell


def has_choice(query: FilterQuery) -> bool:
    """Whether there is a choice that workers cannot make by themselves."""
    return query.policy.kind is not AsWritten and (_slow_steps(query) >= WORTH_ORDERING or _finds_classes(query))


def reason_against_sample(query: FilterQuery, frame: DataFrame) -> str | None:
    """Why no sample of a DataFrame is worth its price; None if it is."""
    size = estimated_size(frame)
    rows = math.inf if size is None else size / row_width(frame)
    is_long = _slow_steps(query) >= WORTH_ORDERING and _is_long(_seconds_in_spark(query.forms, rows), frame)
    if not is_long and (not _finds_classes(query) or rows < FEWEST_ROWS_WITH_CLASSES):
        return "the input is too small for a sample"
    if (step := costly_step(frame)) is not None:
        return f"it would have to run the input, which has {step}"
    if not is_long and not _is_long(_seconds_in_python(query, frame, rows), frame):
        return "the Python predicates take too little time for classes of rows to matter"
    return None


def pays_unsampled(query: FilterQuery, frame: DataFrame) -> bool:
    """Whether it pays to put cheap conditions ahead of others, although nothing is known of them."""
    if not has_choice(query) or any(form.may_raise for form in query.forms):  # to attempt a condition takes time
        return False
    is_changed = choose(query, None).order != tuple(range(len(query.forms)))
    size = estimated_size(frame)
    rows = math.inf if size is None else size / row_width(frame)
    return is_changed and _seconds_in_spark(query.forms, rows) / _cores(frame) >= LEAST_CHANGED_JOB_SECONDS


def _is_long(seconds: float, frame: DataFrame) -> bool:
    """Whether a job takes long that takes so many seconds on one core; Spark is asked for cores only if it matters."""
    return seconds >= LEAST_JOB_SECONDS and seconds / _cores(frame) >= LEAST_JOB_SECONDS


def _slow_steps(query: FilterQuery) -> int:
    """How many joins and conditions take time; the members of a disjunction have an order too."""
    joins = sum(form.place is Place.JOIN for form in query.forms)
    conditions = [part for form in query.forms if form.place is Place.SPARK for part in form.condition.parts]
    return joins + sum(not condition.facts.cheap for condition in conditions)


def _finds_classes(query: FilterQuery) -> bool:
    """Whether there are columns that go to Python only if a sample shows that they tell classes apart."""
    routes = query.routes
    in_python = sum(form.place is Place.PYTHON for form in query.forms)
    return routes is not None and routes.off is None and bool(routes.optional) and in_python > 1


def _seconds_in_spark(forms: Sequence[Form], rows: float) -> float:
    """How long conditions and lookups would take on one core."""
    for form in forms:
        if form.place is Place.SPARK and form.is_cheap:
            rows *= CHEAP_CONDITION_KEEPS
    joins = sum(form.place is Place.JOIN for form in forms)
    conditions = sum(form.place is Place.SPARK and not form.is_cheap for form in forms)
    return rows * (joins * LOOKUP_SECONDS + conditions * CONDITION_SECONDS)


def _seconds_in_python(query: FilterQuery, frame: DataFrame, rows: float) -> float:
    """How long Python predicates would take on one core, by the first rows of the input."""
    alone = [form for form in query.forms if form.place is Place.PYTHON and not form.sampled_conditions]
    columns = list(dict.fromkeys(column for form in alone for column in form.columns))
    table = first_rows(frame, list(map(query.column, columns)), FIRST_ROWS)
    sampled = SampledRows(
        columns={column: table.column(place).combine_chunks() for place, column in enumerate(columns)},
        codes=np.zeros((table.num_rows, 0), np.int64),
        seconds=np.zeros(0),
        where_from="from the first rows alone",
    )
    return rows * sum(form.try_on(sampled).seconds for form in alone)


def _cores(frame: DataFrame) -> int:
    if not hasattr(frame, "_jdf"):
        return CONNECT_CORES
    return max(frame.sparkSession.sparkContext.defaultParallelism, 1)
