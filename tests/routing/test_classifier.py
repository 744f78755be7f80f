import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import greedy_order, order_cost
from thalweg.ordering.precedence import is_legal, required_before
from thalweg.ordering.types import Integers
from thalweg.routing.candidates import TELLING
from thalweg.routing.classifier import (
    PARTS,
    PARTS_OF_RUNS,
    Chooser,
    costs_until_dropped,
    few_orders,
    greedy_orders,
    parts_of,
)
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.partition import codes, numbers

FREE = np.zeros(4, np.int64)


def bits_of(masks: Integers, filters: int) -> np.ndarray:
    return np.asarray((masks[:, None] >> np.arange(filters)) & 1 == 1)


def chooser(masks: Integers, *columns: np.ndarray, filters: int = 4) -> Chooser:
    sample = ClassifierSample(len(columns), masks.size)
    sample.insert(
        masks, np.column_stack([codes(one) for one in columns]), np.column_stack([numbers(one) for one in columns])
    )
    return Chooser(sample, np.ones(filters), np.zeros(filters, np.int64))


@given(seed=st.integers(0, 999), filters=st.integers(1, 6), pinned=st.booleans())
def test_greedy_orders_are_those_of_static_greedy(seed: int, filters: int, pinned: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(seed)
    masks = random.integers(0, 1 << filters, 60)
    costs = random.random(filters) + 0.1
    required = required_before(filters, pinned=[filters // 2] if pinned else [])
    known, counts = np.unique(masks, return_counts=True)
    [order] = greedy_orders(counts[None].astype(float), bits_of(known, filters), costs, required).tolist()
    assert is_legal(required, order)
    assert tuple(order) == greedy_order(masks, costs, required)
    table = costs_until_dropped(np.array([order]), bits_of(masks, filters), costs)
    assert table.mean() == pytest.approx(order_cost(masks, order, costs))


def test_classes_that_want_one_order_are_one_class() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 20, 4000)
    masks = np.where(random.random(4000) < 0.9, 1 << (values % 2), 1 << random.integers(0, 4, 4000))
    one = chooser(masks, values)
    classifier = one.fit(one.cells_of(0))
    assert len(classifier.orders) - 1 == 2
    assert {order[0] for order in classifier.orders[1:]} == {0, 1}
    classes = classifier.classify([codes(np.arange(21))], [np.zeros(21)])
    assert len(set(classes[:20:2].tolist())) == 1
    assert classes[20] == 0  # never seen


def test_ranges_of_a_continuous_attribute() -> None:
    random = np.random.default_rng(1)
    values = random.random(4000)
    masks = np.where(values < 0.25, 1, np.where(values < 0.5, 2, 4))
    one = chooser(masks, values)
    best = one.estimate(one.cells_of(0))
    assert best.saving > 0.5
    classifier = one.fit(best.cells)
    probes = np.array([0.1, 0.3, 0.9, -5.0, 5.0, np.nan])
    classes = classifier.classify([codes(probes)], [probes])
    assert [classifier.orders[number][0] for number in classes[:5].tolist()] == [0, 1, 2, 0, 2]
    assert classes[5] == 0


def test_a_pair_is_found_where_neither_attribute_tells_anything() -> None:
    random = np.random.default_rng(2)
    first, second, noise = random.integers(0, 2, (3, 4000))
    found = chooser(1 << (first ^ second), first, second, noise).estimates([0, 1, 2])
    assert found[0].cells.attributes == (0, 1)
    assert found[0].saving == pytest.approx(0.5, abs=0.05)
    assert all(one.saving < 0.05 for one in found[1:])


@given(seed=st.integers(0, 200))
def test_decoys_save_nothing_that_counts(seed: int) -> None:
    """Whatever in-sample orders promise: on tuples that were not learnt from, chance saves nothing."""
    random = np.random.default_rng(seed)
    masks = (random.random((1000, 4)) < 0.5) @ np.array([1, 2, 4, 8])
    masks = masks[masks > 0]
    columns = random.integers(0, [5, 40, 10_000], (masks.size, 3)).T
    for found in chooser(masks, *columns).estimates([0, 1, 2]):
        assert found.saving < 3.5 * max(found.error, 0.01) + 0.02 * found.cost


def test_drift_is_no_reason_to_route_by_time() -> None:
    """A sequence number tells old from new, but not what comes next."""
    masks = np.repeat([1, 2], 1000)
    sequence = np.arange(2000)
    one = chooser(masks, sequence)
    assert one.estimate(one.cells_of(0)).saving <= 0


def test_few_orders_stop_where_one_more_saves_little() -> None:
    costs = np.array([[10.0, 1.0, 9.9], [10.0, 9.9, 9.5], [1.0, 9.0, 9.0]])
    assert few_orders(costs, most=5, worth=1.0) == [0, 1]
    assert few_orders(costs, most=5, worth=0.1) == [0, 1, 2]
    assert few_orders(costs, most=1, worth=0.1) == [0]
    assert few_orders(np.zeros((0, 3)), most=5, worth=0.1) == [0]


def test_the_sample_is_a_window() -> None:
    sample, random = ClassifierSample(2, 50), np.random.default_rng(0)
    masks, values = random.integers(0, 9, 500), random.random((500, 2))
    for start, stop in ((0, 3), (3, 40), (40, 41), (41, 180), (180, 300), (300, 310), (310, 500)):
        sample.insert(masks[start:stop], values[start:stop].view(np.int64), values[start:stop])
        assert sample.masks.tolist() == masks[max(stop - 50, 0) : stop].tolist()
        assert sample.numbers.tolist() == values[max(stop - 50, 0) : stop].tolist()
    sample.keep(7)
    assert sample.masks.tolist() == masks[-7:].tolist()
    assert sample.nbytes == 100 * (8 + 16 + 16)


def test_a_class_of_three_per_cent_is_found_and_leaves_the_others_alone() -> None:
    random = np.random.default_rng(0)
    kinds = random.choice(3, 1200, p=[0.5, 0.47, 0.03])
    drops = np.where((np.arange(4) == (kinds == 2)[:, None]), 0.8, 0.05)
    masks = (random.random((1200, 4)) < drops) @ (1 << np.arange(4))
    one = chooser(masks[masks > 0], kinds[masks > 0])
    estimate = one.estimate(one.cells_of(0))
    assert estimate.saving > 3 * estimate.error
    classifier = one.fit(one.cells_of(0))
    assert classifier.classify([codes(np.arange(3))], [np.zeros(3)]).tolist() == [0, 0, 1]
    assert [order[0] for order in classifier.orders] == [0, 1]


@pytest.mark.parametrize(("period", "parts"), [(1, PARTS), (40, PARTS_OF_RUNS)])
def test_values_that_come_in_runs_are_tried_in_halves(period: int, parts: int) -> None:
    random = np.random.default_rng(0)
    assert parts_of(np.repeat(random.integers(0, 8, 800 // period), period)) == parts


def test_a_value_that_tells_the_time_saves_nothing_where_regimes_alternate() -> None:
    random = np.random.default_rng(0)
    regime = np.arange(800) // 100 % 2
    masks = np.where(random.random(800) < 0.9, 1 << regime, 1 << random.integers(0, 4, 800))
    one = chooser(masks, np.arange(800) + random.normal(0, 40, 800))
    assert one.estimate(one.cells_of(0)).saving < 0.05


@pytest.mark.parametrize("rare", [0.5, 0.06])
def test_values_tell_what_filters_drop_long_before_a_saving_is_sure(rare: float) -> None:
    random = np.random.default_rng(1)
    kind, noise = (random.random(200) < rare).astype(int), random.integers(0, 8, 200)
    drops = np.where(np.arange(6) == kind[:, None], 0.8, 0.1)
    found = chooser((random.random((200, 6)) < drops) @ (1 << np.arange(6)), kind, noise)
    kinds, eights = (found.tells(found.cells_of(place)) for place in (0, 1))
    assert kinds > TELLING > 3.5 > eights
    assert found.screen([1], pairs=False) == eights
    assert found.screen([0, 1]) >= kinds


def test_pairs_of_values_tell_where_neither_does() -> None:
    random = np.random.default_rng(0)
    first, second = random.integers(0, 2, 200), random.integers(0, 2, 200)
    found = chooser(1 << (first ^ second), first, second)
    assert found.screen([0, 1], pairs=False) < TELLING < found.screen([0, 1])
