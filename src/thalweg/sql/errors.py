"""The error for a query text that cannot be run: where it is wrong, and what to write instead."""

from __future__ import annotations

from thalweg.sql.query import Position


class QueryError(ValueError):
    """A query text that is wrong at a position.

    >>> print(QueryError("there is no column 'amout'", "SELECT amout FROM sales", Position(1, 8), "write amount"))
    there is no column 'amout' (line 1, column 8); write amount
      SELECT amout FROM sales
             ^
    """

    def __init__(self, message: str, text: str, position: Position, hint: str) -> None:
        super().__init__(message, text, position, hint)  # all arguments, so that copies and pickles of the error work
        self.message = message
        self.text = text
        self.position = position
        self.hint = hint

    @property
    def line(self) -> int:
        """The line of the text, from 1."""
        return self.position.line

    @property
    def column(self) -> int:
        """The column in the line, from 1."""
        return self.position.column

    def __str__(self) -> str:
        line = (self.text.split("\n") or [""])[self.line - 1]
        indent = "".join(character if character == "\t" else " " for character in line[: self.column - 1])
        place = f"(line {self.line}, column {self.column})"
        return f"{self.message} {place}; {self.hint}\n  {line}\n  {indent}^"
