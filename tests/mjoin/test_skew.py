"""What is heavy, and when layouts change."""

from __future__ import annotations

import json

import numpy as np

from thalweg.mjoin.layouts import PLAIN, ActiveLayouts, HeavyValue
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import LEAST_ROWS, SAMPLE, SkewReport, SkewStatistics, copied_rows, frequent_values
from thalweg.mjoin.window import FOREVER

SHARES = Shares((4,), {"A": frozenset([0]), "B": frozenset([0])})
ROWS = 10 * LEAST_ROWS


def after(
    statistics: SkewStatistics, layouts: ActiveLayouts, share: float, *, of: str = "A", deadline: int = 0
) -> SkewStatistics:
    """What is known after a micro-batch in which so many rows of one input have the value 7."""
    other = "AB".replace(of, "")
    reports = [
        SkewReport(of, ROWS // 2, deadline, {0: {7: share * ROWS, 8: 10.0}}),
        SkewReport(other, ROWS // 2, deadline, {0: {9: 10.0}}),
    ]
    found = statistics.after(layouts, reports, SHARES)
    assert SkewStatistics.from_json(json.loads(json.dumps(found.to_json()))) == found
    return found


def test_frequent_values_are_found_in_a_bounded_sample() -> None:
    random = np.random.default_rng(0)
    hashed = np.where(random.random(20 * SAMPLE) < 0.3, 5, random.integers(10, 10**9, 20 * SAMPLE))
    assert abs(frequent_values(hashed)[5] / hashed.size - 0.3) < 0.06
    assert frequent_values(hashed) == frequent_values(hashed)
    periodic = np.tile(np.arange(20), SAMPLE)
    assert max(frequent_values(periodic).values()) < 0.1 * periodic.size
    assert frequent_values(np.empty(0, np.int64)) == {}


def test_a_value_is_heavy_above_its_fair_share_and_light_below_half_of_it() -> None:
    assert after(SkewStatistics(), PLAIN, 0.24).next_layouts(0, SHARES) == PLAIN
    split = after(SkewStatistics(), PLAIN, 0.26).next_layouts(0, SHARES)
    assert split == ActiveLayouts(1, (HeavyValue(0, 7, "A"),), before=())
    alone = ActiveLayouts(1, split.heavy)
    assert after(SkewStatistics(alone), alone, 0.13).next_layouts(0, SHARES) == alone
    assert after(SkewStatistics(alone), alone, 0.12).next_layouts(0, SHARES) == ActiveLayouts(2, (), before=split.heavy)


def test_another_input_is_spread_when_it_has_clearly_more_rows() -> None:
    layouts = ActiveLayouts(1, (HeavyValue(0, 7, "A"),))
    statistics = after(SkewStatistics(layouts), layouts, 0.3)
    both = after(statistics, layouts, 0.25, of="B")  # of the 0.3 before, half is remembered
    assert both.next_layouts(0, SHARES) == layouts
    assert after(both, layouts, 0.4, of="B").next_layouts(0, SHARES).heavy == (HeavyValue(0, 7, "B"),)


def test_two_inputs_are_spread_if_both_have_many_rows_of_a_value() -> None:
    reports = [SkewReport(name, ROWS, 0, {0: {7: 0.5 * ROWS}}) for name in "AB"]
    (value,) = SkewStatistics().after(PLAIN, reports, SHARES).next_layouts(0, SHARES).heavy
    assert value == HeavyValue(0, 7, "A", 2, "B")
    assert copied_rows(value, {"A": 10.0, "B": 10.0}, SHARES) == 40
    assert copied_rows(HeavyValue(0, 7, "A"), {"A": 10.0, "B": 10.0}, SHARES) == 50


def test_a_change_waits_until_rows_of_the_old_layout_have_expired() -> None:
    statistics = after(SkewStatistics(), PLAIN, 0.4, deadline=100)
    layouts = statistics.next_layouts(0, SHARES)
    statistics = after(statistics, layouts, 0.0, deadline=200)
    assert statistics.next_layouts(99, SHARES) == layouts
    assert statistics.next_layouts(100, SHARES) == ActiveLayouts(1, layouts.heavy)  # it is still remembered as heavy
    for _ in range(3):
        statistics = after(statistics, layouts, 0.0, deadline=200)
    assert statistics.next_layouts(99, SHARES) == layouts
    assert statistics.next_layouts(100, SHARES) == ActiveLayouts(2, (), before=layouts.heavy)


def test_few_rows_and_rows_of_unknown_deadline_change_nothing() -> None:
    few = SkewStatistics().after(PLAIN, [SkewReport("A", LEAST_ROWS - 1, 0, {0: {7: LEAST_ROWS - 1.0}})], SHARES)
    assert few.next_layouts(0, SHARES) == PLAIN
    assert after(SkewStatistics(deadline=FOREVER), PLAIN, 0.5).next_layouts(0, SHARES) == PLAIN
