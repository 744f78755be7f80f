"""The registry of runs: all that this program has started, from which explain, metrics and the page read.

Every `tw.where`, `tw.stream`, `tw.join` and `tw.Session` has a key and records its run under it. The keys that stand in
a plan lead back to the runs. Runs are found by key alone: names of predicates or queries may occur twice.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

MOST_RUNS = 1000  # that the driver remembers
KEY_DIGITS = 12


class Run(Protocol):
    """A run in the registry: filters, a join or a session."""

    kind: ClassVar[str]  # "where", "join" or "session"

    @property
    def key(self) -> str:
        """The name of the run in plans."""
        ...

    def describe(self) -> dict[str, Any]:
        """All that is known of the run at this moment, as plain values."""
        ...

    def text(self, description: dict[str, Any]) -> str:
        """A description for people to read."""
        ...


_lock = threading.Lock()
_runs: OrderedDict[str, Run] = OrderedDict()
_of_queries: OrderedDict[str, Run] = OrderedDict()  # by the id of the streaming query that a run drives


def new_key() -> str:
    """A key that no other run has."""
    return uuid.uuid4().hex[:KEY_DIGITS]


def record(run: Run) -> None:
    """Remember a run, and forget the oldest run if there are too many."""
    with _lock:
        _keep(_runs, run.key, run)


def find(keys: Sequence[str]) -> list[Run]:
    """The runs with these keys, as far as this program remembers them."""
    with _lock:
        return [_runs[key] for key in keys if key in _runs]


def recorded() -> list[Run]:
    """All runs that this program remembers, the oldest first."""
    with _lock:
        return list(_runs.values())


def attach(query_id: str, run: Run) -> None:
    """Note that a streaming query is driven by a run, although its plan does not say so."""
    with _lock:
        _keep(_of_queries, query_id, run)


def attached_to(query_id: str) -> Run | None:
    """The run that drives a streaming query, if any does."""
    with _lock:
        return _of_queries.get(query_id)


def _keep(runs: OrderedDict[str, Run], key: str, run: Run) -> None:
    runs[key] = run
    while len(runs) > MOST_RUNS:
        runs.popitem(last=False)
