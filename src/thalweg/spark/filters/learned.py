"""What a query has learnt, in files: shared by its workers, read by the driver, kept for the next run.

Each worker process writes one file, whole or not at all, and reads the others'. No pickle: a JSON text and a profile in
Arrow's format, behind a digest that is checked first. The folder may be on any file system that Arrow knows.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import Any

from thalweg.ordering import Profile
from thalweg.sealed import SavedStateError

MAGIC = b"thalweg2"
SUFFIX = ".learned"
PLAN, WARM = "plan-", "warm-"  # files of what a sample told of all predicates, and of what earlier workers have learnt


class StateError(ValueError):
    """Saved state that cannot be used: damaged, from a newer version, or of another query."""


@dataclass
class Learned:
    """What one worker process, or a sample, has learnt of a query's predicates."""

    run: str  # the key of the query that learnt it
    predicates: list[str]  # their names, as written
    order: list[int]
    profile: Profile
    rows: int = 0
    kept: int = 0
    evaluated: list[int] = field(default_factory=list)  # for each predicate, as written
    dropped: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)  # a row, None where nothing is known
    call_costs: list[float] = field(default_factory=list)
    profile_seconds: float = 0.0
    profile_evaluations: int = 0  # rows that predicates looked at for profiling alone
    changes: list[dict[str, Any]] = field(default_factory=list)  # when, from which order to which, and why
    drifts: list[dict[str, Any]] = field(default_factory=list)  # changes in the data that were detected
    routing: dict[str, Any] | None = None  # classes and their orders, as `ClassRouter.explain` tells them
    router: bytes = b""  # and as others learn from them
    branches: list[dict[str, Any]] = field(default_factory=list)  # of conditions in Spark, by class
    inner: list[tuple[int, list[int]]] = field(default_factory=list)  # orders of the members of disjunctions in Spark
    notes: list[str] = field(default_factory=list)  # what could not be used
    at: float = field(default_factory=time.time)

    def to_bytes(self) -> bytes:
        """The file's content."""
        about = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in {"profile", "router"}}
        text, profile = json.dumps(about).encode(), self.profile.to_bytes()
        body = struct.pack("<II", len(text), len(profile)) + text + profile + self.router
        return MAGIC + hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Learned:
        """What `to_bytes` wrote, checked before anything is made of it."""
        magic, digest, body = data[:8], data[8:40], data[40:]
        if magic != MAGIC:
            raise StateError("this is no saved state, or one of another version; delete it to start afresh")
        if hashlib.sha256(body).digest() != digest:
            raise StateError("the saved state is damaged or cut short; delete it to start afresh")
        start = struct.calcsize("<II")
        text, profile = struct.unpack_from("<II", body)
        middle, end = start + text, start + text + profile
        try:
            about = json.loads(body[start:middle])
            return cls(**about, profile=Profile.from_bytes(body[middle:end]), router=body[end:])
        except (SavedStateError, TypeError) as error:
            raise StateError(f"the saved state cannot be read: {error}") from None


def merge(several: Sequence[Learned]) -> Learned:
    """What workers of earlier runs have learnt, put together: the newest order and the newest profile tuples."""
    newer_first = sorted(several, key=lambda one: -one.at)
    newest = newer_first[0]
    profile = reduce(Profile.merge, (one.profile for one in newer_first))
    has_classes = max(newer_first, key=lambda one: bool(one.router) + bool(one.routing and one.routing["classifier"]))
    return Learned(
        run="",
        predicates=newest.predicates,
        order=newest.order,
        profile=profile,
        costs=newest.costs,
        call_costs=newest.call_costs,
        routing=has_classes.routing,
        router=has_classes.router,
        at=newest.at,
    )


def digest(names: Iterable[str]) -> str:
    """A short name for a list of predicates."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
