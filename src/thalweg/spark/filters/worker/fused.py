"""Runs a query's Python predicates in a worker: one pass over Arrow batches, in an order that adapts.

A process keeps what it has learnt of a query from batch to batch and from task to task, shares it with the other
workers of the query through files, and begins with what they know. Imports no pyspark before a task runs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.drift import Detector, Watched
from thalweg.ordering import Policy
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.types import Booleans, Floats
from thalweg.routing import ClassRouter, RoutedPipeline
from thalweg.sealed import SavedStateError
from thalweg.spark.filters.learned import SUFFIX, Learned, StateError
from thalweg.spark.filters.worker.judges import Judge, PredicateError, View
from thalweg.spark.filters.worker.quarantine import Quarantine
from thalweg.spark.folder import StateFolder

MOST_QUERIES = 32  # that a worker process remembers
MOST_CHANGES = 20  # of the order that a worker reports
MOST_GATHERED = 8  # batches that are evaluated as one,
CHEAP_SECONDS = 2e-4  # if the filters take less for each: some times what a batch costs besides

Columns = Sequence[pa.Array]


@dataclass(frozen=True)
class PolicySpec:
    """How a worker makes the policy of a query."""

    kind: type[Policy]
    filters: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of the policy; costs are the hints, if there are any
    detector: Detector | None = None  # one that has seen nothing yet

    def make(self, order: Sequence[int] | None = None) -> Policy:
        """A policy that has learnt nothing yet; it begins with this order if there is one."""
        policy = self.kind(self.filters, **{**self.options, **({"order": order} if order else {})})
        return policy if self.detector is None else Watched(policy, deepcopy(self.detector))


@dataclass(frozen=True)
class FusedSpec:
    """All that a worker needs to know of a query; the driver sends it with every task."""

    key: str
    judges: Callable[[], Sequence[Judge]]  # makes them, once in a process
    columns: tuple[str, ...]  # the names of the columns that come; codes of conditions may follow them
    policy: PolicySpec
    state: str  # the folder
    on_error: str = "raise"
    quarantine: str | None = None  # the folder
    names: tuple[str, ...] = ()  # of the predicates, as written
    numbers: tuple[int, ...] = ()  # and their numbers in the whole query
    puts_off_errors: bool = False  # a later stage may still reject the rows that fail here
    attributes: Mapping[str, int] = field(default_factory=dict)  # columns that may tell classes apart, by their place


class Failure(NamedTuple):
    """What went wrong on a row."""

    predicate: int
    reason: str


class Fused:
    """The predicates of one query in one process."""

    def __init__(self, spec: FusedSpec) -> None:
        self.spec = spec
        self.worker = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.folder = StateFolder(spec.state)
        self.judges = tuple(spec.judges())
        filters = [self._stays(number, judge) for number, judge in enumerate(self.judges)]
        how: dict[str, Any] = {"costs": spec.policy.options.get("costs"), "stamp": time.time}
        self.pipeline = (
            RoutedPipeline(ClassRouter(spec.policy.make, list(spec.attributes)), filters, **how)
            if spec.attributes
            else Pipeline(spec.policy.make(), filters, **how)
        )
        self.failed = np.zeros(len(self.judges), np.int64)
        self.changes: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._failures: dict[int, dict[int, str]] = {}  # in the current batch: row, predicate, reason
        self._versions: dict[str, object] = {}
        self._known_stamps: dict[str, float] = {}

    def run(self, batches: Iterable[Columns]) -> Iterator[pa.Array]:
        """One task: which rows of each batch are kept."""
        self.learn_from_others()
        quarantine = Quarantine(self.spec.quarantine, self.spec.key) if self.spec.quarantine else None
        try:
            for columns, sizes in self._gathered(batches):
                kept, failures = self.keep(columns)
                if failures and not self.spec.puts_off_errors:
                    self._settle(columns, kept, failures, quarantine)
                verdicts = self._outcomes(kept, failures) if self.spec.puts_off_errors else pa.array(kept)
                start = 0
                for size in sizes:  # an array for each batch
                    yield verdicts.slice(start, size)
                    start += size
            if quarantine:
                quarantine.commit()
        finally:
            self.save()

    def _gathered(self, batches: Iterable[Columns]) -> Iterator[tuple[Columns, list[int]]]:
        """Batches, with their sizes; several as one where that costs less than what each costs besides its rows."""
        waiting: list[Columns] = []
        for columns in batches:
            waiting.append(columns)
            if len(waiting) == MOST_GATHERED or not self._is_cheap(columns):
                yield _as_one(waiting)
                waiting = []
        if waiting:
            yield _as_one(waiting)

    def _is_cheap(self, columns: Columns) -> bool:
        """Whether the filters are expected to take next to no time for a batch, and Arrow to copy it as fast."""
        expected = len(columns[0]) * self.pipeline.row_seconds  # NaN as long as nothing is known
        return expected < CHEAP_SECONDS and all(pa.types.is_primitive(one.type) for one in columns)

    @property
    def kept(self) -> int:
        """Rows that no predicate rejected or failed on."""
        return int(self.pipeline.tuples - self.pipeline.dropped.sum() - self.failed.sum())

    def keep(self, columns: Columns) -> tuple[Booleans, dict[int, Failure]]:
        """Which rows no predicate rejects, and on which of these one failed; they count as kept."""
        if not len(columns[0]):
            return np.zeros(0, np.bool_), {}
        before = self.pipeline.policy.order
        self._failures.clear()
        if isinstance(self.pipeline, RoutedPipeline):
            values = {name: columns[place] for name, place in self.spec.attributes.items()}
            kept = self.pipeline.keep(View(columns), values)
        else:
            kept = self.pipeline.keep(View(columns))
        if self.pipeline.policy.order != before:
            self._log_change(before)
        if not self._failures:
            return kept, {}
        # All predicates have seen a row that none rejects: the first as written is named, whatever the order.
        failures = {
            row: Failure(min(reasons), reasons[min(reasons)])
            for row, reasons in sorted(self._failures.items())
            if kept[row]
        }
        for failure in failures.values():
            self.failed[failure.predicate] += 1
        return kept, failures

    def learned(self) -> Learned:
        """What this process knows of the query."""
        line = self.pipeline
        return Learned(
            run=self.spec.key,
            predicates=list(self.spec.names),
            order=list(line.policy.order),
            profile=line.policy.profile,
            rows=line.tuples,
            kept=self.kept,
            evaluated=line.evaluated.tolist(),
            dropped=line.dropped.tolist(),
            failed=self.failed.tolist(),
            seconds=line.seconds.tolist(),
            costs=[None if np.isnan(cost) else float(cost) for cost in line.costs],
            call_costs=line.call_costs.tolist(),
            profile_seconds=line.profile_seconds,
            profile_evaluations=line.extra_evaluations,
            changes=self.changes,
            drifts=self._drifts(),
            routing=routing_of(line) if isinstance(line, RoutedPipeline) else None,
            router=line.router.to_bytes() if isinstance(line, RoutedPipeline) else b"",
            notes=self.notes,
        )

    def _drifts(self) -> list[dict[str, Any]]:
        """The changes in the data that were detected, by a detector or by ordinary processing."""
        line = self.pipeline
        found: list[dict[str, Any]] = [
            {"rows": rows, "kind": "movement", "dropped": dropped} for rows, dropped in line.restarts
        ]
        if isinstance(line.policy, Watched):
            found += [
                {
                    "at": one.stamp,
                    "kind": str(one.kind),
                    "predicate": one.filter,
                    "before": one.before,
                    "after": one.after,
                    "dropped": one.dropped,
                    "order_before": list(one.order_before),
                    "order_after": list(one.order_after),
                }
                for one in line.policy.changes
            ]
        return found

    def save(self) -> None:
        """Let the others know; a folder that cannot be written costs the sharing, never the query."""
        with contextlib.suppress(OSError):
            name = f"{self.worker}{SUFFIX}"
            self.folder.write(name, self.learned().to_bytes())
            self._versions[name] = self.folder.versions().get(name)

    def learn_from_others(self) -> None:
        """Take in what other workers, or earlier runs, have learnt since the last look."""
        with contextlib.suppress(OSError):
            versions = self.folder.versions()
            news = [name for name, at in versions.items() if name.endswith(SUFFIX) and self._versions.get(name) != at]
            self._versions = versions
            for name, content in self.folder.read(name for name in news if not name.startswith(self.worker)).items():
                with contextlib.suppress(StateError):
                    self._take_in(name, Learned.from_bytes(content))

    def _take_in(self, name: str, learned: Learned) -> None:
        if tuple(learned.predicates) != self.spec.names:
            return
        profile = learned.profile
        new = profile.stamps > self._known_stamps.get(name, -np.inf)
        before = self.pipeline.policy.order
        if not self.pipeline.tuples:
            self.begin_with(learned)
        if isinstance(self.pipeline, RoutedPipeline) and learned.router:
            self._take_in_classes(self.pipeline, learned)
        if new.any():
            self.pipeline.policy.update(profile.masks[new], profile.times[new], profile.stamps[new])
            self._known_stamps[name] = float(profile.stamps.max())
        if self.pipeline.policy.order != before:
            self._log_change(before)

    def begin_with(self, learned: Learned) -> None:
        """Start from another's order and costs."""
        if isinstance(self.pipeline, RoutedPipeline):
            if not self.pipeline.router.seen:
                self.pipeline.router.begin(learned.order)
            self.pipeline.policy = self.pipeline.router.overall
        else:
            self.pipeline.policy = self.spec.policy.make(learned.order)
        if learned.costs and None not in learned.costs:
            costs: Floats = np.array(learned.costs, np.float64)
            self.pipeline.warm_up(costs, learned.call_costs or np.zeros(costs.size))

    def _take_in_classes(self, line: RoutedPipeline, learned: Learned) -> None:
        """Learn the classes that another process has found; a process that knows nothing goes on from there.

        One that has had classes decides for itself, whatever others still do.
        """
        has_classes = learned.routing is not None and learned.routing["classifier"] is not None
        if line.router.seen and (line.router.version or not has_classes):
            return
        try:
            other = ClassRouter.from_bytes(learned.router, self.spec.policy.make, list(self.spec.attributes))
        except SavedStateError as error:
            self.notes = [*self.notes, f"classes are learnt anew: {error}"][-MOST_CHANGES:]
            return
        if line.router.seen:
            line.router.learn_from(other)
        else:
            line.router = other
            line.policy = other.overall

    def _stays(self, number: int, judge: Judge) -> Callable[[View], Booleans]:
        """The judge as a filter: rows that it rejects go; those that it fails on stay, others may reject them."""

        def stays(view: View) -> Booleans:
            verdict = judge.judge(view)
            if verdict.failed is None:
                return verdict.true
            places = view.positions
            for row, reason in (verdict.reasons or {}).items():
                self._failures.setdefault(int(places[row]), {})[number] = reason
            return verdict.true | verdict.failed

        return stays

    def _settle(
        self, columns: Columns, kept: Booleans, failures: Mapping[int, Failure], quarantine: Quarantine | None
    ) -> None:
        """Do with the rows that failed what the user wants done."""
        if self.spec.on_error == "raise":
            row, failure = next(iter(failures.items()))
            values = {name: column[row].as_py() for name, column in zip(self.spec.columns, columns, strict=False)}
            raise PredicateError(
                f"predicate {self.spec.names[failure.predicate]!r} failed with {failure.reason} on the row {values!r}, "
                f"which no other predicate rejects. Mend the predicate, or pass on_error='drop' or "
                f"on_error='quarantine' to tw.where"
            )
        rows = list(failures)
        kept[rows] = False
        if quarantine:
            quarantine.add(
                {name: column.take(pa.array(rows)) for name, column in zip(self.spec.columns, columns, strict=False)},
                [(self.spec.names[failure.predicate], failure.reason) for failure in failures.values()],
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

    def _outcomes(self, kept: Booleans, failures: Mapping[int, Failure]) -> pa.StringArray:
        """For each row NULL if it is rejected, nothing if it is kept, or what failed."""
        texts = np.where(kept, np.array("", object), np.array(None, object))
        if self.spec.on_error == "drop":
            texts[list(failures)] = None
            return pa.array(texts, pa.string())
        for row, failure in failures.items():
            number, name = self.spec.numbers[failure.predicate], self.spec.names[failure.predicate]
            texts[row] = f"{number:02d} predicate {name!r} failed with {failure.reason}"
        return pa.array(texts, pa.string())


def _as_one(batches: Sequence[Columns]) -> tuple[Columns, list[int]]:
    sizes = [len(columns[0]) for columns in batches]
    if len(batches) == 1:
        return batches[0], sizes
    return [pa.concat_arrays(several) for several in zip(*batches, strict=True)], sizes


def routing_of(line: RoutedPipeline) -> dict[str, Any]:
    """What is known of the classes of a query, as plain values."""
    return line.router.explain() | {
        "rows_by": [{"attributes": list(names), "rows": rows} for names, rows in line.rows_by.items()],
        "split_seconds": line.split_seconds,
        "choose_seconds": line.choose_seconds,
    }


_queries: OrderedDict[str, Fused] = OrderedDict()  # of this process, the one used last at the end


def fused(spec: FusedSpec) -> Fused:
    """The predicates of a query in this process; they learn on from task to task."""
    found = _queries.pop(spec.key, None) or Fused(spec)
    _queries[spec.key] = found
    while len(_queries) > MOST_QUERIES:
        _queries.popitem(last=False)
    return found
