"""The numbers of all runs for Prometheus. docs/dashboard.md documents every name."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from thalweg.dashboard.history import RunHistory
from thalweg.dashboard.measures import SERIES, evaluations_of
from thalweg.dashboard.store import EventStore

CONTENT_TYPE = CONTENT_TYPE_LATEST

RUN = ("run", "kind")
PREDICATE = ("run", "predicate")
INPUT = ("run", "input")
QUERY = ("run", "query")
# Every metric: its name, whether it only grows, its labels, and its meaning.
METRICS: tuple[tuple[str, bool, tuple[str, ...], str], ...] = (
    ("thalweg_run_info", False, ("run", "kind", "title", "program"), "A run; always 1."),
    ("thalweg_run_up", False, RUN, "1 while the run's program writes events, else 0."),
    ("thalweg_rows", True, RUN, "Rows that have come."),
    ("thalweg_results", True, RUN, "Rows that were kept, or results of joins and queries."),
    ("thalweg_switches", True, RUN, "Changes of orders and plans."),
    ("thalweg_drifts", True, RUN, "Changes in the data that were detected."),
    ("thalweg_memory_bytes", False, RUN, "Memory of windows and indexes, of classes, or of rounds."),
    ("thalweg_lag_seconds", False, RUN, "How far event time lies behind the clock."),
    ("thalweg_batch_seconds", False, RUN, "Duration of the last micro-batch."),
    ("thalweg_evaluations", True, RUN, "Evaluations of predicates in Python."),
    ("thalweg_row_cost_seconds", False, ("run", "order"), "Mean cost of a row: now, as_written, optimal."),
    ("thalweg_predicate_position", False, PREDICATE, "Place of the predicate in the order, from 1."),
    ("thalweg_predicate_rows", True, PREDICATE, "Rows that the predicate was evaluated on."),
    ("thalweg_predicate_dropped", True, PREDICATE, "Rows that the predicate has dropped."),
    ("thalweg_predicate_failed", True, PREDICATE, "Rows on which the predicate has failed."),
    ("thalweg_predicate_seconds", True, PREDICATE, "Time in the predicate."),
    ("thalweg_join_rows", True, INPUT, "Rows of an input of a join."),
    ("thalweg_join_late_rows", True, INPUT, "Rows of an input that came too late."),
    ("thalweg_join_state_rows", False, INPUT, "Rows of an input in the state."),
    ("thalweg_join_state_bytes", False, ("run",), "Size of the state of a join."),
    ("thalweg_join_cells", False, ("run",), "Cells of a join."),
    ("thalweg_query_rounds", True, QUERY, "Rounds of a standing query that have ended."),
    ("thalweg_query_rows", True, QUERY, "Result rows of a standing query."),
    ("thalweg_query_late_rows", True, QUERY, "Rows that came too late for a standing query."),
    ("thalweg_query_moves", True, QUERY, "Moves of a standing query over its charts."),
    ("thalweg_query_switches", True, QUERY, "Rounds with another plan than the round before."),
    ("thalweg_query_fidelity", False, QUERY, "Share of rounds with the plan that was best in hindsight."),
)

Sample = tuple[str, tuple[str, ...], Any]  # name of the metric, values of its labels, value


def exposition(store: EventStore) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(store))
    return generate_latest(registry)


class _Collector(Collector):
    """Makes metrics of the histories of runs."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """All metrics that have a value."""
        samples: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for history in self._store.runs:
            try:
                known = [
                    (name, tuple(map(_printable, labels)), float(value))
                    for name, labels, value in samples_of(history, time.time())
                    if value is not None
                ]
            except Exception:  # noqa: BLE001, S112 - whatever another program wrote, the others are told
                continue
            for name, labels, value in known:
                samples.setdefault(name, []).append((labels, value))
        for name, grows, label_names, meaning in METRICS:
            kind = CounterMetricFamily if grows else GaugeMetricFamily
            family = kind(name, meaning, labels=label_names)
            for values, value in samples.get(name, ()):
                family.add_metric(values, value)
            yield family


def _printable(label: str) -> str:
    """The label, without the halves of characters that names of files may have."""
    return label.encode("utf-8", "replace").decode()


def samples_of(history: RunHistory, now: float) -> Iterator[Sample]:
    """All samples of a run."""
    run, kind, values = history.token[:12], history.kind, history.values
    own, progress = (run, kind), values.get("progress") or {}
    numbers = dict(zip(SERIES, history.points[-1], strict=True)) if history.points else {}
    yield "thalweg_run_info", (*own, history.title, str(history.about.get("program", ""))), 1
    yield "thalweg_run_up", own, history.state(now) == "running"
    for name, key in (("rows", "rows"), ("results", "results"), ("memory_bytes", "memory"), ("lag_seconds", "lag")):
        yield f"thalweg_{name}", own, numbers.get(key)
    yield "thalweg_switches", own, history.switch_count
    yield "thalweg_drifts", own, history.drift_count
    yield "thalweg_batch_seconds", own, progress.get("batch_seconds")
    by_kind = {"where": _of_filters, "join": _of_join, "session": _of_session}
    if kind in by_kind:
        yield from by_kind[kind](run, values)


def _of_filters(run: str, values: Mapping[str, Any]) -> Iterator[Sample]:
    yield "thalweg_evaluations", (run, "where"), evaluations_of(values)
    for order in ("now", "as_written", "optimal"):
        known = [cost[order] for cost in values.get("costs") or () if cost.get(order) is not None]
        yield "thalweg_row_cost_seconds", (run, order), sum(known) if known else None
    predicates = values.get("predicates") or ()
    for place, (name, predicate) in enumerate(_distinct(predicates), 1):
        yield "thalweg_predicate_position", (run, name), place
        yield "thalweg_predicate_rows", (run, name), predicate.get("rows_seen")
        for key in ("dropped", "failed", "seconds"):
            yield f"thalweg_predicate_{key}", (run, name), predicate.get(key)


def _of_join(run: str, values: Mapping[str, Any]) -> Iterator[Sample]:
    yield "thalweg_join_state_bytes", (run,), values.get("state_bytes")
    yield "thalweg_join_cells", (run,), values.get("cells")
    for name, source in (values.get("inputs") or {}).items():
        for metric, key in (("rows", "rows"), ("late_rows", "late"), ("state_rows", "rows_in_state")):
            yield f"thalweg_join_{metric}", (run, name), source.get(key)


def _of_session(run: str, values: Mapping[str, Any]) -> Iterator[Sample]:
    for name, query in _distinct(values.get("queries") or ()):
        for key in ("rounds", "rows", "late_rows", "moves", "switches", "fidelity"):
            yield f"thalweg_query_{key}", (run, name), query.get(key)


def _distinct(described: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Descriptions by name; a name that occurred before gets a number.

    >>> [name for name, _ in _distinct([{"name": "a"}, {"name": "a"}])]
    ['a', 'a (2)']
    """
    counts: Counter[str] = Counter()
    for each in described:
        name = str(each.get("name", ""))
        counts[name] += 1
        yield name if counts[name] == 1 else f"{name} ({counts[name]})", each
