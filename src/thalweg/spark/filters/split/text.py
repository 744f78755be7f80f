"""Takes a condition in Spark SQL apart at its outermost AND, OR or NOT; the operands keep their text as written.

Only the tokens are read, by sqlglot's tokenizer: an operand is cut out of the text and never written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import Token, TokenType, tokenize
from sqlglot.errors import SqlglotError

from thalweg.spark.filters.split.logic import Connective

OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
MOST_TEXTS = 1000  # whose operands are remembered
CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}


@lru_cache(MOST_TEXTS)
def take_text_apart(text: str) -> tuple[Connective, tuple[str, ...]] | None:
    """The outermost connective of a condition and its operands; None if it has none, or cannot be read.

    >>> take_text_apart("a BETWEEN 1 AND 5 AND (b = 'x and y' OR c)")
    ('and', ('a BETWEEN 1 AND 5', "(b = 'x and y' OR c)"))
    >>> take_text_apart("(NOT (a OR b))")
    ('not', ('(a OR b)',))
    """
    try:
        tokens = tokenize(text, dialect="spark")
    except SqlglotError:
        return None
    depths = _depths(tokens)
    while len(tokens) > 1 and tokens[0].token_type is TokenType.L_PAREN and 0 not in depths[1:-1] and depths[-1] == 1:
        tokens, depths = tokens[1:-1], [depth - 1 for depth in depths[1:-1]]
    if not tokens or tokens[0].token_type in {TokenType.SELECT, TokenType.WITH}:  # a subquery, which is a value
        return None
    ands = _conjunctions(tokens, depths)
    ors = [
        place
        for place, token in enumerate(tokens)
        if token.token_type is TokenType.OR and not depths[place] and token.text.upper() == "OR"
    ]
    if ors or ands:
        operands = _between(text, tokens, ors or ands)
        return None if operands is None else ("or" if ors else "and", tuple(operands))
    if tokens[0].token_type is TokenType.NOT and len(tokens) > 1:
        return "not", (text[tokens[1].start : tokens[-1].end + 1],)
    return None


def _depths(tokens: Sequence[Token]) -> list[int]:
    """For each token, how many parentheses, brackets and CASEs it stands in; an opening and a closing token within."""
    depths, depth = [], 0
    for token in tokens:
        if token.token_type in OPENING:
            depth += 1
        depths.append(depth)
        if token.token_type in CLOSING:
            depth -= 1
    return depths


def _conjunctions(tokens: Sequence[Token], depths: Sequence[int]) -> list[int]:
    """The places of the outermost ANDs; the AND of a BETWEEN is none."""
    found, betweens = [], 0
    for place, token in enumerate(tokens):
        if depths[place]:
            continue
        if token.token_type is TokenType.BETWEEN:
            betweens += 1
        elif token.token_type is TokenType.AND and token.text.upper() == "AND":
            if betweens:
                betweens -= 1
            else:
                found.append(place)
    return found


def _between(text: str, tokens: Sequence[Token], cuts: Sequence[int]) -> list[str] | None:
    """The text between some tokens; None if there is none somewhere."""
    starts, stops = [0, *(cut + 1 for cut in cuts)], [*cuts, len(tokens)]
    if any(start >= stop for start, stop in zip(starts, stops, strict=True)):
        return None
    return [text[tokens[start].start : tokens[stop - 1].end + 1] for start, stop in zip(starts, stops, strict=True)]
