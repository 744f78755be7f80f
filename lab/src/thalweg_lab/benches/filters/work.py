"""Predicates of a known cost: each hashes a given number of bytes for every row, kept or not.

Whether a row is kept depends on its number alone, so that every contender and every run keeps the same rows. The cost
is a number of bytes, not a time: all contenders do the same work, however fast the machine is at the moment.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.ordering.types import Booleans, Integers
from thalweg_lab.hashed_rows import uniform

BLOCK = memoryview(bytes(1 << 16))
CALIBRATION_BYTES = 1 << 24

Function = Callable[[Integers], Booleans]  # from the rows' numbers to which are kept


def burn(amount: int) -> None:
    """Hash this many bytes, in a loop in C: a call costs hardly more than its rows."""
    digest = hashlib.blake2b()
    for _ in range(amount // len(BLOCK)):
        digest.update(BLOCK)
    digest.update(BLOCK[: amount % len(BLOCK)])


def bytes_of(seconds: float) -> float:
    """How many bytes this machine hashes in this time."""
    spent = []
    for _ in range(5):
        start = time.perf_counter()
        burn(CALIBRATION_BYTES)
        spent.append(time.perf_counter() - start)
    return seconds * CALIBRATION_BYTES / min(spent)


@dataclass(frozen=True)
class Test:
    """Keeps the rows whose number, hashed to 0..1, lies in a range; tests with the same salt see the same hash.

    >>> test = Test(salt=1, load=100, high=0.25)
    >>> float(test(np.arange(10_000)).mean())
    0.2555
    """

    salt: int
    load: int  # bytes hashed a row
    high: float
    low: float = 0.0

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        burn(rows.size * self.load)
        hashed = uniform(rows, self.salt)
        return np.asarray((hashed >= self.low) & (hashed < self.high))


@dataclass(frozen=True)
class InOrder:
    """Tests fused by hand in a fixed order: each sees the rows that the tests before it have kept.

    >>> InOrder((lambda rows: rows > 1, lambda rows: rows < 4))(np.arange(6)).tolist()
    [False, False, True, True, False, False]
    """

    tests: Sequence[Function]

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        alive, part = np.arange(rows.size), rows
        for test in self.tests:
            passed = test(part)
            alive, part = alive[passed], part[passed]
        kept = np.zeros(rows.size, np.bool_)
        kept[alive] = True
        return kept


@dataclass(frozen=True)
class ByPhase:
    """A function for each phase; rows come in spans, a span for each partition, that go through all phases.

    >>> ByPhase((lambda rows: rows < 0, lambda rows: rows >= 0), span=4)(np.arange(8)).tolist()
    [False, False, True, True, False, False, True, True]
    """

    parts: Sequence[Function]
    span: int

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        phases = rows % self.span * len(self.parts) // self.span
        if not rows.size or (phases == phases[0]).all():
            return self.parts[phases[0] if rows.size else 0](rows)
        kept = np.zeros(rows.size, np.bool_)
        for phase in np.unique(phases):
            mine = phases == phase
            kept[mine] = self.parts[phase](rows[mine])
        return kept


def tests_of(costs: Iterable[float], keeps: Iterable[float], unit: float) -> list[Test]:
    """Independent tests with these costs, in units of `unit` bytes, that keep these shares of the rows."""
    pairs = zip(costs, keeps, strict=True)
    return [Test(salt, round(unit * cost), keep) for salt, (cost, keep) in enumerate(pairs)]


def expected_cost(order: Iterable[int], costs: Sequence[float], keeps: Sequence[float]) -> float:
    """The average cost of a row when independent tests run in an order.

    >>> expected_cost((1, 0), costs=(10, 1), keeps=(0.9, 0.5))
    6.0
    """
    total, alive = 0.0, 1.0
    for number in order:
        total += alive * costs[number]
        alive *= keeps[number]
    return total


def predicates_of(tests: Sequence[Any], names: Sequence[str] | None = None) -> list[Any]:
    """The tests as predicates of Thalweg, as written."""
    import thalweg as tw

    labels = names or [f"P{number + 1}" for number in range(len(tests))]
    return [tw.predicate(test, on="id", takes="numpy", name=name) for test, name in zip(tests, labels, strict=True)]
