"""The base class of all routers: a router sends each tuple to operator after operator until an operator drops it.

A router sees of a tuple its *content*, the partition of each attribute's value, and of an operator how many tuples it
passed. A tuple-at-a-time engine asks for the `next` operator, with queue lengths if it has queues; a batch engine asks
for whole `orders`, and shows the outcome of a batch at once. (content-based-routing-2004)

The paper routes to the operator with the *minimum* of (1 - selectivity) / cost, which is a slip: the greatest is best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.checked import LARGEST, integers_of, numbers_of
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.gain import MOST, check_parts

UNKNOWN = 0.5  # the selectivity of an operator of which nothing is known
LEAST = 1e-3  # no merit is smaller: also an operator that passes everything has to see the tuple some time
HALVE_AFTER = 2000  # outcomes of an operator after which older outcomes count half


class Router(ABC):
    """Routes tuples by merit. Concrete routers say what merit is.

    Parameters
    ----------
    operators
        How many operators there are, numbered from 0.
    parts
        How many partitions each attribute has; none for routers that do not look at content.
    costs
        The cost of a tuple in each operator, all in the same unit; 1 by default.
    seed
        Seed of every random choice.
    """

    name: ClassVar[str]
    is_lottery: ClassVar[bool] = False  # whether merits are chances, or the greatest wins

    def __init__(
        self, operators: int, parts: Sequence[int] = (), *, costs: ArrayLike | None = None, seed: int = 0
    ) -> None:
        if not 1 <= operators <= MOST:
            raise ValueError(f"a router needs at least 1 operator and at most {MOST:,}, not {operators}")
        check_parts(parts)
        expected = f"costs are {operators} positive numbers, a number for each operator"
        self.costs = np.ones(operators) if costs is None else numbers_of(costs, expected).copy()
        if self.costs.shape != (operators,) or not ((self.costs > 0) & (self.costs <= LARGEST)).all():
            raise ValueError(f"{expected}, not {costs!r:.80}")
        self.operators = operators
        self.parts = tuple(parts)
        self.seen = np.zeros(operators)  # tuples that each operator saw, older tuples counting less
        self.passed = np.zeros(operators)  # and the tuples that it passed
        self.random = np.random.default_rng(seed)

    @property
    def selectivities(self) -> Floats:
        """The share of tuples that each operator passes, by all that is known."""
        known: Floats = (self.passed + UNKNOWN) / (self.seen + 1.0)
        return known

    @property
    def nbytes(self) -> int:
        """The memory of the counts of operators and classes."""
        return self.seen.nbytes + self.passed.nbytes

    @abstractmethod
    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """How good each operator is for each tuple: a row for each row of contents."""

    def next(self, waiting: Sequence[int], content: Sequence[int] = (), queues: Sequence[float] = ()) -> int:
        """The operator to send a tuple to, among the operators that still have to see it."""
        expected = f"queues have a length of 0 or more for each of the {self.operators} operators"
        lengths = numbers_of(queues, expected) if len(queues) else np.zeros(self.operators)
        if lengths.shape != (self.operators,) or not ((lengths >= 0) & (lengths <= LARGEST)).all():
            raise ValueError(expected)
        expected = f"a tuple waits for operators from 0 to {self.operators - 1}"
        numbers = integers_of(waiting, expected)
        if numbers.ndim != 1 or not numbers.size or not set(numbers.tolist()) <= set(range(self.operators)):
            raise ValueError(f"{expected}, not {waiting!r:.80}")
        merits = self.merits(self.partitions_of([content]), lengths)[0, numbers]
        if not self.is_lottery:
            return waiting[int(merits.argmax())]
        chances = np.cumsum(np.maximum(merits, LEAST * merits.max() + 1e-300))
        return waiting[int(np.searchsorted(chances, self.random.random() * chances[-1], side="right"))]

    def orders(self, contents: ArrayLike) -> Integers:
        """The orders in which tuples visit the operators while all queues are empty: a row for each tuple."""
        merits = self.merits(self.partitions_of(contents), np.zeros(self.operators))
        if self.is_lottery:  # drawing one after the other without replacement, all at once
            merits = np.maximum(merits, LEAST * merits.max(axis=1, keepdims=True) + 1e-300)
            merits = -self.random.standard_exponential(merits.shape) / merits
        return np.argsort(-merits, axis=1, kind="stable")

    def observe(self, orders: Integers, calls: Integers, dropped: Booleans, contents: ArrayLike) -> None:
        """Learn the outcome of a batch: how many operators of its order saw each tuple, and if the last dropped it."""
        self.check_outcome(orders, calls, dropped, contents)
        visited = np.arange(self.operators) < calls[:, None]
        seen = np.bincount(orders[visited], minlength=self.operators)
        last = orders[np.arange(calls.size), np.maximum(calls - 1, 0)][dropped]
        self.count(seen, seen - np.bincount(last, minlength=self.operators))

    def note(self, operator: int, passed: float, content: Sequence[int] = ()) -> None:
        """Learn the outcome of one tuple in one operator: how many tuples came out."""
        self.check_operator(operator)
        if not 0 <= passed < LARGEST:
            raise ValueError(f"an operator passes 0 tuples or more, not {passed!r:.80}")
        self.partitions_of([content])
        self.seen[operator] += 1.0
        self.passed[operator] += passed
        if self.seen[operator] > HALVE_AFTER:
            self._forget()

    def sent(self, operator: int) -> None:  # noqa: B027 - few routers care
        """Note that a tuple has been sent to an operator, and may wait there."""

    def count(self, seen: ArrayLike, passed: ArrayLike) -> None:
        """Add to the tuples that each operator saw and passed."""
        expected = f"seen and passed are {self.operators} numbers each, 0 or more"
        counts = numbers_of(seen, expected), numbers_of(passed, expected)
        if any(each.shape != (self.operators,) or not ((each >= 0) & (each < LARGEST)).all() for each in counts):
            raise ValueError(expected)
        self.seen += counts[0]
        self.passed += counts[1]
        self._forget()

    def check_operator(self, operator: int) -> None:
        """Refuse a number that no operator has."""
        if not 0 <= operator < self.operators:
            raise ValueError(f"operators are numbered from 0 to {self.operators - 1}, not {operator}")

    def partitions_of(self, contents: ArrayLike) -> Integers:
        """The partition of each attribute, a row for each tuple, or an error; without attributes anything will do."""
        expected = f"contents have a row for each tuple, with numbers below {list(self.parts)}"
        rows = integers_of(contents, expected)
        if not rows.size and rows.ndim == 1:
            rows = rows.reshape(0, len(self.parts))
        fits = rows.ndim == 2 and (not self.parts or rows.shape[1] == len(self.parts))  # noqa: PLR2004 - a table
        if not fits or (self.parts and ((rows < 0) | (rows >= np.array(self.parts))).any()):
            raise ValueError(expected)
        return rows

    def check_outcome(self, orders: Integers, calls: Integers, dropped: Booleans, contents: ArrayLike) -> None:
        """Refuse the outcome of a batch whose arrays do not fit each other, or that names operators there are not."""
        expected = (
            f"an outcome is a row of {self.operators} operators, a number of calls up to {self.operators} and whether "
            "it was dropped for each tuple, as NumPy arrays"
        )
        if not all(isinstance(each, np.ndarray) for each in (orders, calls, dropped)):
            raise TypeError(expected)
        tuples = calls.size
        fits = orders.shape == (tuples, self.operators) and calls.shape == dropped.shape == (tuples,)
        if not fits or orders.dtype.kind not in "iu" or calls.dtype.kind not in "iu" or dropped.dtype != np.bool_:
            raise ValueError(expected)
        if ((orders < 0) | (orders >= self.operators)).any() or ((calls < 0) | (calls > self.operators)).any():
            raise ValueError(expected)
        if self.parts and len(self.partitions_of(contents)) != tuples:
            raise ValueError(f"contents have a row for each of the {tuples} tuples")

    def _forget(self) -> None:
        """Halve the counts of operators that saw many tuples, so that they follow changes."""
        many = self.seen > HALVE_AFTER
        self.seen[many] /= 2.0
        self.passed[many] /= 2.0


def calls_of(orders: Integers, masks: Integers) -> tuple[Integers, Booleans]:
    """How many operators of its order see each tuple until it is dropped (bits of its mask), and whether it is.

    >>> calls, dropped = calls_of(np.array([[1, 0], [0, 1]]), np.array([0b10, 0b00]))
    >>> calls.tolist(), dropped.tolist()
    ([1, 2], [True, False])
    """
    drops = (masks[:, None] >> orders) & 1 == 1
    dropped = drops.any(axis=1)
    return np.where(dropped, drops.argmax(axis=1) + 1, orders.shape[1]), dropped
