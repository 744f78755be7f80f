"""Evidence about a query's predicates before they run: from a sample, or from an earlier run.

A frozen value, which `choose` makes a plan of. It is saved, so that the next run starts with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.ordering import Profile
from thalweg.ordering.replay import replay
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.branches import branches_of
from thalweg.sealed import SavedStateError, load_json, seal, unseal
from thalweg.spark.filters.branching import Branching, branchings_of
from thalweg.spark.filters.choose import order_by
from thalweg.spark.filters.forms import Form, Place, SampledRows
from thalweg.spark.filters.plan import stages_of

if TYPE_CHECKING:
    from thalweg.spark.filters.query import FilterQuery

KIND, VERSION = "filter evidence", 1
PREFIX = "plan-"  # of the files of such evidence


@dataclass(frozen=True)
class Evidence:
    """Which predicates drop each of some rows, the cost of a row in each, and what follows for members and classes."""

    profile: Profile  # of all predicates together
    source: str  # where it comes from, in words
    member_orders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # of disjunctions in Spark
    branchings: tuple[Branching, ...] = ()  # of conditions in Spark, by class
    promising: tuple[str, ...] = ()  # columns that may tell classes apart for Python predicates, and seem to pay
    pruning: frozenset[int] = frozenset()  # conditions by which Spark prunes partitions; not saved, as tables change
    at: float = field(default_factory=time.time)

    def to_bytes(self) -> bytes:
        """The file's content."""
        values = {
            "source": self.source,
            "member_orders": [[number, list(order)] for number, order in self.member_orders.items()],
            "branchings": [branching.to_dict() for branching in self.branchings],
            "promising": list(self.promising),
            "at": self.at,
        }
        return seal(KIND, VERSION, json.dumps(values).encode(), self.profile.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, query: FilterQuery) -> Evidence:
        """The evidence that `to_bytes` wrote, checked against the query."""
        parts = unseal(KIND, VERSION, data)
        try:
            text, profile_bytes = parts
            values, profile = load_json(KIND, text), Profile.from_bytes(profile_bytes)
            types = query.routes.types if query.routes is not None else {}
            evidence = cls(
                profile=profile,
                source=f"as learnt {time.strftime('%Y-%m-%d %H:%M', time.localtime(values['at']))}",
                member_orders=_checked_orders(values["member_orders"], query.forms),
                branchings=tuple(Branching.from_dict(each, list(types)) for each in values["branchings"]),
                promising=tuple(name for name in values["promising"] if name in types),
                at=float(values["at"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            raise SavedStateError(f"the saved {KIND} cannot be used: {error}") from None
        if profile.filters != len(query.forms):
            raise SavedStateError(f"the saved {KIND} is of {profile.filters} predicates, not of {len(query.forms)}")
        return evidence


def evidence_of(
    query: FilterQuery, rows: SampledRows, before: Sequence[int] = (), pruning: frozenset[int] = frozenset()
) -> Evidence:
    """The evidence of a sample about all predicates.

    `before` is the order that runs at present, `pruning` are the conditions by which Spark prunes partitions.
    """
    orders = _member_orders(query, rows)
    masks, costs = _try_all(query.forms, rows, orders)
    if query.policy.options.get("costs") is not None:
        costs = np.array(query.policy.options["costs"], np.float64)
    profile = Profile(len(costs), max(masks.size, 1), costs=costs)
    profile.insert(masks, None, time.time())
    branchings, promising = tuple[Branching, ...](), tuple[str, ...]()
    if query.routes is not None and query.routes.off is None:
        values = {name: rows.columns[name].slice(0, masks.size) for name in query.routes.types}
        stages = stages_of(order_by(query, profile, before, pruning), query.forms)
        branchings = branchings_of(stages, query, (masks, costs), values, pruning)
        promising = _promising(query, (masks, costs), values)
    source = f"sampled {masks.size:,} rows, {rows.where_from}"
    return Evidence(profile, source, orders, branchings, promising, pruning)


def _promising(query: FilterQuery, judged: tuple[Integers, Floats], values: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns by which Python predicates would have an order for each class, as far as the sample tells."""
    assert query.routes is not None  # noqa: S101 - by the caller
    numbers = [number for number, form in enumerate(query.forms) if form.place is Place.PYTHON]
    if len(numbers) < 2 or not query.routes.optional:  # noqa: PLR2004 - a single predicate has no order
        return ()
    masks, costs = judged
    own = sum((masks >> number & 1) << place for place, number in enumerate(numbers))
    free = np.zeros(len(numbers), np.int64)  # whether some wait for others matters little here
    found, _ = branches_of(np.asarray(own, np.int64), costs[numbers], free, values)
    return () if found is None else found.attributes


def _member_orders(query: FilterQuery, rows: SampledRows) -> dict[int, tuple[int, ...]]:
    """The cheapest order of the members of each disjunction in Spark, by the dual rule, unless it is as written."""
    found = {}
    for number, (form, own) in enumerate(_with_conditions(query.forms, rows)):
        if form.place is Place.SPARK and form.condition.members and form.condition.facts.deterministic:
            policy = query.policy.kind(len(form.condition.members))
            replay(policy, form.accepted(own), own.seconds)
            found[number] = policy.order
    return {number: order for number, order in found.items() if list(order) != sorted(order)}


def _try_all(
    forms: Sequence[Form], rows: SampledRows, member_orders: Mapping[int, Sequence[int]]
) -> tuple[Integers, Floats]:
    """Drop masks of the sampled rows that all predicates have judged, and seconds a row of each predicate."""
    masks, costs, tried = np.zeros(len(rows), np.int64), np.zeros(len(forms)), len(rows)
    for number, (form, own) in enumerate(_with_conditions(forms, rows)):
        dropped, costs[number] = form.try_on(own, member_orders.get(number))
        tried = min(tried, dropped.size)
        masks[: dropped.size] |= dropped.astype(np.int64) << number
    return masks[:tried], costs


def _with_conditions(forms: Sequence[Form], rows: SampledRows) -> list[tuple[Form, SampledRows]]:
    """Each form with the sampled outcomes of its own conditions."""
    found, start = list[tuple[Form, SampledRows]](), 0
    for form in forms:
        stop = start + len(form.sampled_conditions)
        found.append((form, rows.of_conditions(slice(start, stop))))
        start = stop
    return found


def _checked_orders(saved: Any, forms: Sequence[Form]) -> dict[int, tuple[int, ...]]:  # noqa: ANN401 - from a file
    orders = {}
    for number, order in saved:
        form = forms[number]
        if form.place is Place.SPARK and sorted(order) == list(range(len(form.condition.members))):
            orders[number] = tuple(order)
    return orders
