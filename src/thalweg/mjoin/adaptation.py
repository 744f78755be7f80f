"""Chooses how the rows of each input of a cell probe the others, from measures that are taken while rows pass.

The drop-probing of a star is ordered by an ordering policy from joint drop masks, with a detector that notices when
they are out of date (a-greedy-2004, section 8.1; bcs-change-detection-2012). All other orders, and the orders in which
results are generated, are a planner's, from rates and selectivities (q-aware-join-ordering-2009). Drop-probing itself
is left out where almost no row is dropped. Choices change only for a sure gain, and a change costs nothing: windows and
indexes stay. Results do not depend on any of it.
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
from thalweg.mjoin.measuring import Measures
from thalweg.mjoin.probing import PASSED, PROBED, VISITED, ProbePlan, Prober, plan_probes
from thalweg.mjoin.query import JoinQuery
from thalweg.mjoin.window import Segment
from thalweg.ordering import POLICIES, Policy
from thalweg.registry import find

if TYPE_CHECKING:
    from thalweg.mjoin.step import Statistics

PLANNED = 8  # steps after which orders are planned anew though nothing has changed: that takes milliseconds
AT_ONCE = 50_000  # combinations of rows that a plan must save an input in a step not to wait until the step has ended
GAIN = 1.05  # of a plan, that makes it worth a closer look: as much as `Steady` wants
SAVED = 0.1  # combinations for each new row that a plan must save at least: about a hundredth of the work for a row
GAIN_OF_FEW = 1.5  # the gain where only survivors of drop-probing are concerned
ALL_SURVIVE, MANY_SURVIVE = 0.9, 0.8  # share of rows that makes drop-probing pointless, and below which it is not
LESS = 0.98  # of the present probes, for which a policy's order is taken: a smaller change hardly matters
LOGGED = 100  # switches that are remembered

DropProbes: TypeAlias = Literal["auto"] | bool
Order: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Switch:
    """A change of an input's choice, and why."""

    step: int
    input: str
    kind: str  # of the change: "order", "drop-probing order", "drop-probing on" or "drop-probing off"
    before: Order
    after: Order
    reason: str


@dataclass(frozen=True)
class OrderChoice:
    """How rows of an input probe."""

    order: Order
    generation: Order  # the order in which results are made of the rows that drop-probing has left
    drops: bool  # whether there is drop-probing


class Adaptation:
    """The choices of a cell."""

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
        self.query, self.prober = query, prober
        self.measures = Measures(query, prober.windows)
        self.switches: deque[Switch] = deque(maxlen=LOGGED)
        self._policy, self._drift, self._auto = find(policy, POLICIES, "policy").name, drift, drop_probing == "auto"
        self._steady = Steady(planner(planner_name))
        self._is_fixed = orders is not None or self._policy == "as-written"
        self._is_measured = len(query.names) > 2 and (self._auto or not self._is_fixed)  # noqa: PLR2004 - has two orders
        self._learners = {
            name: self._learner(probing)
            for name, probing in self.measures.probings.items()
            if not self._is_fixed and _is_star(probing)
        }
        detector(drift)  # even if there is nothing to learn, a name has to be right
        self._planned = {name: as_written(query, name) for name in query.names}  # the planner's orders
        self._drops = dict.fromkeys(query.names, drop_probing is not False)
        self._forced: dict[str, Order] = {}
        self._step = 1  # the number of the step that is being made
        self._planned_at = self._step - PLANNED  # the number of the step in which orders were last planned
        self._plans: dict[str, ProbePlan] = {}
        self._choices: dict[str, OrderChoice] = {}
        self.fix(orders or {})

    def fix(self, orders: Mapping[str, Order]) -> None:
        """Hold some inputs' orders from now on."""
        for name, order in orders.items():
            self.query.input(name)
            if sorted((name, *order)) != sorted(self.query.names):
                raise ValueError(f"an order of {name} names each other input once, not {', '.join(order)}")
            plan_probes(self.query, name, order, order)  # raises an error if the order reaches an input too early
        self._forced |= {name: tuple(order) for name, order in orders.items()}
        self._choose()

    def plan(self, name: str) -> ProbePlan:
        """How rows of an input probe."""
        if name not in self._plans:
            choice = self._choices[name]
            self._plans[name] = plan_probes(
                self.query, name, choice.order, choice.generation, drop_probing=choice.drops
            )
        return self._plans[name]

    def sample(self, name: str, segment: Segment, floors: Mapping[str, int], statistics: Statistics) -> None:
        """Learn from some new rows of an input, before they are joined, and choose anew if that cannot wait."""
        if self._is_measured:
            masks = self.measures.sample(name, segment, floors)
            if name in self._learners:
                self._learners[name].update(masks[masks != 0])
            if self.measures.has_changed and self._saved_by_planning(name) > AT_ONCE:
                self._observe()
                self._report(statistics)  # the counts are of the plans so far
                self._choose_anew(segment.rows, statistics)

    def finish(self, rows: Mapping[str, int], statistics: Statistics) -> None:
        """Learn from a step, choose anew if that pays, and report."""
        self._observe()
        self._report(statistics)
        self.measures.finish(rows)
        self._choose_anew(sum(rows.values()), statistics)
        self._step += 1
        self.switches.extend(statistics.switches)
        statistics.orders = {name: choice.order for name, choice in self._choices.items()}
        statistics.drop_probing = {name: self.plan(name).drops for name in self.query.names}

    def knowledge(self) -> dict[str, Any]:
        """The choices and measures, as plain values for JSON."""
        return {
            "orders": {name: list(choice.order) for name, choice in self._choices.items()},
            "planned": {name: list(order) for name, order in self._planned.items()},
            "drops": dict(self._drops),
            "measures": self.measures.knowledge(),
        }

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with the knowledge of a cell of the same query."""
        if self._is_fixed or not knowledge:
            return
        self.measures.learn(knowledge["measures"])
        self._planned = {name: tuple(order) for name, order in knowledge["planned"].items()}
        if self._auto:
            self._drops = dict(knowledge["drops"])
        for name in self._learners:
            probing = self.measures.probings[name]
            order = [probing.filters.index(other) for other in knowledge["orders"][name]]
            self._learners[name] = self._learner(probing, order=order)
        self._choose()

    def _learner(self, probing: DropProbing, **options: Any) -> Policy:  # noqa: ANN401 - the options of Policy
        learner, watcher = probing.policy(self._policy, **options), detector(self._drift)
        return learner if watcher.is_blind else Watched(learner, watcher)

    def _choose(self) -> None:
        self._choices = {name: self._choice(name) for name in self.query.names}
        self._plans.clear()

    def _choice(self, name: str) -> OrderChoice:
        """How rows of an input should probe, by all measures."""
        drops = self._drops[name]
        if name in self._forced:
            return OrderChoice(self._forced[name], self._forced[name], drops)
        planned = self._planned[name]
        if name in self._learners and drops:
            return OrderChoice(self._learnt(name), planned, drops)
        return OrderChoice(planned, planned, drops)

    def _choose_anew(self, rows: int, statistics: Statistics) -> None:
        graph = self._replanned(rows)
        for name in self.query.names:
            survivors = self.measures.survivors(name)
            if self._auto and survivors is not None:
                self._drops[name] = survivors < (ALL_SURVIVE if self._drops[name] else MANY_SURVIVE)
            present, wanted = self._choices[name], self._choice(name)
            if wanted != present:
                self._choices[name] = wanted
                self._plans.pop(name, None)
                statistics.switches.append(Switch(self._step, name, *self._reason(name, present, wanted, graph)))

    def _saved_by_planning(self, name: str) -> float:
        """How many combinations of rows a step another order of an input is estimated to save."""
        graph = self.measures.graph
        if self._is_fixed or graph is None:
            return 0.0
        cost = self._steady.planner.plan(graph).costs[graph.position(name)]
        return _cost(graph, name, self._planned[name]) - cost

    def _learnt(self, name: str) -> Order:
        """The policy's order, or the present order if that is as good on the latest sample."""
        learnt, present = self.measures.probings[name].order(self._learners[name]), self._choices.get(name)
        if present is None or not present.drops:
            return learnt
        before, after = (self.measures.probes_a_row(name, order) for order in (present.order, learnt))
        return learnt if after < LESS * before else present.order

    def _replanned(self, rows: int) -> JoinGraph | None:
        """Plan orders anew if it is time; returns the graph that they are planned from."""
        is_time = self.measures.has_changed or self._step >= self._planned_at + PLANNED
        if self._is_fixed or not self._is_measured or not rows or not is_time:
            return None
        graph = self.measures.graph
        if graph is not None:
            self._planned_at, self.measures.has_changed = self._step, False
            proposed, least = self._steady.planner.plan(graph), SAVED * sum(self.measures.rates.values())
            if any(
                _cost(graph, name, self._planned[name])
                > max(cost * (GAIN_OF_FEW if name in self._learners else GAIN), cost + least)
                for name, cost in zip(self.query.names, proposed.costs, strict=True)
            ):
                self._steady.update(graph, self.measures.arrived, self.measures.hits)
                self._planned = {name: self._steady.orders[name] for name in self.query.names}
        return graph

    def _reason(
        self, name: str, present: OrderChoice, wanted: OrderChoice, graph: JoinGraph | None
    ) -> tuple[str, Order, Order, str]:
        """The kind of a switch, the order before and after it, and its reason."""
        measures = self.measures
        if wanted.drops != present.drops:
            kind = f"drop-probing {'on' if wanted.drops else 'off'}"
            return kind, present.order, wanted.order, f"{measures.survivors(name):.0%} of rows survive all probes"
        if name in self._learners and wanted.order != present.order:
            before, after = (measures.probes_a_row(name, choice.order) for choice in (present, wanted))
            rows = measures.masks[name].size
            reason = f"a row needs fewer probes: {before:.3g} → {after:.3g}, on the last {rows} sampled rows"
            return "drop-probing order", present.order, wanted.order, reason
        costs = (
            "unknown"
            if graph is None
            else " → ".join(f"{_cost(graph, name, choice.generation):.3g}" for choice in (present, wanted))
        )
        reason = f"a step makes fewer combinations of rows: {costs}, as estimated"
        return "order", present.generation, wanted.generation, reason

    def _observe(self) -> None:
        """Show the policies the counts of ordinary processing, which sees abrupt changes before any sample does."""
        for name, learner in self._learners.items():
            seen, filters = np.zeros((3, learner.filters), np.int64), self.measures.probings[name].filters
            for place, probe in enumerate(self.plan(name).probes):
                if probe.is_test and (name, place) in self.prober.counts:
                    seen[:, filters.index(probe.name)] = self.prober.counts[name, place]
            learner.observe(
                seen[PROBED], seen[PROBED] - seen[PASSED], (seen[PROBED] + seen[VISITED]).astype(np.float64)
            )
            if learner.saw_change:
                learner.forget()

    def _report(self, statistics: Statistics) -> None:
        for (name, place), counts in self.prober.counts.items():
            probes = self.plan(name).probes
            statistics.probes += 0 if probes[place].resumes else int(counts[PROBED])
            statistics.visited += int(counts[VISITED])
            if not probes[place].is_test and place < len(probes) - 1:
                statistics.intermediate += int(counts[PASSED])
        self.prober.counts.clear()
        statistics.rates = self.measures.rates
        statistics.selectivities = {" ".join(pair): share for pair, share in self.measures.selectivities.items()}
        shares = {name: self.measures.survivors(name) for name in self.query.names}
        statistics.survivors = {name: share for name, share in shares.items() if share is not None}


def as_written(query: JoinQuery, name: str) -> Order:
    """The other inputs in the order of the query, but each after an input that it shares a key with."""
    order, waiting = [name], [other for other in query.names if other != name]
    near = {frozenset(pair) for pair in query.pairs}
    while waiting:
        order.append(next(other for other in waiting if any(frozenset((other, earlier)) in near for earlier in order)))
        waiting.remove(order[-1])
    return tuple(order[1:])


def _cost(graph: JoinGraph, name: str, order: Order) -> float:
    return probe_cost(graph, [graph.position(each) for each in (name, *order)])


def _is_star(probing: DropProbing) -> bool:
    """Whether all inputs are reached directly or through the same input, and nothing closes a cycle."""
    inner = set(probing.parents.values()) - {probing.stream}
    return len(inner) <= 1 and probing.graph.seen_from(probing.stream).acyclic
