"""Services answer at once here, and time is told by rows, so that all counts repeat exactly."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import pytest

from thalweg.drift import GLR, Watched
from thalweg.ordering import AGreedy
from thalweg.ordering.overlap import WaitedFor, WaitingFilter
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.service_calls import FEW_WAITING, FIRST_LOOK_OF_CALLS, LONGEST_LOOK, QUEUE, ServiceCalls
from thalweg.ordering.slices import SliceCounts
from thalweg.ordering.types import Booleans, Integers

Order = tuple[int, ...]


class Service:
    """Answers by a bit of each row."""

    concurrency = 32

    def __init__(self, bit: int, seconds: float, cost: float | None = None) -> None:
        self.calls = 0
        self._bit, self._seconds, self._cost = bit, seconds, cost

    def begin(self, rows: Integers) -> Future[Booleans]:
        self.calls += len(rows)
        future: Future[Booleans] = Future()
        future.set_result(rows >> self._bit & 1 == 0)
        return future

    def finish(self, rows: Integers, answers: Booleans) -> WaitedFor:
        count = len(rows)
        return WaitedFor(answers, count * self._seconds, None if self._cost is None else count * self._cost)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def filter(self, bit: int, seconds: float) -> Filter:
        def keeps(rows: Integers) -> Booleans:
            self.now += seconds * len(rows)
            kept: Booleans = rows >> bit & 1 == 0
            return kept

        return keeps


def rows_of(drops: Sequence[float], count: int = 20_000, seed: int = 1) -> Integers:
    """Rows whose bits say which filters drop them, independently."""
    bits = np.random.default_rng(seed).random((count, len(drops))) < drops
    rows: Integers = (bits << np.arange(len(drops))).sum(axis=1)
    return rows


def run(
    services: Sequence[Service], rows: Integers, seconds: Sequence[float], order: Order | None = None
) -> tuple[Pipeline, list[Order]]:
    """Run services and then filters that take these seconds a row; returns all orders, batch by batch, too."""
    clock, count = Clock(), len(services) + len(seconds)
    filters: list[Filter | WaitingFilter] = [
        *services,
        *(clock.filter(len(services) + place, each) for place, each in enumerate(seconds)),
    ]
    last = order or (*range(len(services), count), *range(len(services)))
    pipeline = Pipeline(Watched(AGreedy(count, order=last, prior=1.0), GLR.for_few_tuples()), filters, clock=clock)
    orders = [last]
    for start in range(0, len(rows), 50):
        pipeline.keep(rows[start : start + 50])
        orders.append(pipeline.policy.order)
    return pipeline, orders


@pytest.mark.parametrize("cost", [None, 10.0])
def test_services_never_come_ahead_of_cheap_filters_for_lack_of_knowledge(cost: float | None) -> None:
    services = [Service(0, 1e-3, cost), Service(1, 2e-3, cost)]
    _, orders = run(services, rows_of([0.9, 0.9, 0.3, 0.3], 2000), [1e-5, 1e-5])
    assert all(set(order[:2]) == {2, 3} for order in orders)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_services_is_found_though_few_rows_reach_them(seed: int) -> None:
    # Both are told to cost the same in time; rows that cheap filters drop say nothing of the order.
    dear, cheap = Service(0, 1e-3, cost=500.0), Service(1, 1e-3, cost=40.0)
    rows = rows_of([0.35, 0.75, 0.6, 0.6, 0.4], seed=seed)
    _, orders = run([dear, cheap], rows, [1e-5, 1e-5, 1e-5])
    reached = (rows >> 2 == 0).sum()
    assert orders[-1][-2:] == (1, 0)
    assert dear.calls * 500 + cheap.calls * 40 < 1.1 * reached * (40 + 0.25 * 500)


def test_a_service_that_cannot_come_first_is_not_asked_for_rows_that_another_has_dropped() -> None:
    cheap, dear = Service(0, 1e-3, cost=20.0), Service(1, 1e-3, cost=300.0)
    rows = rows_of([0.4, 0.8, 0.5])
    run([cheap, dear], rows, [1e-5])
    assert cheap.calls - (rows >> 2 == 0).sum() <= 2  # profiled at the very first, as nothing is known
    assert dear.calls - (rows & 0b101 == 0).sum() <= 2 * FIRST_LOOK_OF_CALLS


def test_a_service_that_is_cheaper_than_a_filter_comes_before_it() -> None:
    service = Service(0, 1e-4)
    _, orders = run([service], rows_of([0.5, 0.5, 0.5]), [1e-3, 1e-6])
    assert orders[-1] == (2, 0, 1)


def test_many_rows_wait_when_the_first_look_is_over_also_if_a_service_drops_nothing() -> None:
    policy, service = AGreedy(3), Service(0, 1e-3)
    assert ServiceCalls({2: service}, 3).most_waiting(policy) == QUEUE * service.concurrency  # nothing to learn
    assert ServiceCalls({0: service, 1: service}, 3).most_waiting(AGreedy(3, p=0)) == 2 * QUEUE * service.concurrency
    calls = ServiceCalls({0: service, 1: service}, 3)
    assert calls.most_waiting(policy) == FEW_WAITING
    rows = LONGEST_LOOK * FIRST_LOOK_OF_CALLS
    calls.note(rows, SliceCounts([rows, rows, 0], [0, 0, 0], [1.0, 1.0, 0.0]), np.ones(3))
    assert calls.most_waiting(policy) == 2 * QUEUE * service.concurrency
    calls.begin_look()
    assert calls.most_waiting(policy) == FEW_WAITING


def test_guesses_where_nothing_is_known() -> None:
    service, nan = Service(0, 1e-3), np.nan
    calls = ServiceCalls({0: service, 1: service}, 4)

    def guess(costs: Sequence[float], single: Sequence[float]) -> object:
        return calls.guess(np.array(costs), np.array(single), 1.0).tolist()

    assert guess([nan, nan, nan, nan], [0, 0, 0, 0]) == [1, 1, 0, 0]
    assert guess([nan, nan, nan, nan], [0, 0, 5e-3, 0]) == [1, 1, 5e-3, 5e-3]
    assert guess([nan, 7, 2, nan], [0, 0, 0, 0]) == [7, 7, 2, 2]
