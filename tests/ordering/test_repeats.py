from __future__ import annotations

import pytest

from thalweg.ordering.repeats import LEAST_ROWS, TRIAL_BATCHES, TRIAL_SHARE, Repeats, Way

ROWS = 2000


class Batches:
    """Batches that are asked as `Repeats` says, with given times, in microseconds, of each part of the work."""

    def __init__(self, *, asking: float, finding: float, looking_up: float = 0.2) -> None:
        self.repeats = Repeats()
        self.asking, self.finding, self.looking_up = asking * 1e-6, finding * 1e-6, looking_up * 1e-6
        self.ways: list[Way] = []
        self.asked_seconds = self.other_seconds = 0.0

    def run(self, count: int, *, distinct: float, returned: float, rows: int = ROWS) -> list[Way]:
        """Run batches of which this share of rows has values of its own, and this share of the values returns."""
        ways = []
        for _ in range(count):
            way = self.repeats.choose(rows)
            ways.append(way)
            values = rows if way is Way.EACH_ROW else round(distinct * rows)
            known = round(returned * values) if way is Way.EACH_NEW_VALUE else 0
            self._ask(values - known)
            if way is Way.EACH_ROW:
                continue
            looking_up = self.looking_up * values if way is Way.EACH_NEW_VALUE else 0.0
            self.other_seconds += self.finding * rows + looking_up
            self.repeats.note_values(
                rows=rows,
                values=values,
                finding=self.finding * rows,
                returned=known if way is Way.EACH_NEW_VALUE else None,
                looking_up=looking_up,
            )
        return ways

    def _ask(self, values: int) -> None:
        if values:
            self.asked_seconds += self.asking * values
            self.repeats.note_asked(values, self.asking * values)


def test_values_that_return_are_remembered() -> None:
    batches = Batches(asking=5, finding=0.05)
    ways = batches.run(20, distinct=0.3, returned=0.9)
    assert ways[0] is Way.EACH_ROW  # nothing is known of its cost yet
    assert set(ways[1:]) == {Way.EACH_NEW_VALUE}


def test_values_that_repeat_but_do_not_return_are_not_looked_up_for_long() -> None:
    ways = Batches(asking=5, finding=0.05).run(100, distinct=0.3, returned=0.0)
    assert ways[1 : 2 + TRIAL_BATCHES] == [Way.EACH_NEW_VALUE] * (1 + TRIAL_BATCHES)
    assert set(ways[2 + TRIAL_BATCHES : 20]) == {Way.EACH_VALUE}


def test_a_trial_ends_where_to_look_a_value_up_takes_as_long_as_to_ask() -> None:
    """A vectorised function of numbers that are all different: the first trial batch is not believed, the second is."""
    ways = Batches(asking=0.2, finding=0.05).run(20, distinct=1.0, returned=0.0)
    assert ways[1:3] == [Way.EACH_NEW_VALUE] * 2
    assert set(ways[3:]) == {Way.EACH_ROW}


@pytest.mark.parametrize("asking", [0.3, 1, 5, 50])
def test_distinct_values_cost_a_small_share_of_the_time(asking: float) -> None:
    batches = Batches(asking=asking, finding=0.07)
    batches.run(TRIAL_BATCHES + 2, distinct=1.0, returned=0.0)  # the first trial
    first = batches.other_seconds
    ways = batches.run(3000, distinct=1.0, returned=0.0)
    assert Way.EACH_VALUE not in ways
    assert batches.other_seconds - first <= 1.1 * TRIAL_SHARE * batches.asked_seconds + first


def test_a_filter_that_is_faster_than_finding_values_has_a_short_trial() -> None:
    ways = Batches(asking=0.01, finding=0.05).run(100, distinct=0.01, returned=1.0)
    assert ways.count(Way.EACH_NEW_VALUE) == 2  # the first call of Arrow does not count


def test_values_that_begin_to_repeat_are_noticed() -> None:
    batches = Batches(asking=5, finding=0.05)
    batches.run(50, distinct=1.0, returned=0.0)
    assert batches.run(200, distinct=0.1, returned=0.9)[-1] is Way.EACH_NEW_VALUE


def test_values_that_no_longer_repeat_are_noticed() -> None:
    batches = Batches(asking=5, finding=0.05)
    batches.run(50, distinct=0.1, returned=0.9)
    assert batches.run(20, distinct=1.0, returned=0.0)[-1] is Way.EACH_ROW


def test_small_batches_are_asked_for_each_row() -> None:
    ways = Batches(asking=50, finding=0.05).run(50, distinct=0.1, returned=0.9, rows=LEAST_ROWS - 1)
    assert set(ways) == {Way.EACH_ROW}


def test_a_slow_moment_does_not_end_a_trial() -> None:
    repeats = Repeats()
    repeats.note_asked(ROWS, 5e-6 * ROWS)
    for batch in range(20):
        assert repeats.choose(ROWS) is Way.EACH_NEW_VALUE
        seconds = 0.1 if batch in {0, 2, 10} else 5e-8 * ROWS
        repeats.note_values(rows=ROWS, values=ROWS // 10, finding=seconds, returned=ROWS // 10, looking_up=2e-5)
