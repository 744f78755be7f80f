from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.session.endings import (
    last_missed,
    last_to_deliver,
    late_rows,
    rounds_with_rows,
    rows_in_rounds,
    watermark,
)
from thalweg.spark.session.panes import Pane
from thalweg.spark.session.program import ProgramQuery
from thalweg.sql.parse import parse_query
from thalweg.sql.query import RoundWindow, Source

SECOND = 1_000_000
SOURCES = [Source("A", ("k", "x")), Source("B", ("k", "y")), Source("T", ("k",), is_stream=False)]


def query_of(text: str) -> ProgramQuery:
    query = parse_query(text, SOURCES)
    nothing: dict[str, tuple[()]] = {each.alias: () for each in query.inputs}
    return ProgramQuery("token", query, nothing, nothing)


def over(window: RoundWindow) -> ProgramQuery:
    bounds = f"[{window.length} us SLIDE {window.slide} us]"
    return query_of(f"SELECT x FROM A WINDOW {bounds}")  # noqa: S608 - the test writes it


SINGLE = query_of("SELECT x FROM A WINDOW [10 SLIDE 5]")
JOINED = query_of("SELECT A.x FROM A, B, T WHERE A.k = B.k AND B.k = T.k WINDOW [10]")


def test_the_watermark_is_that_of_the_slowest_stream() -> None:
    delays = {"A": 3, "B": 0}
    assert watermark(JOINED, {"A": 20, "B": 18}, delays) == 17
    assert watermark(JOINED, {"A": 20, "B": 16}, delays) == 16
    assert watermark(SINGLE, {"A": 20, "B": 16}, delays) == 17


def test_no_round_ends_while_a_stream_has_no_rows() -> None:
    assert watermark(JOINED, {"A": 20}, {"A": 0, "B": 0}) is None
    assert last_to_deliver(JOINED, {"A": 20}, {"A": 0, "B": 0}) is None


def test_a_round_ends_when_the_watermark_has_passed_its_end() -> None:
    ends = [last_to_deliver(SINGLE, {"A": time * SECOND}, {"A": 2 * SECOND}) for time in (7, 8, 12, 13)]
    assert ends == [0, 1, 1, 2]


@st.composite
def row_times(draw: st.DrawFn) -> tuple[RoundWindow, int, list[int]]:
    """A window, the width of panes, and the times of rows."""
    width = draw(st.integers(1, 4))
    slide = width * draw(st.integers(1, 4))
    length = slide + width * draw(st.integers(0, 8))
    return RoundWindow(length, slide), width, draw(st.lists(st.integers(-40, 40), max_size=10))


def panes_of(times: list[int], width: int) -> dict[int, Pane]:
    return {
        end: Pane(width, sum(-(-time // width) * width == end for time in times), {"all": 0})
        for end in {-(-time // width) * width for time in times}
    }


@given(rows=row_times(), delivered=st.none() | st.integers(-5, 5), last=st.integers(-3, 12))
def test_rounds_with_rows_are_those_that_hold_a_row(
    rows: tuple[RoundWindow, int, list[int]], delivered: int | None, last: int
) -> None:
    window, width, times = rows
    query = over(window)
    candidates = range(-100 if delivered is None else delivered + 1, last + 1)
    held = [
        number
        for number in candidates
        if any(number * window.slide - window.length < time <= number * window.slide for time in times)
    ]
    panes = panes_of(times, width)
    assert list(rounds_with_rows(query, {"A": panes}, delivered, last)) == held
    counted = rows_in_rounds(panes, window, "all")
    for number in held:
        bounds = number * window.slide - window.length, number * window.slide
        assert counted[number] == (sum(bounds[0] < time <= bounds[1] for time in times), 0)


@given(rows=row_times(), delivered=st.integers(-5, 5))
def test_a_row_is_late_when_a_round_of_its_own_was_delivered(
    rows: tuple[RoundWindow, int, list[int]], delivered: int
) -> None:
    window, width, times = rows
    query = over(window)
    late = [time for time in times if -(-time // window.slide) <= delivered]
    assert late_rows(query, {"A": panes_of(times, width)}, delivered) == len(late)
    assert late_rows(query, {"A": panes_of(times, width)}, None) == 0


def test_no_row_is_late_for_a_round_that_has_not_ended() -> None:
    query = over(RoundWindow(10, 10))
    assert [last_missed(query, 3, {"A": time}, {"A": 2}) for time in (32, 33, 50)] == [2, 3, 3]
    assert last_missed(query, None, {"A": 50}, {"A": 2}) is None
    assert last_missed(query, 3, {}, {"A": 2}) is None


def test_a_stream_that_is_read_twice_is_late_once() -> None:
    query = query_of("SELECT p.x FROM A AS p, A AS q WHERE p.k = q.k WINDOW [10 us]")
    assert late_rows(query, {"A": panes_of([5], 10)}, 1) == 1


def test_panes_that_are_wider_than_a_new_query_needs_are_not_its_own() -> None:
    """They hold rows that came before it."""
    query = query_of("SELECT x FROM A WINDOW [5 us]")
    panes = {"A": {20: Pane(20, 7), 25: Pane(5, 1)}}
    assert rounds_with_rows(query, panes, None, 10) == (5,)
