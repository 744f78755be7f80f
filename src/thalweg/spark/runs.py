"""What runs in this program: one registry of filters, streams and joins, by their keys; explain and metrics read it."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence

MOST_RUNS = 1000  # that the driver remembers

_runs: OrderedDict[str, object] = OrderedDict()
_lock = threading.Lock()


def new_key() -> str:
    """A key that no other run has."""
    return uuid.uuid4().hex[:12]


def record(key: str, run: object) -> None:
    """Remember a run; the oldest are forgotten when there are too many."""
    with _lock:
        _runs[key] = run
        while len(_runs) > MOST_RUNS:
            _runs.popitem(last=False)


def find(keys: Sequence[str]) -> list[object]:
    """The runs that have one of these keys, in the order of the keys."""
    with _lock:
        return [_runs[key] for key in keys if key in _runs]
