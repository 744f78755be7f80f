from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.charts import equality_name
from thalweg_lab.experiments.om.flights import DELAY, HOUR, MINUTE, ArrivedRows, join_rounds, single_rounds
from thalweg_lab.experiments.om.queries import flights_and_weather

AIRPORTS = ("EWR", "JFK", "LGA")


def arrivals(rows: list[tuple[int, int, int]]) -> ArrivedRows:
    """Rows, each of an airport's number, a scheduled time and minutes that it is late."""
    airports, scheduled, late = (np.array(column) for column in zip(*rows, strict=True))
    return ArrivedRows(np.array(AIRPORTS)[airports], scheduled, scheduled + MINUTE * late)


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5 * HOUR), st.integers(-30, 400)), min_size=1, max_size=30)


@given(ROWS)
def test_a_row_is_in_time_until_a_row_ends_its_round(rows: list[tuple[int, int, int]]) -> None:
    drawn = arrivals(rows)
    latest = None
    for place in np.argsort(drawn.came, kind="stable"):
        end = drawn.rounds[place] * HOUR
        assert drawn.in_time[place] == (latest is None or latest - DELAY <= end)
        latest = max(drawn.scheduled[place], drawn.scheduled[place] if latest is None else latest)


@given(ROWS, st.integers(-10, 60))
def test_selectivities_are_shares_of_late_departures(rows: list[tuple[int, int, int]], minutes: int) -> None:
    numbers = sorted({-(-scheduled // HOUR) for _, scheduled, _ in rows})
    rounds = single_rounds(arrivals(rows), minutes)
    for number, observed in zip(numbers, rounds, strict=True):
        own = [late for _, scheduled, late in rows if -(-scheduled // HOUR) == number]
        assert observed.rates["departures"] == len(own)
        share = sum(late > minutes for late in own) / len(own)
        assert observed.selectivities["departures"] == pytest.approx(share)


@given(ROWS, ROWS, ROWS)
def test_join_selectivities_are_shares_of_pairs(
    departures: list[tuple[int, int, int]], landings: list[tuple[int, int, int]], weather: list[tuple[int, int, int]]
) -> None:
    streams = {"departures": departures, "landings": landings, "weather": weather}
    query = flights_and_weather()
    found = join_rounds({name: arrivals(rows) for name, rows in streams.items()}, query)

    def airports(name: str, number: int) -> list[int]:
        return [airport for airport, scheduled, _ in streams[name] if -(-scheduled // HOUR) == number]

    numbers = [number for number in range(1, 6) if all(airports(name, number) for name in streams)]
    assert len(found) == len(numbers)
    for number, observed in zip(numbers, found, strict=True):
        assert observed.rates == {name: len(airports(name, number)) for name in streams}
        assert len(observed.join_selectivities) == 3  # two that are written, and the one that follows
        for equality in query.equi_joins:
            (left,), (right,) = equality.left.inputs, equality.right.inputs
            pairs = list(product(airports(left, number), airports(right, number)))
            share = sum(left_airport == right_airport for left_airport, right_airport in pairs) / len(pairs)
            assert observed.join_selectivities[equality_name(equality)] == pytest.approx(share)
