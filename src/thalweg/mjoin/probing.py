"""Joins rows of one input with the windows of the others, in a given order of probes.

*Drop-probing* first: an input that no later probe needs is asked only whether there is a match, and its matches are
listed in the end, for rows that found a match everywhere (a-greedy-2004, section 8.1; where the search stopped is
remembered, so that nothing is done twice). An input that others are reached through is expanded at once. An input is
always probed by all equalities with the inputs that are expanded by then, so the equalities that close cycles are
checked as early as can be. Without drop-probing every input is expanded in its turn. Row numbers are carried, never the
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from thalweg.mjoin.index import Index, Matches, ProbeKeys
from thalweg.mjoin.keys import combined
from thalweg.mjoin.query import JoinQuery, Key, Residual
from thalweg.mjoin.window import Window
from thalweg.ordering.types import Booleans, Integers

PROBED, PASSED, VISITED = range(3)


class Probe(NamedTuple):
    """A probe of a plan."""

    name: str  # the input whose window is probed
    key: Key  # by these classes of equal columns
    is_test: bool  # whether it only asks if there is a match
    resumes: bool = False  # whether it goes on where such a test has stopped
    fetched: tuple[int, ...] = ()  # classes whose codes later probes take from its rows
    residuals: tuple[Residual, ...] = ()  # that can be tested from here on


@dataclass
class Combinations:
    """Combinations of rows that may become results."""

    rows: dict[str, Integers]  # numbers of rows by input
    latest: Integers  # the greatest time in each
    before: Integers  # the earliest deadline in each
    codes: dict[int, Integers]  # of classes of equal columns
    stopped: dict[str, Integers] = field(default_factory=dict)  # where tests found a match

    def take(self, places: Integers) -> Combinations:
        """The combinations at some places."""
        return self.extend(places, self.latest.take(places), self.before.take(places))

    def extend(self, places: Integers, latest: Integers, before: Integers) -> Combinations:
        """The combinations at some places, with other times and deadlines."""
        return Combinations(
            {name: rows.take(places) for name, rows in self.rows.items()},
            latest,
            before,
            {number: codes.take(places) for number, codes in self.codes.items()},
            {name: rows.take(places) for name, rows in self.stopped.items()},
        )


@dataclass(frozen=True)
class ProbePlan:
    """The probes of an input's rows."""

    stream: str
    probes: tuple[Probe, ...]
    needed: tuple[int, ...]  # classes whose codes are taken from the input's own rows

    @property
    def drops(self) -> bool:
        """Whether there is any drop-probing."""
        return any(probe.is_test for probe in self.probes)


def plan_probes(
    query: JoinQuery, stream: str, order: Sequence[str], generation: Sequence[str], *, drop_probing: bool = True
) -> ProbePlan:
    """The probes of an input's rows: drop-probing in one order, and the generation of results in another."""
    inner = _inner(query, stream, order) if drop_probing else set(order)
    tested = [name for name in order if name not in inner]
    if len(tested) == 1:  # a test of the last input alone saves nothing
        inner, tested = set(order), []
    classes = {name: set(query.key_columns[name]) for name in query.names}
    known, expanded, by_test = set(classes[stream]), [stream], dict[str, Key]()
    probes: list[Probe] = []
    for name in (*order, *(name for name in generation if name in tested)):
        key = tuple(sorted(known & classes[name]))
        if name in tested and name not in by_test:
            by_test[name] = key
            probes.append(Probe(name, key, is_test=True))
            continue
        expanded.append(name)
        residuals = tuple(each for each in query.residuals if name in each.inputs and set(each.inputs) <= set(expanded))
        resumes = by_test.get(name) == key
        probes.append(Probe(name, key, is_test=False, resumes=resumes, residuals=residuals))
        known |= classes[name]
    # Codes are taken from the rows of the first input that has them, if a later probe needs them.
    taken = set(classes[stream])
    for place, probe in enumerate(probes):
        if not probe.is_test:
            later = {number for other in probes[place + 1 :] for number in other.key}
            probes[place] = probe._replace(fetched=tuple(sorted(later & classes[probe.name] - taken)))
            taken |= classes[probe.name]
    needed = {number for probe in probes for number in probe.key}
    return ProbePlan(stream, tuple(probes), tuple(sorted(needed & classes[stream])))


def _inner(query: JoinQuery, stream: str, order: Sequence[str]) -> set[str]:
    """The inputs of an order that later inputs are reached through."""
    classes = {name: set(query.key_columns[name]) for name in query.names}
    inner: set[str] = set()
    for place, name in enumerate(order):
        earlier = order[:place]
        expanded = [stream, *(other for other in earlier if other in inner)]
        if not any(classes[name] & classes[other] for other in expanded):
            through = [other for other in earlier if classes[name] & classes[other]]
            if not through:
                raise ValueError(
                    f"the order {', '.join(order)} of {stream} reaches {name} before any input that it shares a key "
                    f"with; put such an input before it"
                )
            inner.add(through[-1])
    return inner


class Prober:
    """Runs plans over windows, and counts their probes and matches."""

    def __init__(self, query: JoinQuery, windows: Mapping[str, Window]) -> None:
        self.query, self.windows = query, windows
        self.counts: dict[tuple[str, int], Integers] = {}  # by stream and place of the probe, since it was cleared

    def run(self, plan: ProbePlan, rows: Integers, floors: Mapping[str, int]) -> Iterator[Combinations]:
        """The results that rows of the plan's input are in, in blocks."""
        own = self.windows[plan.stream]
        combinations = Combinations(
            {plan.stream: rows},
            own.ring("times", rows),
            own.ring("deadlines", rows),
            {number: own.ring(number, rows) for number in plan.needed},
        )
        yield from self._run(plan, 0, combinations, floors)

    def _run(
        self, plan: ProbePlan, place: int, combinations: Combinations, floors: Mapping[str, int]
    ) -> Iterator[Combinations]:
        """The results that combinations are in, by the probes from a place of the plan on."""
        if not combinations.latest.size:
            return
        if place == len(plan.probes):
            yield combinations
            return
        probe = plan.probes[place]
        index = self.windows[probe.name].index(probe.key)
        codes = combined([combinations.codes[number] for number in probe.key])
        wanted = ProbeKeys(codes, combinations.latest, combinations.before)
        counts = self.counts.setdefault((plan.stream, place), np.zeros(3, np.int64))
        counts[PROBED] += combinations.latest.size
        found = self._test if probe.is_test else self._expand
        for larger in found(probe, index, wanted, combinations, floors[probe.name], counts):
            yield from self._run(plan, place + 1, larger, floors)

    def _test(
        self,
        probe: Probe,
        index: Index,
        wanted: ProbeKeys,
        combinations: Combinations,
        floor: int,
        counts: Integers,
    ) -> Iterator[Combinations]:
        """The combinations that have a match."""
        before, start = index.visited, self.windows[probe.name].start
        first = index.first(wanted, start, floor)
        counts[VISITED] += index.visited - before
        has_match = first >= start
        alive = np.flatnonzero(has_match)
        counts[PASSED] += alive.size
        combinations.stopped[probe.name] = first
        yield combinations if has_match.all() else combinations.take(alive)

    def _expand(
        self,
        probe: Probe,
        index: Index,
        wanted: ProbeKeys,
        combinations: Combinations,
        floor: int,
        counts: Integers,
    ) -> Iterator[Combinations]:
        """The combinations with each of their matches, in blocks."""
        before, window = index.visited, self.windows[probe.name]
        at = combinations.stopped.pop(probe.name, None)
        if at is None or not probe.resumes:
            at = index.newest(wanted.keys)
        for block in index.matches(wanted, at, window.start, floor):
            larger = self._with_matches(probe, combinations, block)
            counts[PASSED] += larger.latest.size
            counts[VISITED] += index.visited - before
            before = index.visited
            yield larger
        counts[VISITED] += index.visited - before

    def _with_matches(self, probe: Probe, combinations: Combinations, block: Matches) -> Combinations:
        """Combinations with a block of matches, for which all conditions hold that can be tested by now."""
        window = self.windows[probe.name]
        larger = combinations.extend(block.origin, block.latest, block.before)
        larger.rows[probe.name] = block.rows
        if len(probe.key) > 1:  # the key is a hash of several
            same = np.logical_and.reduce(
                [window.ring(number, block.rows) == larger.codes[number] for number in probe.key]
            )
            larger = larger if same.all() else larger.take(np.flatnonzero(same))
        for residual in probe.residuals:
            larger = larger.take(np.flatnonzero(self._holds(residual, larger)))
        for number in probe.fetched:
            larger.codes[number] = window.ring(number, larger.rows[probe.name])
        return larger

    def _holds(self, residual: Residual, combinations: Combinations) -> Booleans:
        columns = (self.windows[name].take(combinations.rows[name], column) for name, column in residual.columns)
        return pc.fill_null(residual.test(*columns), False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # noqa: FBT003 - Arrow's signature
