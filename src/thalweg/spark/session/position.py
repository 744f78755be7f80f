"""Where a session stands after a micro-batch: what was delivered, and which rows wait for their rounds to end.

It is saved with every micro-batch, before Spark takes note that the micro-batch is done. A session that is started
again goes on from there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.sealed import refusing_odd_values, seal, unseal_json
from thalweg.spark.folder import StateFolder
from thalweg.spark.session.panes import Pane, Panes
from thalweg.spark.session.worker.shared_predicates import PredicateCounts

KIND, VERSION = "session position", 2
PREFIX = "position-"
KEPT = 2  # saved positions: those of the last two micro-batches


@dataclass(frozen=True)
class QueryPosition:
    """How far a query is: `delivered` is the last round that was, None before the first."""

    digest: str
    delivered: int | None = None
    rows: int = 0
    rounds: int = 0
    late: int = 0
    failed: str | None = None
    is_paused: bool = False
    schedule: Mapping[str, Any] | None = None  # what its scheduler has learnt
    waits: str | None = None  # why its next round is not computed although it has ended
    since: int = 0  # the first micro-batch of the query: logs may have earlier ones of a removed query with its text

    @property
    def is_served(self) -> bool:
        """Whether its rounds are computed."""
        return self.failed is None and not self.is_paused


@dataclass(frozen=True)
class WaitingFile:
    """A file of rows of one stream that wait, within the session's folder; `latest` is the latest time among them."""

    stream: str
    path: str
    rows: int
    latest: int
    size: int  # in bytes, as rows are in memory
    level: int = 0  # how often its rows were written together with those of other files


@dataclass(frozen=True)
class SessionPosition:
    """Where a session stands."""

    batch: int = -1
    latest: Mapping[str, int] = field(default_factory=dict)  # event time of each stream
    queries: Mapping[str, QueryPosition] = field(default_factory=dict)  # by token
    files: tuple[WaitingFile, ...] = ()
    panes: Panes = field(default_factory=dict)  # with rows that wait
    groups: Mapping[str, float] = field(default_factory=dict)  # in a round of each aggregated query, by token
    predicates: Mapping[str, PredicateCounts] = field(default_factory=dict)  # by the column of a shared call
    rows: int = 0  # that have come so far, of streams that queries read
    without_time: int = 0  # rows that have come without an event time

    def to_bytes(self) -> bytes:
        """The file's content."""
        return seal(KIND, VERSION, json.dumps(self, default=vars).encode())  # of each dataclass its fields

    @classmethod
    def from_bytes(cls, data: bytes) -> SessionPosition:
        """What `to_bytes` wrote."""
        values = unseal_json(KIND, VERSION, data)
        with refusing_odd_values(KIND):
            return cls(
                batch=_whole(values["batch"]),
                latest=_whole_numbers(values["latest"]),
                queries={token: _query_position(each) for token, each in values["queries"].items()},
                files=tuple(_file(**each) for each in values["files"]),
                panes={
                    stream: {int(end): _pane(**pane) for end, pane in ends.items()}
                    for stream, ends in values["panes"].items()
                },
                # Positions of early versions have none of these.
                groups={token: _number(groups) for token, groups in values.get("groups", {}).items()},
                predicates={column: _counts(**each) for column, each in values.get("predicates", {}).items()},
                rows=_whole(values.get("rows", 0)),
                without_time=_whole(values.get("without_time", 0)),
            )


def _query_position(values: Mapping[str, Any]) -> QueryPosition:
    position = QueryPosition(**values)
    counts = (position.rows, position.rounds, position.late, position.since)
    for number in counts if position.delivered is None else (*counts, position.delivered):
        _whole(number)
    if not isinstance(position.schedule, Mapping | None):
        raise TypeError(f"the schedule is {position.schedule!r:.40}")
    if not isinstance(position.waits, str | None):
        raise TypeError(f"a query waits because of {position.waits!r:.40}")
    return position


def _file(stream: str, path: str, rows: int, latest: int, size: int, level: int) -> WaitingFile:
    if not re.fullmatch(r"segments/\d+/[0-9a-f]+\.parquet", path):  # it will be removed one day
        raise ValueError(f"a file of rows that wait is {path!r:.40}")
    if not isinstance(stream, str):
        raise TypeError(f"the name of a stream is {stream!r:.40}")
    return WaitingFile(stream, path, _whole(rows), _whole(latest), _whole(size), _whole(level))


def _pane(width: int, rows: int, kept: Mapping[str, int]) -> Pane:
    if _whole(width) < 1:
        raise ValueError(f"a pane is {width} microseconds wide")
    return Pane(width, _whole(rows), _whole_numbers(kept))


def _counts(rows: float, true: float, seconds: float) -> PredicateCounts:
    return PredicateCounts(_number(rows), _number(true), _number(seconds))


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value < math.inf:
        raise ValueError(f"{value!r:.40} is no number of 0 or more")
    return value


def _whole_numbers(values: Mapping[str, int]) -> dict[str, int]:
    return {name: _whole(value) for name, value in values.items()}


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r:.40} is no whole number")
    return value


def load_position(folder: StateFolder) -> SessionPosition:
    """The last position that was saved; the beginning if there is none."""
    names = sorted(name for name in folder.versions() if name.startswith(PREFIX))
    return SessionPosition.from_bytes(folder.read([names[-1]])[names[-1]]) if names else SessionPosition()


def save_position(folder: StateFolder, position: SessionPosition) -> None:
    """Save a position, and remove old positions."""
    folder.write(f"{PREFIX}{position.batch:012d}", position.to_bytes())
    names = sorted(name for name in folder.versions() if name.startswith(PREFIX))
    folder.delete(names[:-KEPT])
