"""Where the fields of a file stand, so that an error can name the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from thalweg.sql.query import Position

FieldPath: TypeAlias = tuple[str | int, ...]  # names from the outermost table inwards; numbers in lists


@dataclass(frozen=True)
class TextStart:
    """Where the content of a text begins in the file, if it stands there letter by letter.

    `first_indent` is the number of characters before the content in its first line, `indent` in the lines after it.
    """

    line: int
    first_indent: int
    indent: int = 0

    def in_file(self, position: Position) -> Position:
        """The place in the file of a place in the text.

        >>> TextStart(line=7, first_indent=8).in_file(Position(1, 3))
        Position(line=7, column=11)
        >>> TextStart(line=7, first_indent=8).in_file(Position(2, 3))
        Position(line=8, column=3)
        """
        indent = self.first_indent if position.line == 1 else self.indent
        return Position(self.line + position.line - 1, position.column + indent)


@dataclass(frozen=True)
class FieldPosition:
    """The line of a field, from 1, and where its value begins, if that is a text."""

    line: int
    text: TextStart | None = None


def field_name(field: FieldPath) -> str:
    """A field as people write it.

    >>> field_name(("streams", "TCP", "select", 0))
    'streams.TCP.select[0]'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in field)
    return "".join(parts).removeprefix(".")
