"""A `tw.where` or `tw.stream` that was started: its query, the plan that runs now, and the plans before it.

Lives in the registry of runs, from which explain and metrics read. This is the only mutable state of a query.
"""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar

from thalweg.sealed import SavedStateError
from thalweg.spark.filters.evidence import PREFIX, Evidence
from thalweg.spark.filters.plan import FilterPlan
from thalweg.spark.filters.query import FilterQuery
from thalweg.spark.filters.worker.filter_pass import MOST_CHANGES
from thalweg.spark.filters.worker.report import MERGED, SUFFIX, WorkerReport, merge


class FilterRun:
    """A query, its current plan, and the workers' reports on it."""

    kind: ClassVar[str] = "where"

    def __init__(self, query: FilterQuery, plan: FilterPlan) -> None:
        self.query = query
        self.plan = plan
        self.changes: list[dict[str, Any]] = []  # of the order of stages: when, from which to which
        self._notes: list[str] = list(query.notes)
        self._lock = threading.Lock()

    @property
    def key(self) -> str:
        """The name of the run in plans."""
        return self.query.key

    @property
    def notes(self) -> list[str]:
        """Fallbacks: nothing is silent."""
        with self._lock:
            return list(self._notes)

    def note(self, note: str) -> None:
        """Note a fallback, once."""
        with self._lock:
            if note not in self._notes:
                self._notes.append(note)

    def switch_to(self, plan: FilterPlan) -> None:
        """Go on with another plan."""
        with self._lock:
            if plan.order != self.plan.order:
                change = {"at": time.time(), "rows": None, "before": self.plan.order, "after": plan.order}
                self.changes = [*self.changes[1 - MOST_CHANGES :], change]
            self.plan = plan

    def reports(self) -> list[WorkerReport]:
        """The reports of this run's workers so far."""
        reports, notes = read_reports(self.query)
        for note in notes:
            self.note(note)
        return [report for report in reports.values() if report.run.startswith(f"{self.key}.")]

    def describe(self) -> dict[str, Any]:
        """All that is known of the run at this moment."""
        from thalweg.spark.filters.explain import describe_where

        return describe_where(self)

    def text(self, description: dict[str, Any]) -> str:
        """A description for people to read."""
        from thalweg.spark.filters.explain import where_text

        return where_text(description)


def evidence_file(query: FilterQuery) -> str:
    """The file of the evidence about all predicates of a query together."""
    return f"{PREFIX}{query.signature_of(range(len(query.predicates)))}{SUFFIX}"


def save_evidence(query: FilterQuery, evidence: Evidence) -> str | None:
    """Save the evidence about all predicates together, for the next run; returns why it cannot be saved, if so."""
    try:
        query.folder.write(evidence_file(query), evidence.to_bytes())
    except OSError as error:
        return f"what was learnt is not saved: {error}"
    return None


def saved_evidence(query: FilterQuery) -> tuple[Evidence | None, list[str]]:
    """The evidence of an earlier run about all predicates, if any, and notes on a file that cannot be used."""
    name = evidence_file(query)
    try:
        content = query.folder.read([name]).get(name)
        return (None if content is None else Evidence.from_bytes(content, query)), []
    except (OSError, SavedStateError) as error:
        return None, [f"{query.folder.url}/{name} is not used: {error}"]


def read_reports(query: FilterQuery) -> tuple[dict[str, WorkerReport], list[str]]:
    """All reports in a query's folder, by file, and notes on files that cannot be read, which are left alone."""
    found, notes = {}, list[str]()
    try:
        names = [name for name in query.folder.versions() if name.endswith(SUFFIX) and not name.startswith(PREFIX)]
        contents = query.folder.read(names)
    except OSError as error:
        return {}, [f"{query.folder.url} is not used: {error}"]
    for name, content in contents.items():
        try:
            found[name] = WorkerReport.from_bytes(content)
        except SavedStateError as error:
            notes.append(f"{query.folder.url}/{name} is not used: {error}")
    return found, notes


def merge_reports(query: FilterQuery) -> list[str]:
    """Merge the reports of earlier runs in the folder; returns notes on files that cannot be used.

    One file for each set of predicates is left: a folder does not grow with the number of runs.
    """
    reports, notes = read_reports(query)
    by_signature: dict[str, list[tuple[str, WorkerReport]]] = {}
    for name, report in reports.items():
        by_signature.setdefault(report.signature, []).append((name, report))
    for signature, several in by_signature.items():
        if len(several) > 1:
            merged_name = f"{MERGED}{signature}{SUFFIX}"
            try:
                query.folder.write(merged_name, merge([report for _, report in several]).to_bytes())
                query.folder.delete(name for name, _ in several if name != merged_name)
            except (OSError, ValueError) as error:
                notes.append(f"the reports of earlier runs are not merged: {error}")
    return notes
