"""Figures 1 to 4: the delay of tuples that wait in the operators' queues, WSCQ against routing by content.

The simulator of section 6. Tuples arrive every 0.01 time units. Each operator serves its queue one by one and spends
300 units of CPU a time unit, as it must for the paper's figures: with one CPU for all three, content-based routing
would be overloaded at a cost of 5, and WSCQ long before 4.5. Content-based routing knows the classifier and learns
selectivities from every tuple. It draws lots by squared merit as WSCQ does, but does not look at queues: if the best
operator always won, two classes of nearly equal selectivities would now and then share one operator and overload it.
In a third run it is charged half of an operator's cost for each routing decision. The surcharge delays the tuple and
takes no operator's CPU: charged there, the operators would be overloaded without skew from a cost of 4 on.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Result, at_least, between, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering.types import Floats, Integers
    from thalweg.routing import Router

INTERVAL = 0.01  # time units between tuples
CPU = 300.0  # units that an operator has for each time unit
OPERATORS = 3
SURCHARGE = 0.5  # of the processing cost, for each routing decision by content
COSTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
TUPLES = 100_000
WSCQ, CONTENT, CHARGED = "wscq", "content", "content, surcharged"
OTHERS = ("scq", "ticket", "queue-length")
OVERLOADED = 4.5  # the cost at which WSCQ is, with the greatest skew
FASTER = (2.0, 5.5)  # times, with the greatest skew
WORSE = (8.0, 17.0)  # per cent, without skew


def settings(quick: bool) -> list[Setting]:  # noqa: FBT001 - the signature of every experiment
    """Policies, skews of table 3 and costs."""
    from thalweg_lab.experiments.cbr.stream import SKEWS

    tuples, costs = (5_000, (0.5, 2.0, 4.0, 5.0)) if quick else (TUPLES, COSTS)
    skews = (SKEWS[0], SKEWS[-1]) if quick else SKEWS
    compared = [(skew, policy) for skew in skews for policy in (WSCQ, CONTENT, CHARGED)]
    others = [] if quick else [(SKEWS[0], policy) for policy in OTHERS]
    return [
        {"skew": skew, "policy": policy, "cost": cost, "tuples": tuples, "seed": 0}
        for skew, policy in (*compared, *others)
        for cost in costs
    ]


def measure(setting: Setting) -> list[Row]:
    """One simulation."""
    from thalweg.routing import router
    from thalweg_lab.experiments.cbr.stream import Stream, diagonal

    a, b = setting["skew"]
    policy, cost = setting["policy"], setting["cost"]
    if policy in {CONTENT, CHARGED}:
        chosen = content_lottery(setting["seed"])
    else:
        chosen = router(policy, OPERATORS, seed=setting["seed"])
    stream = Stream(diagonal(OPERATORS, a / 100, b / 100), setting["seed"]).next(setting["tuples"])
    extra = SURCHARGE * cost / CPU if policy == CHARGED else 0.0
    delay, visits = simulate(chosen, stream.masks.tolist(), stream.values[:, 0].tolist(), cost / CPU, extra)
    return [{"a": a, "b": b, "policy": policy, "cost": cost, "delay": delay, "visits": visits}]


def content_lottery(seed: int) -> Router:
    """Content-Knows, with merits as chances: as WSCQ without queues, for each class."""
    from thalweg.routing import ContentKnows

    class ContentLottery(ContentKnows):
        is_lottery = True

        def merits(self, contents: Integers, queues: Floats) -> Floats:
            return super().merits(contents, queues) ** 2

    return ContentLottery(OPERATORS, [OPERATORS], classifiers=dict.fromkeys(range(OPERATORS), 0), seed=seed)


def simulate(
    router: Router, masks: list[int], classes: list[int], service: float, surcharge: float = 0.0
) -> tuple[float, float]:
    """The average delay of tuples, and how many operators a tuple visits.

    >>> from thalweg.routing import router
    >>> simulate(router("scq", 1), [0, 0], [0, 0], service=0.004)
    (0.004, 1.0)
    >>> simulate(router("scq", 1), [0, 0, 0], [0, 0, 0], service=0.02)  # they arrive twice as fast
    (0.03, 1.0)
    """
    operators = router.operators
    queues: list[deque[int]] = [deque() for _ in range(operators)]
    waiting = [list(range(operators)) for _ in masks]
    lengths = [0] * operators  # waiting or being served
    arrive, reach, leave = range(3)
    events: list[tuple[float, int, int, int]] = [(0.0, 0, arrive, 0)]
    number, delays, visits = 0, 0.0, 0

    def send(now: float, tuple_number: int) -> None:
        nonlocal number, visits
        operator = router.next(waiting[tuple_number], (classes[tuple_number],), lengths)
        router.sent(operator)
        waiting[tuple_number].remove(operator)
        visits += 1
        number += 1
        lengths[operator] += 1
        heapq.heappush(events, (now + surcharge, number, reach, operator * len(masks) + tuple_number))

    def serve(now: float, operator: int) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (now + service, number, leave, operator))

    while events:
        now, _, kind, subject = heapq.heappop(events)
        if kind == arrive:  # the subject is a tuple's number
            if subject + 1 < len(masks):
                number += 1
                heapq.heappush(events, ((subject + 1) * INTERVAL, number, arrive, subject + 1))
            send(now, subject)
        elif kind == reach:
            operator, tuple_number = divmod(subject, len(masks))
            queues[operator].append(tuple_number)
            if len(queues[operator]) == 1:
                serve(now, operator)
        else:
            operator = subject
            tuple_number = queues[operator].popleft()
            lengths[operator] -= 1
            passed = not masks[tuple_number] >> operator & 1
            router.note(operator, float(passed), (classes[tuple_number],))
            if queues[operator]:
                serve(now, operator)
            if passed and waiting[tuple_number]:
                send(now, tuple_number)
            else:
                delays += now - tuple_number * INTERVAL
    return round(delays / len(masks), 9), visits / len(masks)


def speedups(rows: list[Row], policy: str, skew: tuple[int, int]) -> dict[float, float]:
    """By cost, how many times longer tuples take with WSCQ than with a policy."""
    of = {(row["policy"], row["cost"]): row["delay"] for row in rows if (row["a"], row["b"]) == skew}
    return {cost: of[WSCQ, cost] / delay for (name, cost), delay in of.items() if name == policy}


def judge(rows: list[Row]) -> list[Result]:
    """Speed-ups at the greatest and without skew, with the surcharge; and where WSCQ is overloaded."""
    skews = sorted({(row["a"], row["b"]) for row in rows})
    greatest, none = skews[0], skews[-1]
    bare, charged = (speedups(rows, policy, greatest) for policy in (CONTENT, CHARGED))
    level_bare, level = (
        {c: 100 * (1 / x - 1) for c, x in speedups(rows, policy, none).items()} for policy in (CONTENT, CHARGED)
    )
    fits = [cost for cost in charged if cost < OVERLOADED]
    delays = {(row["policy"], row["cost"]): row["delay"] for row in rows if (row["a"], row["b"]) == greatest}
    times = ", ".join(f"cost {cost:g}: {ratio:.1f} ({charged[cost]:.1f} surcharged)" for cost, ratio in bare.items())
    percents = ", ".join(
        f"cost {cost:g}: {value:+.0f} ({level_bare[cost]:+.0f} without)" for cost, value in level.items()
    )
    idle = (
        "where queues are short, delay is little more than service: 2.05 visits against 1.1 give 1.9, 1.2 with half "
        "of the service time more for each visit. The paper's delays of 0.07 at a cost of 4 hold something besides "
        "queues and service, which it does not describe"
    )
    most, scenario = max(charged), f"skew {greatest[0]}/{greatest[1]}"
    below = "times faster, least where no operator is overloaded"
    return [
        at_least(scenario, below, min(bare[cost] for cost in fits), FASTER[0], f"{times}; {idle}"),
        at_least(f"{scenario}, surcharged", below, min(charged[cost] for cost in fits), FASTER[0], idle),
        at_least(f"{scenario}, surcharged", "times faster, most", max(charged.values()), FASTER[1], times),
        claim(
            f"{scenario}, cost {most:g}",
            "average delay, WSCQ",
            delays[WSCQ, most],
            "overloaded from a cost of 4.5 on, content-based routing is not",
            holds=delays[WSCQ, most] > 20 * delays[CONTENT, most] and delays[CONTENT, most] < 1,
            note=f"content {delays[CONTENT, most]:.3f}; at {max(fits):g} WSCQ {delays[WSCQ, max(fits)]:.3f}",
        ),
        between(
            f"skew {none[0]}/{none[1]}",
            "per cent worse with the surcharge, most",
            max(level.values()),
            WORSE,
            f"{percents}; {idle}",
        ),
    ]


def plot(rows: list[Row], figure: Figure) -> None:
    """Delays at the greatest skew, and the speed-up for each."""
    left, right = figure.subplots(1, 2)
    skews = sorted({(row["a"], row["b"]) for row in rows})
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy and (row["a"], row["b"]) == skews[0]]
        left.plot([row["cost"] for row in own], [row["delay"] for row in own], marker="o", markersize=3, label=policy)
    left.set_yscale("log")
    left.set_ylabel("average tuple delay")
    left.legend(fontsize=7)
    for skew in skews:
        found = speedups(rows, CHARGED, skew)
        right.plot(list(found), list(found.values()), marker="o", markersize=3, label=f"{skew[0]}/{skew[1]}")
    right.set_yscale("log")
    right.axhline(1, color="black", linewidth=0.8)
    right.set_ylabel("times faster than WSCQ, surcharged")
    right.legend(fontsize=7)
    for axes in (left, right):
        axes.set_xlabel("CPU cost")


EXPERIMENT = Experiment(
    id="cbr-delay",
    title="The delay of tuples in queues",
    source="content-based-routing-2004, figures 1 to 4",
    claim="2 to 5.5 times faster than WSCQ at high skew; 8 to 17% worse with no skew and a routing surcharge of 50%",
    settings=settings,
    measure=measure,
    judge=judge,
    plot=plot,
)
