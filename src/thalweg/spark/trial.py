"""Every predicate's verdict on a sample of the rows, and what a row costs in each: what an order is chosen by.

Conditions were judged by Spark when the sample was taken. Lookups and Python predicates are tried here, on the driver,
the latter only as long as it takes to know what they cost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from thalweg.ordering.stopwatch import SINGLES, Stopwatch
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.spark.forms import Form, JoinForm, NativeForm, PythonForm
from thalweg.spark.judges import TRUE, PredicateError, View
from thalweg.spark.native import Sample

if TYPE_CHECKING:
    from thalweg.spark.judges import Judge

LOOKUP_SECONDS = 50e-9  # that a look into a broadcast table takes, roughly
LONG_SECONDS = 1e-3  # that a Python predicate is thought to take a row if it could not be tried
TRIAL_SECONDS = 0.05  # that one Python predicate may take in all
FEWEST_TRIALS = 64  # rows below which nothing is concluded
FIRST_SLICE = 16


def try_all(forms: Sequence[Form], sampled: Sample) -> tuple[Integers, Floats]:
    """Drop masks of the sampled rows and seconds a row of each predicate.

    Only the rows that all predicates have judged count, unless a Python predicate is so slow that these are too few: it
    then counts as one that keeps all rows, which puts it last.
    """
    count = len(sampled.codes)
    masks, costs = np.zeros(count, np.int64), np.zeros(len(forms))
    tried, conditions = count, 0
    for one, form in enumerate(forms):
        if isinstance(form, NativeForm):
            dropped = (sampled.codes[:, conditions] != TRUE) & (sampled.codes[:, conditions] != -1)
            costs[one] = sampled.seconds[conditions]
            conditions += 1
        elif isinstance(form, JoinForm):
            found = form.lookup.keys.contains([sampled.columns[column] for column in form.lookup.on])
            kept = pc.invert(found) if form.lookup.negate else found
            dropped = ~kept.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - Arrow takes it by position
            costs[one] = LOOKUP_SECONDS
        else:
            dropped, costs[one] = try_python(form, sampled)
            if dropped.size < min(FEWEST_TRIALS, count):
                dropped = np.zeros(count, np.bool_)
            tried = min(tried, dropped.size)
        masks[: dropped.size] |= dropped.astype(np.int64) << one
    return masks[:tried], costs


def try_python(form: PythonForm, sampled: Sample) -> tuple[Booleans, float]:
    """Which of the first rows a Python predicate drops, and seconds a row; as many rows as there is time for."""
    count = len(sampled.codes)
    if form.codes:  # it needs what Spark has not brought along
        return np.zeros(count, np.bool_), LONG_SECONDS
    judge: Judge = form.make(range(len(form.columns)), ())
    watch, verdicts, done, size = Stopwatch(), list[Booleans](), 0, 1
    start = time.perf_counter()
    while done < count and time.perf_counter() - start < TRIAL_SECONDS:
        rows = min(size, count - done)
        view = View([sampled.columns[column].slice(done, rows) for column in form.columns])
        before = time.perf_counter()
        try:
            verdict = judge.judge(view)
        except PredicateError:
            break  # the job itself will say so
        watch.note(rows, time.perf_counter() - before)
        verdicts.append(~verdict.true if verdict.failed is None else ~(verdict.true | verdict.failed))
        done += rows
        size = 1 if len(verdicts) < SINGLES else max(FIRST_SLICE, 2 * size)
    seconds = watch.per_row
    dropped = np.concatenate(verdicts) if verdicts else np.zeros(0, np.bool_)
    return dropped, LONG_SECONDS if math.isnan(seconds) else seconds
