from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering import AGreedy
from thalweg.ordering.overlap import WaitedFor
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.service_calls import QUEUE
from thalweg.ordering.types import Booleans, Integers

THREADS = ThreadPoolExecutor(3)  # answers come late and in any order


class Service:
    """Answers whether numbers can be divided by a modulus, in other threads, and counts the rows that wait."""

    concurrency = 8

    def __init__(self, modulus: int, seconds: float, cost: float | None = None) -> None:
        self.rows = self.waiting = self.most_waiting = 0
        self._modulus, self._seconds, self._cost = modulus, seconds, cost

    def begin(self, rows: Integers) -> Future[Booleans]:
        self.rows += len(rows)
        self.waiting += len(rows)
        self.most_waiting = max(self.most_waiting, self.waiting)
        return THREADS.submit(lambda: rows % self._modulus == 0)

    def finish(self, rows: Integers, answers: Booleans) -> WaitedFor:
        count = len(rows)
        self.waiting -= count
        return WaitedFor(answers, count * self._seconds, None if self._cost is None else count * self._cost)


@settings(max_examples=25)
@given(st.integers(1, 400), st.integers(1, 5), st.integers(1, 5))
def test_the_same_rows_are_kept_as_without_waiting(count: int, first: int, second: int) -> None:
    rows = np.arange(count)
    pipeline = Pipeline(AGreedy(3), [Service(first, 1e-3), lambda x: x % 7 != 3, Service(second, 5e-3)])
    expected = (rows % first == 0) & (rows % 7 != 3) & (rows % second == 0)
    assert pipeline.keep(rows).tolist() == expected.tolist()
    assert pipeline.tuples == count
    assert pipeline.waits


def test_the_cheaper_service_comes_first_and_few_rows_wait() -> None:
    rows = np.random.default_rng(1).integers(0, 1000, 4000)
    slow, fast = Service(2, 1.0), Service(3, 0.1)
    pipeline = Pipeline(AGreedy(2), [slow, fast])
    pipeline.keep(rows)
    assert pipeline.policy.order == (1, 0)
    assert slow.rows < 0.5 * fast.rows
    # Threads answer in any order, so each service has its most rows at a moment of its own.
    assert max(slow.most_waiting, fast.most_waiting) < 2 * QUEUE * (slow.concurrency + fast.concurrency)


def test_told_costs_decide_the_order_and_filters_without_a_cost_come_first() -> None:
    rows = np.random.default_rng(1).integers(0, 1000, 4000)
    cheap, dear = Service(2, 1.0, cost=1.0), Service(2, 1e-3, cost=100.0)
    pipeline = Pipeline(AGreedy(3), [dear, cheap, lambda x: x % 5 != 0])
    pipeline.keep(rows)
    assert pipeline.policy.order == (2, 1, 0)
    assert pipeline.costs[:2] == pytest.approx([100, 1], abs=1e-3)


def test_an_error_of_a_service_ends_the_batch() -> None:
    class Broken(Service):
        def finish(self, rows: Integers, answers: Booleans) -> WaitedFor:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Pipeline(AGreedy(1), [Broken(2, 1.0)]).keep(np.arange(10))


def test_a_pipeline_learns_on_after_an_error() -> None:
    class Unsteady(Service):
        fails = True

        def finish(self, rows: Integers, answers: Booleans) -> WaitedFor:
            if self.fails and self.rows > 20:
                raise ValueError("broken")
            return super().finish(rows, answers)

    rows, service = np.random.default_rng(1).integers(0, 1000, 2000), Unsteady(3, 0.1)
    pipeline = Pipeline(AGreedy(2), [Service(2, 1.0), service])
    with pytest.raises(ValueError, match="broken"):
        pipeline.keep(rows)
    service.fails = False
    pipeline.keep(rows)
    assert pipeline.policy.order == (1, 0)
