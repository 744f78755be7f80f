"""Runs a query's Python predicates in a worker: one pass over Arrow batches, in an order that adapts.

A process keeps its knowledge of a query from batch to batch and from task to task, shares it with the other workers of
the query through files, and begins with theirs. Imports no pyspark before a task runs.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.drift import Watched
from thalweg.ordering.overlap import WaitingFilter
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.types import Booleans, Floats
from thalweg.routing import ClassRouter, RoutedPipeline
from thalweg.sealed import SavedStateError
from thalweg.spark.filters.worker.exchange import Exchange
from thalweg.spark.filters.worker.judges import Judge, PredicateError, Verdict, counts_of
from thalweg.spark.filters.worker.quarantine import Quarantine
from thalweg.spark.filters.worker.report import WorkerReport
from thalweg.spark.filters.worker.spec import Answer, PassSpec
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting.judge import Waits
from thalweg.spark.filters.worker.waiting.stage import WaitingStage

MOST_PASSES = 32  # that a worker process remembers
MOST_CHANGES = 20  # of the order that a worker reports
MOST_GATHERED = 8  # batches that are evaluated as one batch,
CHEAP_SECONDS = 2e-4  # if the filters take less for each: a few times the fixed cost of a batch

Columns = Sequence[pa.Array]


class Failure(NamedTuple):
    """Why no answer could be found for a row."""

    predicate: int
    reason: str


class FilterPass:
    """The Python predicates of one query in one process."""

    def __init__(self, spec: PassSpec) -> None:
        self.spec = spec
        self.judges: tuple[Judge, ...] = tuple(spec.judges())
        filters = [self._filter_of(number, judge) for number, judge in enumerate(self.judges)]
        how: dict[str, Any] = {"costs": spec.policy.options.get("costs"), "stamp": time.time}
        self.pipeline = (
            RoutedPipeline(ClassRouter(spec.policy.make, list(spec.attributes)), filters, **how)
            if spec.attributes
            else Pipeline(spec.policy.make(), filters, **how)
        )
        self.failed = np.zeros(len(self.judges), np.int64)
        self.changes: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._exchange = Exchange(spec.folder, spec.signature)
        self._failures: dict[int, dict[int, str]] = {}  # in the current batch: row, predicate, reason
        self._nulls = np.zeros(0, np.bool_)  # in the current batch: rows for which some predicate is NULL

    def begin_task(self, spec: PassSpec) -> None:
        """Take over the functions that came with a task, and all that others have learnt."""
        self.spec = spec
        for judge, fresh in zip(self.judges, spec.judges(), strict=True):
            judge.adopt(fresh)
            judge.begin_task()
        self.learn_from_others()

    def run(self, batches: Iterable[Columns]) -> Iterator[pa.Array]:
        """One task: an answer for each row of each batch."""
        quarantine = Quarantine(self.spec.quarantine) if self.spec.quarantine else None
        try:
            for columns, sizes in self._gathered(batches):
                kept, failures = self.keep(columns)
                answers = self._answers(columns, kept, failures, quarantine)
                start = 0
                for size in sizes:  # an array for each batch
                    yield answers.slice(start, size)
                    start += size
            if quarantine:
                quarantine.commit()
        finally:
            self._exchange.publish(self.report())

    def keep(self, columns: Columns) -> tuple[Booleans, dict[int, Failure]]:
        """Which rows no predicate rejects, and on which of these rows a predicate failed; they count as kept."""
        count = len(columns[0])
        if not count:
            return np.zeros(0, np.bool_), {}
        before = self.pipeline.policy.order
        self._failures.clear()
        if self.spec.answer is Answer.TRUTH:
            self._nulls = np.zeros(count, np.bool_)
        if isinstance(self.pipeline, RoutedPipeline):
            values = {name: columns[place] for name, place in self.spec.attributes.items()}
            kept = self.pipeline.keep(View(columns), values)
        else:
            kept = self.pipeline.keep(View(columns))
        if self.pipeline.policy.order != before:
            self._log_change(before)
        if not self._failures:
            return kept, {}
        # All predicates have seen a row that none rejects: in any order, the first that failed as written is named.
        failures = {
            row: Failure(min(reasons), reasons[min(reasons)])
            for row, reasons in sorted(self._failures.items())
            if kept[row]
        }
        for failure in failures.values():
            self.failed[failure.predicate] += 1
        return kept, failures

    def report(self) -> WorkerReport:
        """All that this process knows of the query."""
        pipeline = self.pipeline
        routed = pipeline if isinstance(pipeline, RoutedPipeline) else None
        return WorkerReport(
            run=self.spec.key,
            signature=self.spec.signature,
            predicates=list(self.spec.names),
            order=list(pipeline.policy.order),
            profile=pipeline.policy.profile,
            rows=pipeline.tuples,
            kept=int(pipeline.tuples - pipeline.dropped.sum() - self.failed.sum()),
            evaluated=pipeline.evaluated.tolist(),
            dropped=pipeline.dropped.tolist(),
            failed=self.failed.tolist(),
            seconds=pipeline.seconds.tolist(),
            repeated=[judge.repeated for judge in self.judges],
            costs=[None if np.isnan(cost) else float(cost) for cost in pipeline.costs],
            call_costs=pipeline.call_costs.tolist(),
            profile_seconds=pipeline.profile_seconds,
            profile_evaluations=pipeline.extra_evaluations,
            changes=self.changes,
            drifts=drifts_of(pipeline),
            routing=None if routed is None else routing_of(routed),
            router=b"" if routed is None else routed.router.to_bytes(),
            judges=counts_of(self.judges),
            tells_cost=any(isinstance(judge, Waits) and judge.report()["cost"] is not None for judge in self.judges),
            notes=[*self.notes, *self._exchange.notes],
        )

    def learn_from_others(self) -> None:
        """Take in the new reports of other workers and of earlier runs."""
        for report, is_new in self._exchange.news():
            before = self.pipeline.policy.order
            if not self.pipeline.tuples:
                self._begin_with(report)
            if isinstance(self.pipeline, RoutedPipeline) and report.router:
                self._take_in_classes(self.pipeline, report)
            if is_new.any():
                profile = report.profile
                self.pipeline.policy.update(profile.masks[is_new], profile.times[is_new], profile.stamps[is_new])
            if self.pipeline.policy.order != before:
                self._log_change(before)

    def _begin_with(self, report: WorkerReport) -> None:
        """Start from another's order and costs."""
        if isinstance(self.pipeline, RoutedPipeline):
            if not self.pipeline.router.seen:
                self.pipeline.router.begin(report.order)
            self.pipeline.policy = self.pipeline.router.overall
        else:
            self.pipeline.policy = self.spec.policy.make(report.order)
        if report.costs and None not in report.costs and not report.tells_cost:  # else they are no seconds
            costs: Floats = np.array(report.costs, np.float64)
            self.pipeline.warm_up(costs, report.call_costs or np.zeros(costs.size))

    def _take_in_classes(self, pipeline: RoutedPipeline, report: WorkerReport) -> None:
        """Learn the classes that another process has found; a process that knows nothing goes on from there.

        A process that has had classes decides for itself, and does not follow others.
        """
        has_classes = report.routing is not None and report.routing.get("classifier") is not None
        if pipeline.router.seen and (pipeline.router.version or not has_classes):
            return
        try:
            other = ClassRouter.from_bytes(report.router, self.spec.policy.make, list(self.spec.attributes))
        except SavedStateError as error:
            self.notes = [*self.notes, f"classes are learnt anew: {error}"][-MOST_CHANGES:]
            return
        if pipeline.router.seen:
            pipeline.router.learn_from(other)
        else:
            pipeline.router = other
            pipeline.policy = other.overall

    def _gathered(self, batches: Iterable[Columns]) -> Iterator[tuple[Columns, list[int]]]:
        """Batches, with their sizes; several as one batch where that costs less than the fixed cost of each."""
        waiting: list[Columns] = []
        for columns in batches:
            waiting.append(columns)
            if len(waiting) == MOST_GATHERED or not self._is_cheap(columns):
                yield _as_one_batch(waiting)
                waiting = []
        if waiting:
            yield _as_one_batch(waiting)

    def _is_cheap(self, columns: Columns) -> bool:
        """Whether the filters are expected to take next to no time for a batch, and Arrow to copy it as fast."""
        expected = len(columns[0]) * self.pipeline.row_seconds  # NaN as long as nothing is known
        if self.pipeline.waits:  # a batch is never long enough to keep services busy at its end
            return True
        return expected < CHEAP_SECONDS and all(pa.types.is_primitive(column.type) for column in columns)

    def _filter_of(self, number: int, judge: Judge) -> Callable[[View], Booleans] | WaitingFilter:
        """The judge as a filter: rows that it rejects go; rows that it fails on stay, others may reject them.

        For a three-valued answer the rows that are NULL stay as well: another predicate may be false.
        """

        def remaining(view: View, verdict: Verdict) -> Booleans:
            kept = verdict.true
            if verdict.null is not None and self.spec.answer is Answer.TRUTH:
                self._nulls[view.positions[verdict.null]] = True
                kept = kept | verdict.null
            if verdict.failed is None:
                return kept
            places = view.positions
            for row, reason in (verdict.reasons or {}).items():
                self._failures.setdefault(int(places[row]), {})[number] = reason
            return kept | verdict.failed

        if isinstance(judge, Waits):
            return WaitingStage(judge, remaining)
        return lambda view: remaining(view, judge.judge(view))

    def _answers(
        self, columns: Columns, kept: Booleans, failures: Mapping[int, Failure], quarantine: Quarantine | None
    ) -> pa.Array:
        """An answer for each row, in the form that the query wants."""
        if self.spec.answer is Answer.KEEP_OR_REASON:
            return self._kept_or_reasons(columns, kept, failures)
        if failures:
            self._settle(columns, kept, failures, quarantine)
        if self.spec.answer is Answer.KEEP:
            return pa.array(kept)
        unknown = kept & self._nulls if kept.size else kept
        unknown[list(failures)] = True  # which were dropped: neither true nor false
        return pa.array(kept, mask=unknown)

    def _settle(
        self, columns: Columns, kept: Booleans, failures: Mapping[int, Failure], quarantine: Quarantine | None
    ) -> None:
        """Raise, drop or quarantine the rows that failed, as the user wants."""
        if self.spec.on_error == "raise":
            row, failure = next(iter(failures.items()))
            raise PredicateError(self._failure_text(columns, row, failure))
        rows = list(failures)
        kept[rows] = False
        if quarantine:
            quarantine.add(
                {name: column.take(pa.array(rows)) for name, column in zip(self.spec.columns, columns, strict=False)},
                [(self.spec.names[failure.predicate], failure.reason) for failure in failures.values()],
            )

    def _kept_or_reasons(self, columns: Columns, kept: Booleans, failures: Mapping[int, Failure]) -> pa.StringArray:
        """For each row NULL if it is rejected, nothing if it is kept, or the predicate's number and why it failed."""
        texts = np.where(kept, np.array("", object), np.array(None, object))
        for row, failure in failures.items():
            number = self.spec.numbers[failure.predicate]
            texts[row] = f"{number:02d} {self._failure_text(columns, row, failure)}"
        return pa.array(texts, pa.string())

    def _failure_text(self, columns: Columns, row: int, failure: Failure) -> str:
        values = {name: column[row].as_py() for name, column in zip(self.spec.columns, columns, strict=False)}
        return (
            f"predicate {self.spec.names[failure.predicate]!r} failed with {failure.reason} on the row {values!r}, "
            f"which no other predicate rejects. Mend the predicate, or pass on_error='drop' or "
            f"on_error='quarantine' to tw.where"
        )

    def _log_change(self, before: tuple[int, ...]) -> None:
        policy = self.pipeline.policy
        change = policy.last_change
        self.changes.append(
            {
                "at": time.time(),
                "rows": self.pipeline.tuples,
                "before": list(before),
                "after": list(policy.order),
                "moved": None if change is None else change.filter,
                "instead_of": None if change is None else change.instead_of,
            }
        )
        del self.changes[:-MOST_CHANGES]


def drifts_of(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The changes in the data that were detected, by a detector or by ordinary processing."""
    found: list[dict[str, Any]] = [
        {"rows": rows, "kind": "movement", "dropped": dropped} for rows, dropped in pipeline.restarts
    ]
    if isinstance(pipeline.policy, Watched):
        found += [
            {
                "at": change.stamp,
                "kind": str(change.kind),
                "predicate": change.filter,
                "before": change.before,
                "after": change.after,
                "dropped": change.dropped,
                "order_before": list(change.order_before),
                "order_after": list(change.order_after),
            }
            for change in pipeline.policy.changes
        ]
    return found


def routing_of(pipeline: RoutedPipeline) -> dict[str, Any]:
    """The classes of a query, with all that is known of them, as plain values."""
    return pipeline.router.explain() | {
        "rows_by": [{"attributes": list(names), "rows": rows} for names, rows in pipeline.rows_by.items()],
        "split_seconds": pipeline.split_seconds,
        "choose_seconds": pipeline.choose_seconds,
    }


def _as_one_batch(batches: Sequence[Columns]) -> tuple[Columns, list[int]]:
    sizes = [len(columns[0]) for columns in batches]
    if len(batches) == 1:
        return batches[0], sizes
    return [pa.concat_arrays(several) for several in zip(*batches, strict=True)], sizes


_passes: OrderedDict[str, FilterPass] = OrderedDict()  # of this process, the most recently used at the end


def pass_of(spec: PassSpec) -> FilterPass:
    """The predicates of a query in this process, ready for a task; they learn on from task to task."""
    found = _passes.pop(spec.key, None) or FilterPass(spec)
    _passes[spec.key] = found
    while len(_passes) > MOST_PASSES:
        _passes.popitem(last=False)
    found.begin_task(spec)
    return found
