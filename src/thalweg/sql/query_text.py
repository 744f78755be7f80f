"""The text of a query with its tokens: finds positions, makes errors, and has sqlglot parse the statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.expressions import Expr

from thalweg.sql.dialect import VerbatimSpark, put_interval_sums_in_parentheses
from thalweg.sql.errors import QueryError
from thalweg.sql.query import Position

EXAMPLE = "SELECT a.x, b.y FROM a, b WHERE a.k = b.k AND a.x > 5 WINDOW [10 seconds]"
_OPENING = ("'", '"', "`", "/*")


@dataclass(frozen=True)
class QueryText:
    """A query text and its tokens, or only the tokens before its window.

    >>> text = QueryText.of("SELECT x FROM s")
    >>> text.position(text.tokens[1])
    Position(line=1, column=8)
    """

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, text: str) -> QueryText:
        """Split a text into tokens, or say which quote or comment is not closed."""
        try:
            without_comments = _blank_comments(text, VerbatimSpark().tokenize(text))
            return cls(text, tuple(VerbatimSpark().tokenize(without_comments)))
        except TokenError:
            position = _position(text, _last_opening(text))
            hint = "close it with the quotation mark, backtick or */ that ends it"
            raise QueryError("this text, name or comment does not end", text, position, hint) from None

    def position(self, place: Expr | Token) -> Position:
        """The position of a token, or of the leftmost known token of an expression or of the expression around it."""
        if isinstance(place, Token):
            return _position(self.text, place.start)
        starts = [node.meta["start"] for node in place.walk() if "start" in node.meta]
        if not starts and place.parent is not None:
            return self.position(place.parent)
        return _position(self.text, min(starts, default=0))

    def error(self, message: str, place: Expr | Token, hint: str) -> QueryError:
        """The error for a place of the text."""
        return QueryError(message, self.text, self.position(place), hint)

    def last_token(self, *kinds: TokenType) -> Token:
        """The last token of any of these kinds, or the first token of the text if there is none."""
        return next((token for token in reversed(self.tokens) if token.token_type in kinds), self.tokens[0])

    def parse(self) -> Expr:
        """The statement that the tokens make."""
        for token in self.tokens:
            if token.token_type == TokenType.SEMICOLON:
                raise self.error("a query is one statement", token, "add a query for each statement")
        parser = VerbatimSpark().parser(error_level=ErrorLevel.IMMEDIATE)
        try:
            statement = next(filter(None, parser.parse(list(self.tokens), self.text)), None)
        except ParseError as error:
            raise self._syntax_error(error) from None
        except RecursionError:
            message = "the query is nested too deeply"
            raise self.error(message, self.tokens[0], "write it with fewer parentheses within parentheses") from None
        if statement is None:  # sqlglot takes some words, like ELSE, for the end of a statement without content
            raise self.error("the query does not parse", self.tokens[0], f"write it like {EXAMPLE}")
        put_interval_sums_in_parentheses(statement)
        return statement

    def _syntax_error(self, error: ParseError) -> QueryError:
        details = error.errors[0] if error.errors else {}
        found = details.get("highlight") or ""
        last_line = found.rpartition("\n")[2]
        position = Position(details.get("line") or 1, max(1, (details.get("col") or 1) - len(last_line) + 1))
        message = f"the query does not parse near {found!r}" if found else "the query does not parse"
        return QueryError(message, self.text, position, f"write it like {EXAMPLE}")


def _position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _blank_comments(text: str, tokens: Sequence[Token]) -> str:
    """The text without its comments: sqlglot reads GROUP BY as a single token, but not with a comment inside."""
    characters = ["\n" if character == "\n" else " " for character in text]
    for token in tokens:
        characters[token.start : token.end + 1] = text[token.start : token.end + 1]
    return "".join(characters)


def _last_opening(text: str) -> int:
    """The start of the quote or comment that is not closed: the last start before which all tokens are whole."""
    for offset in reversed(range(len(text))):
        is_doubled = offset > 0 and text[offset] == text[offset - 1]  # a quote within quotes
        if text.startswith(_OPENING, offset) and not is_doubled:
            try:
                VerbatimSpark().tokenize(text[:offset])
            except TokenError:
                continue
            return offset
    return 0
