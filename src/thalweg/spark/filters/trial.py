"""Every predicate's verdict on a sample of the rows, and what a row costs in each: what an order is chosen by.

Conditions were judged by Spark when the sample was taken. Lookups and Python predicates are tried here, on the driver,
the latter only as long as it takes to know what they cost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from thalweg.ordering import Policy
from thalweg.ordering.cost import order_cost
from thalweg.ordering.replay import replay
from thalweg.ordering.stopwatch import SINGLES, Stopwatch
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.spark.filters.forms import Form, JoinForm, NativeForm, PythonForm
from thalweg.spark.filters.native import Sample
from thalweg.spark.filters.worker.judges import TRUE, PredicateError, View

if TYPE_CHECKING:
    from thalweg.spark.filters.worker.judges import Judge

LOOKUP_SECONDS = 50e-9  # that a look into a broadcast table takes, roughly
LONG_SECONDS = 1e-3  # that a Python predicate is thought to take a row if it could not be tried
TRIAL_SECONDS = 0.05  # that one Python predicate may take in all
FEWEST_TRIALS = 64  # rows below which nothing is concluded
FIRST_SLICE = 16


def try_all(forms: Sequence[Form], sampled: Sample, inner: Mapping[int, Sequence[int]]) -> tuple[Integers, Floats]:
    """Drop masks of the sampled rows and seconds a row of each predicate; `inner` has the orders of disjunctions.

    Only the rows that all predicates have judged count, unless a Python predicate is so slow that these are too few: it
    then counts as one that keeps all rows, which puts it last.
    """
    count = len(sampled.codes)
    masks, costs = np.zeros(count, np.int64), np.zeros(len(forms))
    tried, conditions = count, 0
    for one, form in enumerate(forms):
        if isinstance(form, NativeForm):
            own = slice(conditions, conditions + len(form.parts))
            codes, conditions = sampled.codes[:, own], own.stop
            dropped = ~((codes == TRUE) | (codes == -1)).any(axis=1)
            order = inner.get(one, range(len(form.parts)))
            costs[one] = order_cost(accepted(codes) if count else [0], order, sampled.seconds[own])
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


def accepted(codes: Integers) -> Integers:
    """For each row the mask of the members of a disjunction that are true: whoever accepts a row decides it."""
    masks: Integers = ((codes == TRUE).astype(np.int64) << np.arange(codes.shape[1])).sum(axis=1)
    return masks


def member_orders(forms: Sequence[Form], sampled: Sample, kind: type[Policy]) -> dict[int, tuple[int, ...]]:
    """The cheapest order of the members of each disjunction in Spark, by the dual rule, unless it is as written."""
    found, conditions = {}, 0
    for one, form in enumerate(forms):
        if isinstance(form, NativeForm):
            own = slice(conditions, conditions + len(form.parts))
            conditions = own.stop
            if form.members and form.facts.deterministic:
                policy = kind(len(form.members))
                replay(policy, accepted(sampled.codes[:, own]), sampled.seconds[own])
                found[one] = policy.order
    return {one: order for one, order in found.items() if list(order) != sorted(order)}


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
