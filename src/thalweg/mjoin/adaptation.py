"""Chooses the probe orders of a cell, from what it measures while rows pass.

A sample of the new rows of each input is looked up in the windows of all others. That gives joint drop masks, from
which an ordering policy orders the drop-probing of stars, with a detector that notices when they are out of date
(a-greedy-2004, section 8.1; bcs-change-detection-2012); how many rows survive, which decides if drop-probing pays; and
how many pairs match, from which a planner makes all other orders, and those in which results are generated
(q-aware-join-ordering-2009). Plans change only for a sure gain, and a change costs nothing: windows and indexes stay.
What results are found does not depend on any of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from thalweg.drift import Watched, detector
from thalweg.joinorder import DropProbing, JoinGraph, Steady, planner
from thalweg.joinorder.cost import probe_cost
from thalweg.mjoin.index import Found, Keys, joined
from thalweg.mjoin.keys import combined
from thalweg.mjoin.probing import PASSED, PROBED, VISITED, Plan, Prober, plan
from thalweg.mjoin.query import JoinQuery, Key, Pair
from thalweg.mjoin.window import Segment
from thalweg.ordering import POLICIES, Policy
from thalweg.ordering.types import Floats, Integers
from thalweg.registry import find

if TYPE_CHECKING:
    from thalweg.mjoin.cell import Statistics

PAIRS, MATCHES, HITS = range(3)  # pairs of rows compared, those that match, rows with a match: the evidence
SAMPLED = 32  # of so many rows one is sampled
LEAST_SAMPLE, MOST_SAMPLE = 64, 256  # rows: of the first ones all are sampled, and of a step no more
KEPT = 0.9  # of what was measured, from a step to the next
MOVED_BY = 3.0  # standard errors by which a selectivity has changed, so that what was measured before is wrong
ALL_SURVIVE, MANY_SURVIVE = 0.9, 0.8  # share of rows that makes drop-probing pointless, and below which it is not
PLANNED_ROWS, PLANNED_STEPS = 10_000, 8  # after so many orders are planned anew: that takes milliseconds
GAIN = 1.05  # of a plan, that makes it worth a closer look: as much as `Steady` wants
RECENT = 512  # drop masks that a reason is given from
LOGGED = 100  # switches that are remembered
FEW = 0.5  # a count of nothing is half a count

DropProbes: TypeAlias = Literal["auto"] | bool
Order: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Switch:
    """A change of plan, and why."""

    step: int
    input: str
    what: str
    before: Order
    after: Order
    reason: str


@dataclass(frozen=True)
class Choice:
    """How rows of an input probe."""

    order: Order
    generation: Order  # the order in which results are made of what drop-probing has found
    drops: bool  # whether there is drop-probing


class Adaptation:
    """The orders of a cell."""

    def __init__(
        self,
        query: JoinQuery,
        prober: Prober,
        planner_name: str,
        policy: str,
        drift: str,
        orders: Mapping[str, Order] | None,
        drop_probing: DropProbes,
    ) -> None:
        self.query, self.prober, self.windows = query, prober, prober.windows
        self.switches: deque[Switch] = deque(maxlen=LOGGED)
        self._policy, self._drift, self._auto = find(policy, POLICIES, "policy").name, drift, drop_probing == "auto"
        self._is_fixed = orders is not None or self._policy == "as-written"
        self._steady = Steady(planner(planner_name))
        self._planned = {name: as_written(query, name) for name in query.names}  # orders from selectivities
        self._drops = dict.fromkeys(query.names, drop_probing is not False)
        self._forced: dict[str, Order] = {}
        self._probings = {name: DropProbing(query.graph(), name) for name in query.names}
        self._learners: dict[str, Policy] = {}
        for name, probing in self._probings.items():
            learner = self._watched(probing)  # in any case, as it says what is wrong with the names
            if not self._is_fixed and _is_star(probing):
                self._learners[name] = learner
        self._random = np.random.default_rng(0)
        self._sampled = dict.fromkeys(query.names, 0)
        self._arrived = dict.fromkeys(query.names, 0.0)
        self._steps = 0.0  # in which they arrived
        self._unplanned = np.array([0, PLANNED_STEPS])  # rows and steps since orders were last planned
        self._pairs = {pair: np.zeros(3) for pair in query.pairs}
        self._fresh = {pair: np.zeros(3) for pair in query.pairs}  # of this step
        self._masks = {name: np.empty(0, np.int64) for name in query.names}  # the latest
        self._plans: dict[str, Plan] = {}
        self._choices = {name: self._choice(name) for name in query.names}
        self.fix(orders or {})

    def fix(self, orders: Mapping[str, Order]) -> None:
        """Hold some inputs' orders from now on."""
        for name, order in orders.items():
            self.query.input(name)
            if sorted((name, *order)) != sorted(self.query.names):
                raise ValueError(f"an order of {name} names each other input once, not {', '.join(order)}")
            plan(self.query, name, order, order)  # it says if there is no way
        self._forced |= {name: tuple(order) for name, order in orders.items()}
        self._choices = {name: self._choice(name) for name in self.query.names}
        self._plans.clear()

    def plan(self, name: str) -> Plan:
        """How rows of an input probe."""
        if name not in self._plans:
            one = self._choices[name]
            self._plans[name] = plan(self.query, name, one.order, one.generation, drop_probing=one.drops)
        return self._plans[name]

    def sample(self, name: str, segment: Segment, floors: Mapping[str, int]) -> None:
        """Look some new rows of an input up in all other windows, before they are joined."""
        if len(self.query.names) == 2 or (self._is_fixed and not self._auto):  # noqa: PLR2004 - there is one order
            return
        size = max(LEAST_SAMPLE - self._sampled[name], int(segment.rows / SAMPLED + self._random.random()))
        size = min(size, MOST_SAMPLE, segment.rows)
        if not size:
            return
        self._sampled[name] += size
        rows = segment.first + np.sort(self._random.choice(segment.rows, size, replace=False))
        masks = self._drop_masks(name, rows, floors)
        self._masks[name] = np.concatenate([self._masks[name], masks])[-RECENT:]
        if not self._is_fixed:
            self._count_matches(name, rows, floors)
        if name in self._learners:
            self._learners[name].update(masks[masks != 0])

    def finish(self, step: int, rows: Mapping[str, int], statistics: Statistics) -> None:
        """Look at what a step has shown, change plans if that pays, and report."""
        self._report(statistics)
        self._steps = KEPT * self._steps + 1.0
        for name in self.query.names:
            self._arrived[name] = KEPT * self._arrived[name] + rows.get(name, 0)
        for pair, fresh in self._fresh.items():
            self._pairs[pair] = fresh + (0.0 if _has_moved(self._pairs[pair], fresh) else KEPT) * self._pairs[pair]
            self._fresh[pair] = np.zeros(3)
        self._unplanned += np.array([sum(rows.values()), 1])
        graph = self._graph() if (self._unplanned >= (PLANNED_ROWS, PLANNED_STEPS)).any() else None
        if graph is not None:
            self._unplanned[:] = 0
        if graph is not None and self._may_gain(graph):
            hits = {pair: float(counts[HITS]) for pair, counts in self._pairs.items()}
            self._steady.update(graph, self._arrived, hits)
            self._planned = {name: self._steady.orders[name] for name in self.query.names}
        for name in self.query.names:
            if self._auto and self._masks[name].size >= LEAST_SAMPLE:
                self._drops[name] = self._survivors(name) < (ALL_SURVIVE if self._drops[name] else MANY_SURVIVE)
            present, wanted = self._choices[name], self._choice(name)
            if wanted != present:
                self._choices[name] = wanted
                self._plans.pop(name, None)
                one = Switch(step, name, *self._reason(name, present, wanted, graph))
                statistics.switches.append(one)
                self.switches.append(one)
        statistics.orders = {name: one.order for name, one in self._choices.items()}
        statistics.drop_probing = {name: self.plan(name).drops for name in self.query.names}

    def knowledge(self) -> dict[str, Any]:
        """What has been learnt, as JSON has it."""
        return {
            "orders": {name: list(one.order) for name, one in self._choices.items()},
            "planned": {name: list(order) for name, order in self._planned.items()},
            "drops": dict(self._drops),
            "arrived": dict(self._arrived),
            "steps": self._steps,
            "pairs": [[*pair, *counts.tolist()] for pair, counts in self._pairs.items()],
        }

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with what was learnt before; what does not suit the query is left out."""
        if set(knowledge.get("orders", ())) != set(self.query.names):
            return
        self._planned = {name: tuple(order) for name, order in knowledge["planned"].items()}
        self._arrived, self._steps = dict(knowledge["arrived"]), float(knowledge["steps"])
        if self._auto:
            self._drops = dict(knowledge["drops"])
        for left, right, *counts in knowledge["pairs"]:
            self._pairs[left, right] = np.array(counts)
        for name in self._learners:
            probing = self._probings[name]
            order = [probing.filters.index(one) for one in knowledge["orders"][name]]
            self._learners[name] = self._watched(probing, order=order)
        self._choices = {name: self._choice(name) for name in self.query.names}
        self._plans.clear()

    def _watched(self, probing: DropProbing, **options: Any) -> Policy:  # noqa: ANN401 - those of Policy
        watcher = detector(self._drift)
        learner = probing.policy(self._policy, **options)
        return learner if watcher.is_blind else Watched(learner, watcher)

    def _choice(self, name: str) -> Choice:
        """How rows of an input should probe by all that is known."""
        if name in self._forced:
            return Choice(self._forced[name], self._forced[name], self._drops[name])
        order = planned = self._planned[name]
        if name in self._learners and self._drops[name]:
            order = self._probings[name].order(self._learners[name])
        return Choice(order, planned, self._drops[name])

    def _wanted(self, parent: str, child: str, rows: Integers, latest: Integers, before: Integers) -> Keys:
        window = self.windows[parent]
        return Keys(combined([window.ring(one, rows) for one in self._key(parent, child)]), latest, before)

    def _key(self, one: str, other: str) -> Key:
        return self.query.pairs.get((one, other)) or self.query.pairs[other, one]

    def _drop_masks(self, name: str, rows: Integers, floors: Mapping[str, int]) -> Integers:
        """For each row a bit for every other input, set if the path to it has no match."""
        probing, own = self._probings[name], self.windows[name]
        masks = np.zeros(rows.size, np.int64)
        inner = set(probing.parents.values())
        # For each input, which rows of it are reached: from which of the sample, by number, time and deadline.
        reached = {name: Found(np.arange(rows.size), rows, own.ring("times", rows), own.ring("deadlines", rows))}
        for child, parent in probing.parents.items():
            start, window = reached[parent], self.windows[child]
            wanted = self._wanted(parent, child, start.rows, start.latest, start.before)
            index = window.index(self._key(parent, child))
            if child in inner:
                found = joined(index.matches(wanted, index.newest(wanted.keys), window.start, floors[child]))
                reached[child] = found._replace(origin=start.origin[found.origin])
                alive = reached[child].origin
            else:
                alive = start.origin[index.first(wanted, window.start, floors[child]) >= window.start]
            dropped = np.ones(rows.size, np.bool_)
            dropped[alive] = False
            masks |= dropped.astype(np.int64) << probing.filters.index(child)
        return masks

    def _count_matches(self, name: str, rows: Integers, floors: Mapping[str, int]) -> None:
        """Count which pairs match between rows and the windows that they share a key with."""
        own = self.windows[name]
        latest, before = own.ring("times", rows), own.ring("deadlines", rows)
        for pair in self._pairs:
            if name in pair:
                other = pair[pair[0] == name]
                window, wanted = self.windows[other], self._wanted(name, other, rows, latest, before)
                index = window.index(self._key(name, other))
                found = joined(index.matches(wanted, index.newest(wanted.keys), window.start, floors[other]))
                self._fresh[pair] += rows.size * window.alive, found.rows.size, np.unique(found.origin).size

    def _graph(self) -> JoinGraph | None:
        """The join graph as measured, if orders may be planned from it."""
        if self._is_fixed or len(self.query.names) == 2 or not all(counts[PAIRS] for counts in self._pairs.values()):  # noqa: PLR2004 - there is one order
            return None
        return self.query.graph(
            {name: max(arrived, FEW) / self._steps for name, arrived in self._arrived.items()},
            {name: max(window.alive, 1) for name, window in self.windows.items()},
            self._selectivities(),
        )

    def _may_gain(self, graph: JoinGraph) -> bool:
        """Whether the planner has orders that are better by so much that it is worth asking how sure that is."""
        proposed = self._steady.planner.plan(graph)
        return any(
            probe_cost(graph, [graph.position(one) for one in (name, *self._planned[name])]) > GAIN * cost
            for name, cost in zip(self.query.names, proposed.costs, strict=True)
        )

    def _selectivities(self) -> dict[Pair, float]:
        return {
            pair: min(max(counts[MATCHES], FEW) / counts[PAIRS], 1.0)
            for pair, counts in self._pairs.items()
            if counts[PAIRS]
        }

    def _survivors(self, name: str) -> float:
        """The share of rows that no probe drops."""
        masks = self._masks[name]
        return float(np.count_nonzero(masks == 0)) / max(masks.size, 1)

    def _reason(
        self, name: str, present: Choice, wanted: Choice, graph: JoinGraph | None
    ) -> tuple[str, Order, Order, str]:
        """What has changed, from what to what, and why."""
        if wanted.drops != present.drops:
            what = f"drop-probing {'on' if wanted.drops else 'off'}"
            return what, present.order, wanted.order, f"{self._survivors(name):.0%} of rows survive all probes"
        if name in self._learners and wanted.order != present.order:
            first, second = (self._probes_a_row(name, one.order) for one in (present, wanted))
            reason = f"probes a row: {first:.3g} → {second:.3g} on the last {self._masks[name].size} sampled rows"
            return "drop-probing order", present.order, wanted.order, reason
        reason = "an order was given"
        if graph is not None:
            first, second = (
                probe_cost(graph, [graph.position(each) for each in (name, *one.generation)])
                for one in (present, wanted)
            )
            reason = f"combinations of rows a step, as estimated: {first:.3g} → {second:.3g}"
        return "order", present.generation, wanted.generation, reason

    def _probes_a_row(self, name: str, order: Order) -> float:
        """How many inputs a row probes until one drops it, in the latest sample."""
        filters, masks = self._probings[name].filters, self._masks[name]
        alive, probes = np.ones(masks.size, np.bool_), 0
        for one in order:
            probes += int(np.count_nonzero(alive))
            alive &= (masks >> filters.index(one)) & 1 == 0
        return probes / max(masks.size, 1)

    def _report(self, statistics: Statistics) -> None:
        """Report what the probes of a step did, and show it to the policies."""
        for name, learner in self._learners.items():
            seen = np.zeros((3, learner.filters))
            for place, probe in enumerate(self.plan(name).probes):
                if probe.is_test and (name, place) in self.prober.counts:
                    seen[:, self._probings[name].filters.index(probe.name)] = self.prober.counts[name, place]
            evaluated = seen[PROBED].astype(np.int64)
            learner.observe(evaluated, evaluated - seen[PASSED].astype(np.int64), seen[PROBED] + seen[VISITED])
            if learner.moved:
                learner.forget()
        for (name, place), counts in self.prober.counts.items():
            probes = self.plan(name).probes
            statistics.probes += 0 if probes[place].resumes else int(counts[PROBED])
            statistics.visited += int(counts[VISITED])
            if not probes[place].is_test and place < len(probes) - 1:
                statistics.intermediate += int(counts[PASSED])
        self.prober.counts.clear()
        statistics.rates = {name: arrived / max(self._steps, 1.0) for name, arrived in self._arrived.items()}
        statistics.selectivities = {" ".join(pair): share for pair, share in self._selectivities().items()}
        statistics.survivors = {name: self._survivors(name) for name, masks in self._masks.items() if masks.size}


def as_written(query: JoinQuery, name: str) -> Order:
    """The other inputs in the order of the query, but none before one that it shares a key with."""
    order, waiting = [name], [one for one in query.names if one != name]
    while waiting:
        one = next(
            each
            for each in waiting
            if any((a, b) in query.pairs or (b, a) in query.pairs for a in order for b in [each])
        )
        order.append(one)
        waiting.remove(one)
    return tuple(order[1:])


def _has_moved(before: Floats, now: Floats) -> bool:
    """Whether the share of matching pairs is surely another than before."""
    if min(before[PAIRS], now[PAIRS]) <= 0.0:
        return False
    (first, evidence), (second, more) = ((max(one[MATCHES], FEW) / one[PAIRS], max(one[HITS], FEW)) for one in (before, now))
    return bool(abs(np.log(second / first)) > MOVED_BY * np.sqrt(1.0 / evidence + 1.0 / more))


def _is_star(probing: DropProbing) -> bool:
    """Whether all inputs are reached directly or through one and the same."""
    return len(set(probing.parents.values()) - {probing.stream}) <= 1
