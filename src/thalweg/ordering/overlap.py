"""Runs slices of rows beside each other, so that filters that wait do not hold up filters that compute.

A filter that waits begins to ask for its rows and is finished later; in the meantime other slices go on. A slice is a
generator, which stops where it has to wait. All slices run in the caller's thread, so nothing here needs a lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple, Protocol, TypeVar

from thalweg.ordering.types import Booleans

MEMORY_ROWS = 2000.0  # rows after which an earlier row counts half in the mean of told costs

Result = TypeVar("Result")


class WaitedFor(NamedTuple):
    """The outcome of a filter that waits."""

    passed: Booleans
    seconds: float  # of the filter's capacity that the rows took: waiting is not computing
    cost: float | None = None  # as told, in any unit


class WaitingFilter(Protocol):
    """A filter that waits for a service."""

    @property
    def concurrency(self) -> int:
        """How many rows it asks for at once."""
        ...

    def begin(self, rows: Any) -> Future[Any]:  # noqa: ANN401 - a batch of rows
        """Begin to ask for rows."""
        ...

    def finish(self, rows: Any, answers: Any) -> WaitedFor:  # noqa: ANN401 - as above
        """The outcome for these rows, from the result of the future."""
        ...


class Wait(NamedTuple):
    """Why a slice stopped."""

    future: Future[Any]
    rows: int  # that wait


Steps = Generator[Wait, None, Result]


def run_alone(steps: Steps[Result]) -> Result:
    """Run one slice to its end."""
    while True:
        try:
            stop = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        wait([stop.future])


def run_together(slices: Iterator[Steps[Result]], most_waiting: Callable[[], int]) -> list[Result]:
    """Run slices beside each other; their results in the order of the slices.

    A slice is begun only while fewer rows wait than `most_waiting` says, which bounds the memory.
    """
    results: dict[int, Result] = {}
    stopped: dict[Future[Any], tuple[int, Steps[Result], int]] = {}

    def go_on(number: int, steps: Steps[Result]) -> None:
        try:
            stop = next(steps)
        except StopIteration as end:
            results[number] = end.value
        else:
            stopped[stop.future] = number, steps, stop.rows

    begun, more = 0, True
    try:
        while more or stopped:
            while more and sum(rows for _, _, rows in stopped.values()) < most_waiting():
                steps = next(slices, None)
                if steps is None:
                    more = False
                else:
                    go_on(begun, steps)
                    begun += 1
            if stopped:
                for future in wait(stopped, return_when=FIRST_COMPLETED).done:
                    number, steps, _ = stopped.pop(future)
                    go_on(number, steps)
    finally:
        for future in stopped:  # there are some only after an error
            future.cancel()
    return [results[number] for number in range(begun)]


class MeanCost:
    """The mean cost of a row lately, of a filter that waits: the seconds of its capacity, or as it is told.

    Unlike a filter that computes, it has no cost of a call besides its rows, and a call of few rows tells as much of a
    row as any other.

    >>> mean = MeanCost()
    >>> mean.note(rows=10, cost=50)
    >>> mean.per_row
    5.0
    """

    per_call = 0.0

    def __init__(self) -> None:
        self._rows = self._cost = 0.0

    def __bool__(self) -> bool:
        return self._rows > 0

    @property
    def per_row(self) -> float:
        """NaN as long as nothing is known."""
        return self._cost / self._rows if self._rows else math.nan

    def expect(self, per_row: float, per_call: float = 0.0) -> None:
        """Begin with the cost of an earlier run; the rows that follow soon outweigh it."""
        if per_row > 0:
            self._cost, self._rows = per_row, 1.0

    def forget(self) -> None:
        """Estimate the cost anew; until rows tell it, it is as before."""
        if self._rows:
            self._cost, self._rows = self.per_row, 1.0

    def note(self, rows: int, cost: float) -> None:
        """Learn from some rows."""
        memory = 0.5 ** (rows / MEMORY_ROWS)
        self._rows = memory * self._rows + rows
        self._cost = memory * self._cost + cost
