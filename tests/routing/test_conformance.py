"""What every router must do, run over all of `ROUTERS`."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.ordering.types import Integers
from thalweg.routing import ROUTERS, ContentLearns, QueueLength, Router, calls_of, router

every_router = pytest.mark.parametrize("kind", ROUTERS, ids=lambda kind: kind.name)


def run(one: Router, masks: Integers, contents: Integers, batch: int = 100) -> list[Integers]:
    """Let a router route tuples as a batch engine does; the orders of each batch."""
    orders = []
    for start in range(0, masks.size, batch):
        part, values = masks[start : start + batch], contents[start : start + batch]
        orders.append(one.orders(values))
        one.observe(orders[-1], *calls_of(orders[-1], part), values)
    return orders


def tuples(seed: int, operators: int, size: int = 500) -> tuple[Integers, Integers]:
    random = np.random.default_rng(seed)
    return random.integers(0, 1 << operators, size), random.integers(0, [3, 8], (size, 2))


@every_router
@settings(max_examples=30)
@given(seed=st.integers(0, 99), operators=st.integers(1, 6))
def test_an_order_names_each_operator_once(kind: type[Router], seed: int, operators: int) -> None:
    masks, contents = tuples(seed, operators)
    for orders in run(kind(operators, [3, 8], seed=seed), masks, contents):
        assert (np.sort(orders, axis=1) == np.arange(operators)).all()


@every_router
@settings(max_examples=30)
@given(data=st.data())
def test_the_next_operator_is_one_that_waits(kind: type[Router], data: st.DataObject) -> None:
    one = kind(4, [3, 8], costs=[1, 2, 3, 4])
    for _ in range(6):
        waiting = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True))
        queues = data.draw(st.sampled_from([(), (0, 0, 0, 0), (5, 0, 90, 2), (50, 60, 70, 80)]))
        chosen = one.next(waiting, [1, 2], queues)
        assert chosen in waiting
        one.sent(chosen)
        one.note(chosen, data.draw(st.sampled_from([0, 1])), [1, 2])


@every_router
def test_one_seed_one_route(kind: type[Router]) -> None:
    masks, contents = tuples(1, 4)
    first, second = (run(kind(4, [3, 8], seed=5), masks, contents) for _ in range(2))
    assert all((one == other).all() for one, other in zip(first, second, strict=True))


@every_router
def test_no_tuples_are_no_trouble(kind: type[Router]) -> None:
    one = kind(3, [2])
    orders = one.orders(np.zeros((0, 1), np.int64))
    one.observe(orders, np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros((0, 1), np.int64))
    assert orders.shape == (0, 3)
    assert np.isfinite(one.selectivities).all()


@pytest.mark.parametrize("kind", [kind for kind in ROUTERS if kind is not QueueLength], ids=lambda kind: kind.name)
def test_the_operator_that_drops_most_comes_first_most_often(kind: type[Router]) -> None:
    random = np.random.default_rng(0)
    bits = random.random((40_000, 3)) < [0.1, 0.9, 0.2]
    contents = random.integers(0, 4, (40_000, 1))
    orders = run(kind(3, [4]), bits @ np.array([1, 2, 4]), contents, batch=200)
    first = np.concatenate(orders[-20:])[:, 0]
    assert np.mean(first == 1) > 0.6


@every_router
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": [0]}, "at least 1"),
        ({"costs": [1]}, "3 positive numbers"),
        ({"costs": [1, 0, 2]}, "positive numbers"),
    ],
)
def test_bad_options_say_what_is_allowed(kind: type[Router], options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(3, **options)  # type: ignore[arg-type]


@every_router
def test_at_least_one_operator(kind: type[Router]) -> None:
    with pytest.raises(ValueError, match="at least 1 operator"):
        kind(0)


@every_router
def test_memory_is_told(kind: type[Router]) -> None:
    assert 0 < kind(4, [32]).nbytes < 10_000


def test_routers_are_found_by_name() -> None:
    assert [type(router(kind.name, 2)) for kind in ROUTERS] == list(ROUTERS)
    assert isinstance(router("content-learns", 2, parts=[4], samples=50), ContentLearns)
    with pytest.raises(ValueError, match="no router 'wsqc'; did you mean 'wscq'"):
        router("wsqc", 2)


def test_importing_it_imports_nothing_heavy() -> None:
    script = "import sys, thalweg.routing; print({'pyspark', 'numba', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
