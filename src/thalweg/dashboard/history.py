"""The history of one run, folded from its events: bounded in size, however long the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from thalweg.dashboard.measures import drifts_of, point_of, switches_of, title_of

Point = TypeVar("Point")

MOST_POINTS = 1200  # of a series; then every second of the older half is left out
LEAST_SECONDS = 0.5  # between two points
MOST_MARKS = 500  # switches, and changes in the data, that are kept
STALE_SECONDS = 20.0  # without an event, after which a run that has not ended is stale


@dataclass
class Update:
    """The part of a run's history that is new."""

    names: set[str] = field(default_factory=set)  # of values
    points: list[list[float | None]] = field(default_factory=list)
    switches: list[dict[str, Any]] = field(default_factory=list)
    drifts: list[dict[str, Any]] = field(default_factory=list)


class RunHistory:
    """All that is known of a run.

    >>> history = RunHistory("0" * 32)
    >>> history.fold({"sequence": 1, "at": 5.0, "about": {"kind": "where"}, "changed": {}})
    >>> history.fold({"sequence": 2, "at": 6.0, "changed": {"rows": 10, "as_written": ["a"]}})
    >>> history.title, history.values["rows"], history.state(now=7.0), history.state(now=99.0)
    ('where: 1 predicate', 10, 'running', 'stale')
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.about: Mapping[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.points: list[list[float | None]] = []
        self.switches: list[dict[str, Any]] = []
        self.drifts: list[dict[str, Any]] = []
        self.switch_count = self.drift_count = 0
        self.began_at = self.heard_at = 0.0
        self.events = self.lost = 0
        self.ended = False
        self.error: str | None = None
        self._known: dict[str, None] = {}  # the ids of switches and changes in the data
        self._sequence = 0
        self._update: Update | None = Update()

    @property
    def kind(self) -> str:
        """The kind of the run: where, join or session."""
        return str(self.about.get("kind", ""))

    @property
    def title(self) -> str:
        """A short name of the run."""
        return title_of(self.kind, self.values)

    def state(self, now: float) -> str:
        """How the run is at a time: running, ended, failed, or stale if its program is silent."""
        if self.ended:
            return "failed" if self.error else "ended"
        return "stale" if now - self.heard_at > STALE_SECONDS else "running"

    def fold(self, event: Mapping[str, Any]) -> None:
        """Take in an event; an event that cannot be read raises, and changes nothing."""
        at, sequence, changed = float(event["at"]), int(event["sequence"]), dict(event["changed"])
        about, values = dict(event.get("about", self.about)), self.values | changed
        if not math.isfinite(at):
            raise ValueError(f"{at} is no time")
        kind = str(about.get("kind", ""))
        title_of(kind, values)
        point = point_of(kind, at, values)
        switches, drifts = list(switches_of(kind, changed)), list(drifts_of(changed))

        update = self._update = self._update or Update()
        self.about = about
        self.began_at = self.began_at or at
        self.heard_at = max(self.heard_at, at)
        self.lost += max(sequence - self._sequence - 1, 0) if self._sequence else 0
        self._sequence = sequence
        self.events += 1
        if event.get("ended"):
            self.ended, self.error = True, event.get("error")
        if not changed:
            return
        self.values = values
        update.names |= changed.keys()
        self._add_point(point, update)
        for switch in switches:
            if self._is_new(f"switch {switch['id']}"):
                switch.setdefault("at", at)
                self.switch_count += 1
                update.switches.append(switch)
                self.switches = [*self.switches[1 - MOST_MARKS :], switch]
        for drift in drifts:
            if self._is_new(f"drift {drift['id']}"):
                drift.setdefault("at", at)
                self.drift_count += 1
                update.drifts.append(drift)
                self.drifts = [*self.drifts[1 - MOST_MARKS :], drift]

    def take_update(self) -> Update | None:
        """What is new since this was last called; None if nothing has come."""
        update, self._update = self._update, None
        return update

    def head(self, now: float) -> dict[str, Any]:
        """The facts of a run that are told with every update."""
        return {
            "run": self.token,
            "kind": self.kind,
            "title": self.title,
            "about": self.about,
            "state": self.state(now),
            "error": self.error,
            "began_at": self.began_at,
            "heard_at": self.heard_at,
            "events": self.events,
            "switch_count": self.switch_count,
            "drift_count": self.drift_count,
        }

    def whole(self, now: float) -> dict[str, Any]:
        """The whole history, for a page that has just been opened."""
        return self.head(now) | {
            "values": self.values,
            "points": self.points,
            "switches": self.switches,
            "drifts": self.drifts,
        }

    def part(self, update: Update, now: float) -> dict[str, Any]:
        """The new part of the history, for a page that is open."""
        return self.head(now) | {
            "values": {name: self.values[name] for name in update.names},
            "points": update.points,
            "switches": update.switches,
            "drifts": update.drifts,
        }

    def _add_point(self, point: list[float | None], update: Update) -> None:
        at, last = point[0], self.points[-1][0] if self.points else None
        if at is not None and last is not None and at - last < LEAST_SECONDS:
            return
        self.points.append(point)
        update.points.append(point)
        self.points = thinned(self.points, MOST_POINTS)

    def _is_new(self, identity: str) -> bool:
        if identity in self._known:
            return False
        self._known[identity] = None
        if len(self._known) > 8 * MOST_MARKS:
            del self._known[next(iter(self._known))]
        return True


def thinned(points: Iterable[Point], most: int) -> list[Point]:
    """The points, without every second of the older half if there are too many.

    >>> thinned(range(8), most=7)
    [0, 2, 4, 5, 6, 7]
    """
    listed = list(points)
    if len(listed) <= most:
        return listed
    half = len(listed) // 2
    return [*listed[:half:2], *listed[half:]]
