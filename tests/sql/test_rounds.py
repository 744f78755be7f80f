from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.sql.query import RoundWindow
from thalweg.sql.rounds import bounds, first_round, first_unseen, last_ended, last_round

TIMES = st.integers(-200, 200)


@st.composite
def windows(draw: st.DrawFn) -> RoundWindow:
    slide = draw(st.integers(1, 30))
    return RoundWindow(draw(st.integers(slide, 60)), slide)


def all_rounds(window: RoundWindow) -> range:
    """More rounds than any time of a test is in."""
    return range(-300 // window.slide - 2, 300 // window.slide + 2)


def test_the_rounds_of_section_3_1() -> None:
    """With a window of 20 seconds, the rounds are (0, 20], (20, 40] and so on."""
    window = RoundWindow(20, 20)
    assert [bounds(number, window) for number in (1, 2, 3)] == [(0, 20), (20, 40), (40, 60)]
    assert [first_round(time, window) for time in (0, 1, 20, 21, 40)] == [0, 1, 1, 2, 2]
    assert all(first_round(time, window) == last_round(time, window) for time in range(-50, 50))


@given(window=windows(), time=TIMES)
def test_a_time_is_in_the_rounds_from_the_first_to_the_last(window: RoundWindow, time: int) -> None:
    holding = [
        number for number in all_rounds(window) if number * window.slide - window.length < time <= number * window.slide
    ]
    assert holding == list(range(first_round(time, window), last_round(time, window) + 1))


@given(window=windows(), watermark=TIMES)
def test_the_last_round_that_ended_ends_before_the_watermark(window: RoundWindow, watermark: int) -> None:
    ended = [number for number in all_rounds(window) if bounds(number, window)[1] < watermark]
    assert last_ended(watermark, window) == max(ended)


@given(window=windows(), latest=TIMES)
def test_no_time_up_to_the_latest_is_in_an_unseen_round(window: RoundWindow, latest: int) -> None:
    first = first_unseen(latest, window)
    assert all(last_round(time, window) < first for time in range(latest - 100, latest + 1))
    assert bounds(first - 1, window)[0] < latest  # the round before may hold a row that has come
