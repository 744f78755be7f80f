"""A disjunction in a worker, whose inner order adapts by the dual rule.

A conjunction first runs the predicate that drops most per cost; a disjunction first runs the member that accepts most.
Both are the same problem: a row leaves as soon as a member decides it. So a policy orders the members here too, and to
be *dropped* means to be true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from thalweg.ordering import Policy
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.types import Booleans
from thalweg.spark.filters.worker.judges import Counts, Judge, Verdict, counts_of
from thalweg.spark.filters.worker.view import View


class AnyOf:
    """Is true where a member is. Where none is, a member that failed comes before a member that is NULL.

    `costs` of the members may be given; otherwise time is measured.
    """

    def __init__(
        self, name: str, members: Sequence[Judge], policy: Policy, costs: Sequence[float] | None = None
    ) -> None:
        self.name = name
        self.members = tuple(members)
        self._pipeline = Pipeline(policy, [self._undecided_by(member) for member in members], costs=costs)
        self._null = self._failed = np.zeros(0, np.bool_)  # by the rows' places in the batch
        self._reasons: dict[int, str] = {}

    @property
    def policy(self) -> Policy:
        """The policy that orders the members."""
        return self._pipeline.policy

    @property
    def repeated(self) -> int:
        """Rows for which the members did not ask."""
        return sum(member.repeated for member in self.members)

    def adopt(self, fresh: AnyOf) -> None:
        """Pass the functions on to the members; the order stays as learnt."""
        for member, fresh_member in zip(self.members, fresh.members, strict=True):
            member.adopt(fresh_member)

    def begin_task(self) -> None:
        """Let the members prepare."""
        for member in self.members:
            member.begin_task()

    def counts(self) -> Counts:
        """What the members tell."""
        return counts_of(self.members)

    def judge(self, view: View) -> Verdict:
        """Judge rows by one member after the other until a member accepts them."""
        places = view.positions
        self._null = np.zeros(int(places.max()) + 1, np.bool_)
        self._failed = np.zeros_like(self._null)
        self._reasons = {}
        undecided = self._pipeline.keep(view)
        failed = undecided & self._failed[places]
        null = undecided & self._null[places] & ~failed
        if not failed.any():
            return Verdict(~undecided, null if null.any() else None)
        reasons = {row: self._reasons[int(places[row])] for row in np.flatnonzero(failed).tolist()}
        return Verdict(~undecided, null, failed, reasons)

    def _undecided_by(self, member: Judge) -> Callable[[View], Booleans]:
        """The member as a filter of the rows that are still undecided; it notes NULLs and failures."""

        def undecided(view: View) -> Booleans:
            verdict = member.judge(view)
            if verdict.null is not None:
                self._null[view.positions[verdict.null]] = True
            if verdict.failed is not None and verdict.reasons:
                places = view.positions
                self._failed[places[verdict.failed]] = True
                for row, reason in verdict.reasons.items():
                    self._reasons.setdefault(int(places[row]), f"{member.name}: {reason}")
            return ~verdict.true

        return undecided
