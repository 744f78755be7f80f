"""Chooses how a query's predicates run: `choose(query, evidence) -> FilterPlan`. Runs nothing, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg.ordering import AsWritten, Profile
from thalweg.ordering.cost import order_cost
from thalweg.ordering.places import placed_order
from thalweg.ordering.precedence import is_legal
from thalweg.ordering.replay import replay
from thalweg.spark.filters.forms import Place
from thalweg.spark.filters.plan import FilterPlan, stages_of

if TYPE_CHECKING:
    from thalweg.spark.filters.branching import Branching
    from thalweg.spark.filters.evidence import Evidence
    from thalweg.spark.filters.query import FilterQuery

CROSSING_SECONDS = 200e-9  # that a row takes to Python and back, roughly
ATTEMPT_SECONDS = 100e-9  # that attempting a condition takes more than evaluating it, roughly


def choose(query: FilterQuery, evidence: Evidence | None, before: Sequence[int] = ()) -> FilterPlan:
    """The plan that the evidence calls for; without evidence, cheap conditions come first and Python last.

    `before` is the order that runs at present, which the policy goes on from.
    """
    if evidence is None:
        order = _order_without_evidence(query)
        why = "nothing sampled: cheap conditions first, Python last, else as written"
        return FilterPlan(order, stages_of(order, query.forms), why, attributes=_attributes(query, ()))
    order = order_by(query, evidence.profile, before, evidence.pruning)
    return FilterPlan(
        order=order,
        stages=stages_of(order, query.forms),
        why=evidence.source,
        member_orders=evidence.member_orders,
        branchings=_branchings(query, evidence),
        attributes=_attributes(query, evidence.promising),
        evidence=evidence,
    )


def order_by(
    query: FilterQuery, profile: Profile, before: Sequence[int] = (), pruning: Collection[int] = ()
) -> tuple[int, ...]:
    """The order of all predicates that a profile of them all calls for.

    `pruning` are the conditions by which Spark prunes partitions.
    """
    masks, costs = profile.masks, profile.mean_times
    policy = query.policy.make(tuple(before))
    replay(policy, masks, costs)
    in_python = [form.place is Place.PYTHON for form in query.forms]
    order = placed_order(masks, policy.order, costs, in_python, CROSSING_SECONDS, query.required)
    if query.on_error == "quarantine":  # which rows to put there is clear only when all conditions have been tried
        return _for_source(query, tuple(sorted(order, key=lambda number: in_python[number])), pruning)
    return _for_source(query, _raising_last(query, order, profile), pruning)


def runs_strictly(query: FilterQuery, order: Sequence[int]) -> bool:
    """Whether only the last predicate may raise: it runs as written, as no later predicate can reject its rows."""
    raising = [number for number, form in enumerate(query.forms) if form.may_raise]
    if query.on_error != "raise" or raising != [order[-1]]:
        return False
    # A filter of Spark evaluates tests for NULL last, but for those of columns that its other conditions read.
    return not any(form.tests_null for number, form in enumerate(query.forms) if number != order[-1])


def _for_source(query: FilterQuery, order: tuple[int, ...], pruning: Collection[int]) -> tuple[int, ...]:
    """The same order, in which all that the data's source can use is within its reach.

    Conditions that reach the source come ahead of Python and joins, behind which they would not. To skip partitions or
    files saves more than a row in such a condition costs, and no sample tells how much. Joins come ahead of a Python
    stage whose errors have to wait: between the two Spark holds up filters that are added later, and takes longer.
    """
    places = [form.place for form in query.forms]
    if query.on_error == "raise":
        order = _moved_ahead(query, order, {Place.PYTHON}, lambda number: places[number] is Place.JOIN)
    return _moved_ahead(
        query,
        order,
        {Place.PYTHON, Place.JOIN},
        lambda number: query.forms[number].reaches_source or number in pruning,
    )


def _moved_ahead(
    query: FilterQuery, order: tuple[int, ...], others: Collection[Place], wanted: Callable[[int], bool]
) -> tuple[int, ...]:
    """The same order with the wanted predicates ahead of all in other places, unless they wait for some of these."""
    required = query.required.tolist()
    starts = [at for at, number in enumerate(order) if query.forms[number].place in others]
    ahead = list(order[: min(starts, default=len(order))])
    for number in order[len(ahead) :]:
        if wanted(number) and not required[number] & ~sum(1 << earlier for earlier in ahead):
            ahead.append(number)
    return (*ahead, *(number for number in order if number not in ahead))


def _branchings(query: FilterQuery, evidence: Evidence) -> tuple[Branching, ...]:
    """The branches of conditions, without branches in which a condition would no longer reach the data's source."""
    if query.routes is None or query.routes.off is not None:
        return ()
    return tuple(
        branching
        for branching in evidence.branchings
        if not any(query.forms[number].reaches_source or number in evidence.pruning for number in branching.conditions)
    )


def _raising_last(query: FilterQuery, order: tuple[int, ...], profile: Profile) -> tuple[int, ...]:
    """The same order with the only condition that may raise last, if that is cheaper: there it runs as written."""
    raising = [number for number, form in enumerate(query.forms) if form.may_raise]
    if len(raising) != 1 or query.on_error != "raise" or order[-1] == raising[0]:
        return order
    last = (*(number for number in order if number != raising[0]), raising[0])
    if any(form.place is not Place.SPARK for form in query.forms) or not is_legal(query.required, last):
        return order
    strict_costs = profile.mean_times.copy()
    strict_costs[raising[0]] = max(strict_costs[raising[0]] - ATTEMPT_SECONDS, np.finfo(float).tiny)
    cheaper = order_cost(profile.masks, last, strict_costs) < order_cost(profile.masks, order, profile.mean_times)
    return last if cheaper else order


def _order_without_evidence(query: FilterQuery) -> tuple[int, ...]:
    adapts = query.policy.kind is not AsWritten
    raising = [number for number, form in enumerate(query.forms) if form.may_raise]

    def rank(number: int) -> int:
        form = query.forms[number]
        if form.place is Place.PYTHON:
            return 5 if form.waits and adapts else 4
        if form.place is Place.JOIN:
            return 3
        if form.is_cheap or not adapts:
            return 0
        return 2 if raising == [number] else 1  # behind all others it runs as written

    required, placed, order = query.required.tolist(), 0, list[int]()
    while len(order) < len(query.forms):
        free = [number for number in range(len(query.forms)) if number not in order and not required[number] & ~placed]
        order.append(min(free, key=lambda number: (rank(number), number)))
        placed |= 1 << order[-1]
    return tuple(order)


def _attributes(query: FilterQuery, promising: Sequence[str]) -> tuple[str, ...]:
    """The columns that go to Python to tell classes apart."""
    if query.routes is None or query.routes.off is not None:
        return ()
    return (*query.routes.in_python, *(name for name in query.routes.optional if name in promising))
