"""The Eddy policies that content-based routing is compared with."""

import numpy as np

from thalweg.routing import SCQ, WSCQ, QueueLength, Ticket
from thalweg.routing.ticket import OVERLOADED


def test_the_shortest_queue_is_chosen_whatever_it_drops() -> None:
    one = QueueLength(3)
    one.count([100, 100, 100], [0, 100, 100])
    assert [one.next([0, 1, 2], queues=[3, 1, 2]), one.next([0, 2], queues=[3, 1, 2])] == [1, 2]


def test_tickets_go_to_operators_that_drop() -> None:
    one = Ticket(2)
    for _ in range(100):
        for operator, passed in ((0, 1), (1, 0)):
            one.sent(operator)
            one.note(operator, passed)
    assert one.next([0, 1], queues=[0, 5]) == 1
    assert one.next([0, 1], queues=[OVERLOADED, OVERLOADED + 5]) == 0


def test_benefit_weighs_selectivity_cost_and_queue() -> None:
    one = SCQ(3, costs=[1, 1, 4])
    one.count([1000] * 3, [500, 200, 0])
    assert one.next([0, 1, 2]) == 1
    assert one.next([0, 1, 2], queues=[0, 3, 0]) == 0
    assert one.next([2, 0], queues=[9, 0, 0]) == 2


def test_the_lottery_follows_the_squares() -> None:
    one = WSCQ(2)
    one.count([1e6, 1e6], [0.7e6, 0.1e6])  # benefits 0.3 and 0.9
    first = np.array([one.next([0, 1]) for _ in range(2000)])
    assert abs(first.mean() - 0.9) < 0.02
    together = one.orders(np.zeros((20_000, 0)))[:, 0]
    assert abs(together.mean() - 0.9) < 0.01
