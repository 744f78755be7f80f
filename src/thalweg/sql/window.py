"""The window at the end of a query, `WINDOW [length SLIDE slide]`: read from tokens, because it is not Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import Token, TokenType

from thalweg.durations import UNITS, microseconds_in
from thalweg.sql.query import RoundWindow
from thalweg.sql.query_text import EXAMPLE, QueryText

_NUMBER = re.compile(r"(\d{1,18}(\.\d{0,18})?|\.\d{1,18})([eE][+-]?\d)?")
_EXAMPLES = "[10 seconds], [500 ms] or [1 hour SLIDE 10 minutes]"
_END = f"end the query with its window, such as WINDOW {_EXAMPLES}"


def split_window(text: QueryText) -> tuple[QueryText, RoundWindow]:
    """The text with the tokens before the window, and the window.

    >>> statement, window = split_window(QueryText.of("SELECT x FROM s WINDOW [1.5 minutes SLIDE 500 ms]"))
    >>> len(statement.tokens), window
    (4, RoundWindow(length=90000000, slide=500000))
    """
    tokens = list(text.tokens)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise text.error("the query is empty", Token.string(""), _END)
    start = _window_start(text, tokens)
    end = next((i for i in range(start, len(tokens)) if tokens[i].token_type == TokenType.R_BRACKET), None)
    if end is None:
        raise text.error("the window has no ]", tokens[start], f"write it like WINDOW {_EXAMPLES}")
    if end < len(tokens) - 1:
        raise text.error("the window is not at the end of the query", tokens[end + 1], _END)
    if start == 0:
        raise text.error("the query is empty before its window", tokens[0], f"write it like {EXAMPLE}")
    window = _read_window(text, tokens[start + 2 : end], tokens[start + 1])
    return replace(text, tokens=tuple(tokens[:start])), window


def _window_start(text: QueryText, tokens: Sequence[Token]) -> int:
    windows = [index for index, token in enumerate(tokens) if token.token_type == TokenType.WINDOW]
    bracketed = [i for i in windows if i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_BRACKET]
    if bracketed:
        return bracketed[-1]
    if windows:
        raise text.error("the window has no duration in square brackets", tokens[windows[-1]], _END)
    raise text.error("the query has no window", tokens[-1], _END)


def _read_window(text: QueryText, tokens: Sequence[Token], bracket: Token) -> RoundWindow:
    slides = [index for index, token in enumerate(tokens) if token.text.upper() == "SLIDE"]
    if not slides:
        length = _read_duration(text, tokens, bracket)
        return RoundWindow(length, length)
    length = _read_duration(text, tokens[: slides[0]], bracket)
    slide_token = tokens[slides[0]]
    slide = _read_duration(text, tokens[slides[0] + 1 :], slide_token)
    if slide > length:
        message = "the window slides by more than its length, so that rows between two windows would be in none"
        raise text.error(message, slide_token, "write a slide that is at most as long as the window")
    return RoundWindow(length, slide)


def _read_duration(text: QueryText, tokens: Sequence[Token], before: Token) -> int:
    """A number and a unit in microseconds; a number alone counts seconds."""
    place = tokens[0] if tokens else before
    has_number = bool(tokens) and tokens[0].token_type == TokenType.NUMBER
    unit = " ".join(token.text.lower() for token in tokens[1:]) or "second"
    microseconds = microseconds_in(unit)
    if not has_number or microseconds is None:
        units = ", ".join(UNITS)
        hint = f"write a number, a space and a unit, such as WINDOW {_EXAMPLES}; units are {units}"
        raise text.error("this is no duration", place, hint)
    number = tokens[0].text
    if not _NUMBER.fullmatch(number):
        raise text.error("this is no number of a duration, or too long", place, f"write {_EXAMPLES}")
    duration = Decimal(number) * microseconds
    if duration <= 0 or duration != int(duration):
        raise text.error("a window is a positive number of whole microseconds", place, f"write {_EXAMPLES}")
    return int(duration)
