"""Tickets (T): an operator gets a ticket with each tuple and gives it back with each that it returns.

Many tickets mean a fast operator that drops much. Where queues are long, tickets say little, and the shortest queue is
chosen. (content-based-routing-2004, section 6, footnote 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.router import Router

OVERLOADED = 10  # tuples waiting at every operator
KEPT = 0.999  # of a ticket, with every tuple sent: old tickets expire


class Ticket(Router):
    """Routes to the operator with most tickets, or with the shortest queue when all are overloaded.

    >>> router = Ticket(2)
    >>> router.sent(0), router.sent(1), router.note(1, passed=1)
    (None, None, None)
    >>> router.next([0, 1]), router.next([0, 1], queues=[90, 80])
    (0, 1)
    """

    name: ClassVar[str] = "ticket"

    def __init__(
        self, operators: int, parts: Sequence[int] = (), *, costs: ArrayLike | None = None, seed: int = 0
    ) -> None:
        super().__init__(operators, parts, costs=costs, seed=seed)
        self.tickets = np.zeros(operators)

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """The tickets, or the shorter queue; ties as it happens."""
        of = -queues if queues.min() >= OVERLOADED else self.tickets
        return of + 0.5 * self.random.random((len(contents), self.operators))

    def sent(self, operator: int) -> None:
        """A ticket for the operator."""
        self.check_operator(operator)
        self.tickets *= KEPT
        self.tickets[operator] += 1.0

    def note(self, operator: int, passed: float, content: Sequence[int] = ()) -> None:
        """A ticket back for a tuple that was passed."""
        super().note(operator, passed, content)
        self.tickets[operator] = max(self.tickets[operator] - passed, 0.0)

    def observe(self, orders: Integers, calls: Integers, dropped: Booleans, contents: ArrayLike) -> None:
        """Count a batch: each operator keeps a ticket for each tuple that it dropped."""
        super().observe(orders, calls, dropped, contents)
        last = orders[np.arange(calls.size), np.maximum(calls - 1, 0)][dropped]
        self.tickets = self.tickets * KEPT**calls.size + np.bincount(last, minlength=self.operators)
