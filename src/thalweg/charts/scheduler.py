"""What every scheduler is: before each round it chooses a plan, and after it it is told the round's statistics.

Counts as the paper does (om-plan-charts-2005, sections 4.5 and 5.1): a decision is one choice; a move is a round whose
expected statistics lie in another region than those of the round before, in the charts as they are now; a switch is a
round with another plan than the round before; a hit is a round whose plan is, by the cost model, the best in hindsight.
The share of hits is the fidelity. In a session, plans that Spark runs identically are one plan.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from thalweg.charts.candidates import PlanChoice
from thalweg.charts.cost import Weights
from thalweg.charts.estimate import DECAY, ROUNDS
from thalweg.charts.held_estimate import THRESHOLD
from thalweg.charts.plan import QueryPlan
from thalweg.charts.query_charts import PlanCosts, Regions
from thalweg.charts.round_estimates import RoundEstimates
from thalweg.charts.statistics import RoundStatistics
from thalweg.sealed import SavedStateError, odd

LOGGED_ROUNDS = 1_000  # that a scheduler's log remembers


@dataclass(frozen=True)
class ScheduleCounts:
    """How often a scheduler did what."""

    decisions: int = 0
    rounds: int = 0  # that were observed
    moves: int = 0
    switches: int = 0
    hits: int = 0

    @property
    def fidelity(self) -> float | None:
        """The share of observed rounds that were hits; nothing before the first."""
        return self.hits / self.rounds if self.rounds else None


@dataclass(frozen=True)
class RoundRecord:
    """One round in a scheduler's log."""

    number: int  # from 1
    plan: str  # digest of the plan that ran
    expected: RoundStatistics | None  # by which the plan was chosen: estimates, or what was counted before
    observed: RoundStatistics
    is_move: bool
    is_switch: bool
    is_hit: bool


class PlanScheduler(ABC):
    """Chooses a plan for each round. Concrete schedulers say how.

    Parameters
    ----------
    costs
        The plans and their costs.
    rounds, decay, threshold
        Of the estimates.
    """

    name: ClassVar[str]

    def __init__(
        self, costs: PlanCosts, *, rounds: int = ROUNDS, decay: float = DECAY, threshold: float = THRESHOLD
    ) -> None:
        self.costs = costs
        self.counts = ScheduleCounts()
        self.estimates = RoundEstimates(rounds, decay, threshold)
        self.log: deque[RoundRecord] = deque(maxlen=LOGGED_ROUNDS)
        self._plans: dict[PlanChoice, QueryPlan] = {}
        self._last: PlanChoice | None = None
        self._last_expected: RoundStatistics | None = None
        self._open: tuple[PlanChoice, RoundStatistics | None, bool, bool] | None = None

    def prepare(self, counted: Sequence[RoundStatistics]) -> None:
        """See that charts cover the rounds that come next, if several have been counted: `choose` then finds them so.

        Charts are extended once, and not round by round.
        """
        if counted:
            self._cover(*map(self.estimates.completed, counted))

    def choose(self, counted: RoundStatistics | None = None) -> QueryPlan:
        """The plan for the next round.

        In the paper a plan is chosen before the tuples of its round arrive, by estimates from the rounds before. A
        round whose tuples wait until its end, as in a session, has been counted by then: these statistics, where they
        are given, take the place of estimates.
        """
        expected, counts = self.estimates.expected, self.counts
        if counted is not None:
            expected = self.estimates.completed(counted)
            self._cover(expected)
        before = self._regions(self._last_expected) if self._last_expected else None
        regions = self._regions(expected) if expected else None
        choice = self._choose(expected, regions)
        is_move = self._last_expected is not None and regions != before
        is_switch = self._last is not None and not self._is_same(choice, self._last)
        self._open = (choice, expected, is_move, is_switch)
        self._last, self._last_expected = choice, expected
        self.counts = ScheduleCounts(
            counts.decisions + 1, counts.rounds, counts.moves + is_move, counts.switches + is_switch, counts.hits
        )
        return self._plan(choice)

    def observe(self, observed: RoundStatistics) -> RoundRecord:
        """Learn the statistics of the round for which a plan was chosen."""
        if self._open is None:
            raise ValueError("there is no round to observe; call choose() before each round")
        choice, expected, is_move, is_switch = self._open
        self._open = None
        renewed = self.estimates.observe(observed)
        completed = self.estimates.completed(observed)
        is_hit = self.costs.is_best(choice, completed) or self._is_same(choice, self.costs.best(completed))
        counts = self.counts
        self.counts = ScheduleCounts(
            counts.decisions, counts.rounds + 1, counts.moves, counts.switches, counts.hits + is_hit
        )
        digest = self._plan(choice).digest
        record = RoundRecord(self.counts.rounds, digest, expected, observed, is_move, is_switch, is_hit)
        self.log.append(record)
        if (expected := self.estimates.expected) is not None:
            self._cover(expected, renewed=renewed)
        return record

    def reweigh(self, weights: Weights) -> None:
        """Weigh output rate and memory differently from now on."""
        self.costs = replace(self.costs, weights=weights)
        self._rebuild()

    @property
    def plan(self) -> QueryPlan | None:
        """The plan that was chosen last."""
        return None if self._last is None else self._plan(self._last)

    @property
    def expected(self) -> RoundStatistics | None:
        """The statistics by which the last plan was chosen."""
        return self._last_expected

    def save(self) -> dict[str, Any]:
        """The state, for `load`, as values that JSON knows. The log is not part of it."""
        return {
            "scheduler": self.name,
            "plans": self.costs.space.digest,
            "weights": dict(vars(self.costs.weights)),
            "counts": dict(vars(self.counts)),
            "estimates": self.estimates.save(),
            "last": self._last and [self._last.join, list(self._last.leaves)],
            "last_expected": self._last_expected and dict(vars(self._last_expected)),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state of the same scheduler for the same plans."""
        for key, mine in (("scheduler", self.name), ("plans", self.costs.space.digest)):
            if state.get(key) != mine:
                raise SavedStateError(
                    f"the saved state has {key} {state.get(key)!r}, this query has {mine!r}: start without it"
                )
        try:
            self._load(state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise odd("schedule of plans", f"{type(error).__name__}: {error}") from None

    def _load(self, state: Mapping[str, Any]) -> None:
        self.costs = replace(self.costs, weights=Weights(**state["weights"]))
        self.counts = ScheduleCounts(**state["counts"])
        self.estimates.load(state["estimates"])
        self._last = PlanChoice(state["last"][0], tuple(state["last"][1])) if state["last"] else None
        self._last_expected = RoundStatistics(**state["last_expected"]) if state["last_expected"] else None
        self._open = None

    @abstractmethod
    def _choose(self, expected: RoundStatistics | None, regions: Regions | None) -> PlanChoice:
        """The choice for the next round, whose statistics are estimated or counted; None before the first estimate."""

    def _regions(self, expected: RoundStatistics) -> Regions | None:
        """The region of the estimates in each chart, for schedulers with charts."""
        return None

    def _cover(  # noqa: B027 - only schedulers with charts react
        self, *expected: RoundStatistics, renewed: bool = False
    ) -> None:
        """See that charts cover these statistics; `renewed` says that an estimate which charts hold has changed."""

    def _rebuild(self) -> None:  # noqa: B027 - only schedulers with charts react
        """React to new weights."""

    def _plan(self, choice: PlanChoice) -> QueryPlan:
        if choice not in self._plans:
            self._plans[choice] = self.costs.space.plan(choice)
        return self._plans[choice]

    def _is_same(self, choice: PlanChoice, other: PlanChoice) -> bool:
        if choice == other or not self.costs.alike_is_same:
            return choice == other
        return self._plan(choice).root.runs_alike == self._plan(other).root.runs_alike

    @property
    def _first(self) -> PlanChoice:
        """The choice while nothing is known."""
        return PlanChoice(0, (0,) * len(self.costs.space.aliases))
