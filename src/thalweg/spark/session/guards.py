"""For which rows a costly condition is evaluated: those for which some query still has to know whether it is true.

A conjunction tests its cheap conditions first. Costly conditions follow: first those that some query tests alone, which
are evaluated for every row anyway, then the others in the order that was measured (`condition_orders.py`), or else
in the order of the queries. Python predicates come last, but for those that the measured order puts before conditions:
these are asked in a step of their own. A condition is evaluated for the rows for which all earlier conditions of some
conjunction with it are true. It counts as false for other rows, where every conjunction with it is false in any case.
`tw.where` says which conditions are cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from thalweg.spark.session.program import Program, Shared, SharedCall, SharedCondition

MOST_STEPS = 3  # that follow each other: each is one more projection of Spark
MOST_BEFORE_PYTHON = MOST_STEPS - 1  # so that a step is left for the conditions after Python predicates

Conditions = frozenset[Shared]


@dataclass(frozen=True)
class Guard:
    """The rows that a condition is evaluated for: those for which all conditions of one of `alternatives` are true.

    Conditions without a guard are evaluated for every row, in step 0. Early calls of Python predicates have a guard in
    any case: all those of a stream are made in one step.
    """

    step: int
    alternatives: tuple[Conditions, ...]


def guards_of(program: Program, stream: str) -> dict[Shared, Guard]:
    """The guards of early calls, and of the costly conditions on a stream that need not be evaluated for every row."""
    members = program.members_of(stream)
    conjunctions = [
        frozenset(members[column] for column in conjunction.columns if column in members)
        for conjunction in program.conjunctions_of(stream)
    ]
    alone = Conditions().union(*(each for each in conjunctions if len(each) == 1))
    measured = {column: place for place, column in enumerate(program.orders.get(stream, ()))}
    order = sorted(
        members.values(),
        key=lambda each: (not each.is_cheap, each not in alone, measured.get(each.column, len(measured))),
    )
    places = {condition: place for place, condition in enumerate(order)}
    first_call = min((places[each] for each in order if isinstance(each, SharedCall)), default=len(order))
    python_step: int | None = None
    found: dict[Shared, Guard] = {}

    def comes_before(other: Shared, condition: Shared) -> bool:
        if isinstance(condition, SharedCondition):
            return places[other] < places[condition] and _step(other, found) < MOST_STEPS
        if isinstance(other, SharedCondition):  # conditions between two calls do not divide them into two steps
            return places[other] < first_call and _step(other, found) < MOST_BEFORE_PYTHON
        return places[other] < places[condition]

    for condition in order:
        if condition.is_cheap:
            continue
        earlier = [
            frozenset(other for other in each if comes_before(other, condition))
            for each in conjunctions
            if condition in each
        ]
        if isinstance(condition, SharedCall):
            if python_step is None:
                before = [_step(each, found) for each in order[:first_call]]
                python_step = 1 + max((step for step in before if step < MOST_BEFORE_PYTHON), default=0)
            found[condition] = Guard(python_step, _fewest(earlier))
        elif all(earlier):
            found[condition] = Guard(
                1 + max(_step(other, found) for each in earlier for other in each), _fewest(earlier)
            )
    if not any(_waits_for_call(condition, guard) for condition, guard in found.items()):
        found = {condition: guard for condition, guard in found.items() if isinstance(condition, SharedCondition)}
    return {condition: _with_weaker(condition, program, found) for condition in found}


def _waits_for_call(condition: Shared, guard: Guard) -> bool:
    """Whether a condition that Spark evaluates has an early call in its guard."""
    others = Conditions().union(*guard.alternatives)
    return isinstance(condition, SharedCondition) and any(isinstance(other, SharedCall) for other in others)


def _with_weaker(condition: Shared, program: Program, found: Mapping[Shared, Guard]) -> Guard:
    """The guard of a condition, which also keeps the rows away for which it is known to be false."""
    guard = found[condition]
    weaker = answered_weaker(condition, program, found) if isinstance(condition, SharedCondition) else None
    if weaker is None:
        return guard
    return replace(guard, alternatives=_fewest(each | {weaker} for each in guard.alternatives))


def answered_weaker(
    condition: SharedCondition, program: Program, guards: Mapping[Shared, Guard]
) -> SharedCondition | None:
    """The strongest condition that is true wherever this one is, among those that are evaluated for every row."""
    weaker = program.weaker(condition)
    while weaker is not None and weaker in guards:
        weaker = program.weaker(weaker)
    return weaker


def _step(condition: Shared, found: Mapping[Shared, Guard]) -> int:
    return found[condition].step if condition in found else 0


def _fewest(alternatives: Iterable[Conditions]) -> tuple[Conditions, ...]:
    """The alternatives without those that hold only where another one holds as well."""
    distinct = list(dict.fromkeys(alternatives))
    return tuple(each for each in distinct if not any(other < each for other in distinct))
