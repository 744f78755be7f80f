"""The report of a worker process on a query's predicates, as it writes it for the other workers and the driver."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import Any

from thalweg.ordering import Profile
from thalweg.sealed import SavedStateError, load_json, seal, unseal

KIND, VERSION = "filter report", 1
SUFFIX = ".learned"
MERGED = "merged-"  # the file of the merged reports of earlier runs


@dataclass
class WorkerReport:
    """All that one worker process, or the workers of earlier runs, have learnt of a query's Python predicates."""

    run: str  # the key of the run and of the stage that learnt it; empty for earlier runs
    signature: str  # of the predicates, by their content
    predicates: list[str]  # their names, as written
    order: list[int]
    profile: Profile
    rows: int = 0
    kept: int = 0
    evaluated: list[int] = field(default_factory=list)  # for each predicate, as written
    dropped: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)  # rows that were not asked for, as an equal row was
    costs: list[float | None] = field(default_factory=list)  # a row, None where nothing is known
    call_costs: list[float] = field(default_factory=list)
    profile_seconds: float = 0.0
    profile_evaluations: int = 0  # rows that predicates looked at for profiling alone
    changes: list[dict[str, Any]] = field(default_factory=list)  # of the order: when, from which to which, and why
    drifts: list[dict[str, Any]] = field(default_factory=list)  # changes in the data that were detected
    routing: dict[str, Any] | None = None  # classes and their orders, as `ClassRouter.explain` tells them
    router: bytes = b""  # and as other workers learn from them
    judges: dict[str, dict[str, Any]] = field(default_factory=dict)  # counts of predicates that wait, and of cascades
    tells_cost: bool = False  # whether a predicate tells its cost, which the costs of all predicates then follow
    notes: list[str] = field(default_factory=list)  # on files and classes that could not be used
    at: float = field(default_factory=time.time)

    def to_bytes(self) -> bytes:
        """The file's content."""
        values = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in {"profile", "router"}
        }
        return seal(KIND, VERSION, json.dumps(values).encode(), self.profile.to_bytes(), self.router)

    @classmethod
    def from_bytes(cls, data: bytes) -> WorkerReport:
        """The report that `to_bytes` wrote, checked before anything is made of it."""
        parts = unseal(KIND, VERSION, data)
        try:
            text, profile, router = parts
            values, loaded = load_json(KIND, text), Profile.from_bytes(profile)
            _check(values, loaded)
            return cls(**values, profile=loaded, router=router)
        except (KeyError, TypeError, ValueError) as error:
            raise SavedStateError(f"the saved {KIND} cannot be read: {error}") from None


def _check(values: Any, profile: Profile) -> None:  # noqa: ANN401 - from a file
    """Refuse content that does not fit together."""
    count = len(values["predicates"])
    names = ("evaluated", "dropped", "failed", "seconds", "costs", "call_costs")
    by_predicate = [*(values[name] for name in names), values.get("repeated", [])]
    fits = (
        all(isinstance(name, str) for name in (values["run"], values["signature"], *values["predicates"]))
        and sorted(values["order"]) == list(range(count))
        and profile.filters == count
        and all(len(numbers) in {0, count} for numbers in by_predicate)
        and all(isinstance(number, int | float | None) for numbers in by_predicate for number in numbers)
        and all(isinstance(values[name], int | float) for name in ("rows", "kept", "at", "profile_seconds"))
        and all(isinstance(values[name], list) for name in ("changes", "drifts", "notes"))
        and isinstance(values["routing"], dict | None)
        and isinstance(values.get("judges", {}), dict)
        and isinstance(values.get("tells_cost", False), bool)
    )
    if not fits:
        raise ValueError("its parts do not fit together; delete it to start afresh")


def merge(reports: Sequence[WorkerReport]) -> WorkerReport:
    """The merged report of workers of earlier runs: the newest order and the newest profile tuples."""
    newest_first = sorted(reports, key=lambda report: -report.at)
    newest = newest_first[0]
    routed = max(
        newest_first, key=lambda report: bool(report.router) + bool(report.routing and report.routing.get("classifier"))
    )
    return WorkerReport(
        run="",
        signature=newest.signature,
        predicates=newest.predicates,
        order=newest.order,
        profile=reduce(Profile.merge, (report.profile for report in newest_first)),
        costs=[] if newest.tells_cost else newest.costs,
        call_costs=newest.call_costs,
        routing=routed.routing,
        router=routed.router,
        at=newest.at,
    )
