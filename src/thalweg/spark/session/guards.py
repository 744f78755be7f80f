"""For which rows a costly condition is evaluated: those for which some query still has to know whether it is true.

A conjunction tests its cheap conditions first. Costly conditions follow: first those that some query tests alone, which
are evaluated for every row anyway, then the others in the order that was measured (`condition_orders.py`), or else
in the order of the queries. A condition is evaluated for the rows
for which all earlier conditions of some conjunction with it are true. It counts as false for other rows, where every
conjunction with it is false in any case. `tw.where` says which conditions are cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from thalweg.spark.session.program import Program, SharedCondition

MOST_STEPS = 3  # that follow each other: each is one more projection of Spark

Conditions = frozenset[SharedCondition]


@dataclass(frozen=True)
class Guard:
    """The rows that a condition is evaluated for: those for which all conditions of one of `alternatives` are true.

    Conditions without a guard are evaluated for every row, in step 0.
    """

    step: int
    alternatives: tuple[Conditions, ...]


def guards_of(program: Program, stream: str) -> dict[SharedCondition, Guard]:
    """The guards of the costly conditions on the rows of a stream that need not be evaluated for every row."""
    conditions = {condition.column: condition for condition in program.conditions if condition.stream == stream}
    conjunctions = [
        frozenset(conditions[column] for column in conjunction.columns if column in conditions)
        for conjunction in program.conjunctions_of(stream)
    ]
    alone = frozenset[SharedCondition]().union(*(each for each in conjunctions if len(each) == 1))
    measured = {column: place for place, column in enumerate(program.orders.get(stream, ()))}
    order = sorted(
        conditions.values(),
        key=lambda each: (not each.is_cheap, each not in alone, measured.get(each.column, len(measured))),
    )
    places = {condition: place for place, condition in enumerate(order)}
    found: dict[SharedCondition, Guard] = {}
    for condition in order:
        earlier = [
            frozenset(other for other in each if places[other] < places[condition] and _step(other, found) < MOST_STEPS)
            for each in conjunctions
            if condition in each
        ]
        if not condition.is_cheap and all(earlier):
            step = 1 + max(_step(other, found) for each in earlier for other in each)
            found[condition] = Guard(step, _fewest(earlier))
    return {condition: _with_weaker(condition, program, found) for condition in found}


def _with_weaker(condition: SharedCondition, program: Program, found: Mapping[SharedCondition, Guard]) -> Guard:
    """The guard of a condition, which also keeps the rows away for which it is known to be false."""
    guard, weaker = found[condition], answered_weaker(condition, program, found)
    if weaker is None:
        return guard
    return replace(guard, alternatives=_fewest(each | {weaker} for each in guard.alternatives))


def answered_weaker(
    condition: SharedCondition, program: Program, guards: Mapping[SharedCondition, Guard]
) -> SharedCondition | None:
    """The strongest condition that is true wherever this one is, among those that are evaluated for every row."""
    weaker = program.weaker(condition)
    while weaker is not None and weaker in guards:
        weaker = program.weaker(weaker)
    return weaker


def _step(condition: SharedCondition, found: Mapping[SharedCondition, Guard]) -> int:
    return found[condition].step if condition in found else 0


def _fewest(alternatives: Iterable[Conditions]) -> tuple[Conditions, ...]:
    """The alternatives without those that hold only where another one holds as well."""
    distinct = list(dict.fromkeys(alternatives))
    return tuple(each for each in distinct if not any(other < each for other in distinct))
