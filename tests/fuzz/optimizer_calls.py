"""Public calls of the optimizer with numbers that it cannot take: wrong lengths, bits too many, negative, NaN and huge.

Runs in a process of its own with compiled kernels, where a call that reaches a kernel unchecked ends the process.
A scenario is told before it runs, so that the scenario that ended the process is known.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.inputs import ODD_NUMBERS, refuses_clearly, try_inputs

from thalweg import drift, joinorder, ordering, routing
from thalweg.kernels import compile_kernels
from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.replay import replay
from thalweg.ordering.sampling import ProcessingCounts
from thalweg.routing.gain import Matrices

CALLS = 8  # of an object's methods
OPTIONS = ("window", "max_age", "p", "alpha", "prior", "costs", "order", "pinned", "after")

Scenario = Callable[[Random], None]


def attempt(call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call returns
    """The result of a call; None if it was refused clearly, and any other error ends the test.

    An argument that is no number, or no sequence, where that is needed may be refused by Python itself.
    """
    results = list[Any]()
    with suppress(TypeError):
        refuses_clearly(lambda: results.append(call()), ValueError)
    return results[0] if results else None


def number(random: Random) -> Any:  # noqa: ANN401 - any number
    return random.choice(ODD_NUMBERS) if random.randint(0, 1) else random.choice((0.25, 1, 3))


def numbers(random: Random, length: int, most: int) -> Any:  # noqa: ANN401 - also nested, or no list
    """So many whole numbers up to `most`, with something odd about them half of the time."""
    odd = random.randint(0, 9)
    if odd == 0:
        length = random.choice((0, 1, length + 1, 2 * length, 100))
    values: list[Any] = [random.randint(0, most) for _ in range(length)]
    if odd in {1, 2} and values:
        values[random.randrange(len(values))] = random.choice(ODD_NUMBERS)
    if odd == 3:
        return [values, values]
    return number(random) if odd == 4 else values


def whole(random: Random, most: int) -> int:
    """A whole number up to `most`, or an odd whole number."""
    odd = [value for value in ODD_NUMBERS if isinstance(value, int)]
    return random.choice(odd) if random.randint(0, 3) == 0 else random.randint(0, most)


def policies(random: Random) -> None:
    filters = random.randint(1, 7)
    if (policy := drawn_policy(random, filters)) is not None:
        for _ in range(CALLS):
            call_policy(random, policy, filters)


def watched_policies(random: Random) -> None:
    filters = random.randint(1, 7)
    policy, detector = drawn_policy(random, filters), drawn_detector(random)
    if policy is None or detector is None:
        return
    remember, log = (whole(random, 4) for _ in range(2))
    if (watched := attempt(lambda: drift.Watched(policy, detector, remember=remember, log=log))) is not None:
        for _ in range(CALLS):
            call_policy(random, watched, filters)


def drawn_policy(random: Random, filters: int) -> ordering.Policy | None:
    name = random.choice(ordering.POLICIES).name
    options: dict[str, Any] = {"window": random.randint(1, 40)}
    if random.randint(0, 1):
        option = random.choice(OPTIONS)
        options[option] = numbers(random, filters, filters - 1) if OPTIONS.index(option) > 4 else number(random)
    count = whole(random, 70) if random.randint(0, 9) == 0 else filters
    policy: ordering.Policy | None = attempt(lambda: ordering.policy(name, count, **options))
    return policy


def call_policy(random: Random, policy: ordering.Policy, filters: int) -> None:
    tuples = random.randint(0, 30)
    masks = numbers(random, tuples, 2**filters - 1)
    times = None if random.randint(0, 1) else [numbers(random, filters, 9) for _ in range(tuples)]
    stamps = None if random.randint(0, 1) else numbers(random, tuples, 99)
    evaluated, dropped, seconds = (numbers(random, filters, most) for most in (999, 99, 9))
    position, some, other = whole(random, filters - 1), whole(random, 300), whole(random, 9)
    share, costs = number(random), numbers(random, filters, 9)
    calls: Sequence[Callable[[], object]] = (
        lambda: policy.update(masks, times, stamps),
        lambda: policy.observe(evaluated, dropped, seconds),
        lambda: policy.needs(position),
        policy.forget,
        policy.settle,
        policy.conclude,
        policy.start_over,
        lambda: policy.share_sampler(ordering.Sampler(other, 0.5, adaptive=True)),
        lambda: policy.profile.insert(masks, times, stamps),
        lambda: policy.profile.merge(ordering.Profile(other)),
        lambda: policy.sampler.choose(some),
        lambda: policy.sampler.use(share, until=some),
        lambda: policy.sampler.watch(ProcessingCounts(evaluated, dropped, seconds), seen=some, window=other),
        lambda: replay(policy, masks, costs),
        lambda: ordering.MatrixView.of(policy),
    )
    attempt(random.choice(calls))


def drawn_detector(random: Random) -> drift.Detector | None:
    name = random.choice(drift.DETECTORS).name
    options = {}
    if random.randint(0, 2) == 0:
        option = random.choice(
            {"glr": ("quiet", "k"), "none": ("k",), "adwin": ("delta", "clock", "k")}.get(name, "hk")
        )
        options[option] = number(random)
    detector: drift.Detector | None = attempt(lambda: drift.detector(name, **options))
    return detector


def detectors(random: Random) -> None:
    detector, series = drawn_detector(random), whole(random, 5)
    if detector is None:
        return
    attempt(lambda: detector.watch(series))
    for _ in range(CALLS):
        estimates = numbers(random, min(max(series, 0), 9), 1)
        shares = [random.random() for _ in range(min(max(series, 0), 9))]
        given = random.choice((estimates, shares))
        attempt(lambda given=given: detector.update(given))  # type: ignore[misc]


def monitors(random: Random) -> None:
    filters, detector = random.randint(1, 7), drawn_detector(random)
    order = range(min(whole(random, 70), 10**6)) if random.randint(0, 4) == 0 else numbers(random, filters, filters - 1)
    if random.randint(0, 1):
        order = random.sample(range(filters), filters)
    if detector is None:
        return
    monitor = attempt(lambda: drift.Monitor(order, detector, diagonal=bool(random.randint(0, 1))))
    for _ in range(CALLS if monitor else 0):
        tuples = random.randint(0, 50)
        masks, timed = numbers(random, tuples, 2**filters - 1), numbers(random, tuples, 1)
        times = [numbers(random, filters, 9) for _ in range(tuples)]
        given = random.choice(((masks,), (masks, times), (masks, times, timed)))
        attempt(lambda given=given: monitor.update(*given))  # type: ignore[misc]


def views(random: Random) -> None:
    filters = random.randint(1, 70)
    order = random.sample(range(filters), filters)
    entries, column = random.randint(0, 3), whole(random, 69)
    if (view := attempt(lambda: ordering.MatrixView(order, ordering.ViewEntries(entries), column))) is not None:
        masks = numbers(random, 20, 2 ** min(filters, 63) - 1)
        attempt(lambda: view.insert(masks))


def functions(random: Random) -> None:
    filters = random.randint(1, 8)
    masks, costs = numbers(random, 20, 2**filters - 1), numbers(random, filters, 9)
    order = random.sample(range(filters), filters) if random.randint(0, 1) else numbers(random, filters, filters - 1)
    required = None if random.randint(0, 1) else numbers(random, filters, 2**filters - 1)
    attempt(lambda: ordering.optimal_order(masks, costs, required))
    attempt(lambda: ordering.greedy_order(masks, costs, required))
    attempt(lambda: ordering.order_cost(masks, order, costs))


def pipelines(random: Random) -> None:
    filters = random.randint(1, 4)
    costs = numbers(random, filters, 9)
    pipeline = attempt(lambda: Pipeline(ordering.AGreedy(filters), [lambda rows: rows % 2 == 0] * filters, costs=costs))
    if pipeline is not None:
        pipeline.keep(np.arange(500))


def routers(random: Random) -> None:
    operators, name = random.randint(1, 5), random.choice(routing.ROUTERS).name
    parts, costs = numbers(random, 2, 4), numbers(random, operators, 9)
    options = random.choice(({}, {"parts": parts}, {"costs": costs}, {"parts": [3, 4], "costs": costs}))
    count = whole(random, 9) if random.randint(0, 4) == 0 else operators
    router = attempt(lambda: routing.router(name, count, **options))
    for _ in range(CALLS if router else 0):
        call_router(random, router, operators)


def call_router(random: Random, router: routing.Router, operators: int) -> None:
    rows = random.randint(0, 9)
    contents: list[Any] = [numbers(random, 2, 2) for _ in range(rows)]
    content = contents[0] if contents else ()
    seen, waiting = numbers(random, operators, 9), numbers(random, operators, operators - 1)
    width, most = random.choice((operators, operators + 1)), random.choice((operators, 9))
    orders = np.array([random.sample(range(width), width) for _ in range(rows)], np.int64)
    calls = np.array([random.randint(-(most == 9), most) for _ in range(rows)], np.int64)
    dropped = np.array([bool(random.randint(0, 1)) for _ in range(rows)], np.bool_)
    operator, passed, queues = whole(random, operators - 1), number(random), numbers(random, operators, 9)
    methods: Sequence[Callable[[], object]] = (
        lambda: router.next(waiting, content, queues),
        lambda: router.orders(contents),
        lambda: router.observe(orders, calls, dropped, contents),
        lambda: router.note(operator, passed, content),
        lambda: router.sent(operator),
        lambda: router.count(seen, seen),
    )
    attempt(random.choice(methods))


def gains(random: Random) -> None:
    parts = numbers(random, 2, 4)
    shares = numbers(random, 3, 1)
    attempt(lambda: routing.entropy(shares, look_up=bool(random.randint(0, 1))))
    attempt(lambda: routing.gain(shares, numbers(random, 3, 1)))
    attempt(lambda: routing.pruned_operators(shares, numbers(random, 3, 9)))
    if (matrices := attempt(lambda: Matrices(parts))) is not None:
        contents = [numbers(random, 2, 3) for _ in range(5)]
        attempt(lambda: matrices.add(contents, numbers(random, 5, 1)))
        attempt(matrices.gains)


def joins(random: Random) -> None:
    shape, streams = random.choice(list(joinorder.GraphShape)), random.choice((whole(random, 30), random.randint(1, 6)))
    if streams > 70:
        return
    bounds: dict[str, Any] = {option: (number(random), number(random)) for option in ("rates", "selectivities")}
    if random.randint(0, 1):
        bounds = {}
    graph = attempt(lambda: joinorder.random_graph(shape, streams, np.random.default_rng(0), **bounds))
    if graph is None:
        return
    name = random.choice([planner.name for planner in joinorder.PLANNERS if planner.name != "exhaustive"])
    if len(graph.streams) <= 10:
        attempt(lambda: joinorder.planner(name).plan(graph, random.choice(list(joinorder.Measure))))
        attempt(lambda: joinorder.planner("q-aware", budget=number(random)).plan(graph))
        steady = attempt(lambda: joinorder.Steady(margin=number(random), confidence=number(random)))
        for _ in range(3 if steady else 0):
            attempt(lambda: steady.update(graph, number(random), number(random)))


SCENARIOS: tuple[Scenario, ...] = (
    policies,
    watched_policies,
    detectors,
    monitors,
    views,
    functions,
    pipelines,
    routers,
    gains,
    joins,
)


def run_scenario(chosen: tuple[int, int]) -> None:
    """Run a scenario with random numbers of a seed."""
    number_of_scenario, seed = chosen
    scenario = SCENARIOS[number_of_scenario]
    sys.stdout.write(f"{scenario.__name__} {seed}\n")
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scenario(Random(seed))  # noqa: S311 - no secret


if __name__ == "__main__":
    compile_kernels()
    for index in range(len(SCENARIOS)):
        try_inputs(lambda random, index=index: (index, random.getrandbits(32)), run_scenario)  # type: ignore[misc]
