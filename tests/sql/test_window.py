"""The window of a query: durations, slides, and words that look like a window but are not."""

import pytest

from thalweg.sql.errors import QueryError
from thalweg.sql.parse import parse_query
from thalweg.sql.query import ContinuousQuery, RoundWindow, Source

SECOND = 1_000_000
HOUR = 3600 * SECOND


def parse(text: str) -> ContinuousQuery:
    return parse_query(text, [Source("TCP", ("bytes", "body", "ts"))])


@pytest.mark.parametrize(
    ("written", "length", "slide"),
    [
        ("[1]", SECOND, SECOND),
        ("[ 10 seconds ]", 10 * SECOND, 10 * SECOND),
        ("[1.5 minutes]", 90 * SECOND, 90 * SECOND),
        ("[500 ms]", SECOND // 2, SECOND // 2),
        ("[1 microsecond]", 1, 1),
        ("[7 us]", 7, 7),
        ("[1 h SLIDE 10 min]", HOUR, 600 * SECOND),
        ("[2 Weeks]", 14 * 24 * HOUR, 14 * 24 * HOUR),
        ("[1 hour SLIDE 10 minutes]", HOUR, 600 * SECOND),
        ("[1 day slide 1 day]", 24 * HOUR, 24 * HOUR),
        ("[10 SLIDE 3]", 10 * SECOND, 3 * SECOND),  # the length is no multiple of the slide
    ],
)
def test_durations(written: str, length: int, slide: int) -> None:
    for ending in ("", ";", " -- WINDOW [9]", " /* WINDOW [9] */ ;"):
        assert parse("SELECT bytes FROM TCP window" + written + ending).window == RoundWindow(length, slide)  # noqa: S608


def test_a_text_or_a_comment_with_the_word_is_no_window() -> None:
    text = "SELECT bytes FROM TCP WHERE body['WINDOW [5]'] = \"WINDOW [6]\" /* WINDOW [7] */ WINDOW [1] -- WINDOW [8]"
    query = parse(text)
    assert query.window.length == SECOND
    assert query.selections[0].shared_sql == "`body`['WINDOW [5]'] = 'WINDOW [6]'"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("SELECT bytes FROM TCP", 19, "the query has no window"),
        ("SELECT bytes FROM TCP -- WINDOW [1]", 19, "the query has no window"),
        ("SELECT bytes FROM TCP WINDOW w AS (ORDER BY ts)", 23, "the window has no duration in square brackets"),
        ("SELECT bytes FROM TCP WINDOW w AS (ORDER BY ts) WINDOW [1]", 23, "a named window is not supported"),
        ("SELECT bytes FROM TCP WINDOW [1] WHERE bytes > 1", 34, "the window is not at the end of the query"),
        ("SELECT bytes FROM TCP WINDOW [1", 23, "the window has no ]"),
        ("SELECT bytes FROM TCP WINDOW []", 30, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [ten seconds]", 31, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [10s]", 31, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [500ms]", 31, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [-1 second]", 31, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [1 month]", 31, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [1 SLIDE]", 33, "this is no duration"),
        ("SELECT bytes FROM TCP WINDOW [0]", 31, "a window is a positive number of whole microseconds"),
        ("SELECT bytes FROM TCP WINDOW [0.5 us]", 31, "a window is a positive number of whole microseconds"),
        ("SELECT bytes FROM TCP WINDOW [1 SLIDE 2]", 33, "the window slides by more than its length"),
        ("WINDOW [1]", 1, "the query is empty before its window"),
        ("", 1, "the query is empty"),
        (" ; ", 1, "the query is empty"),
    ],
)
def test_windows_that_are_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)
    assert (caught.value.line, caught.value.column) == (1, column)
