"""Finds the line of every field of a TOML file: `tomllib` reads the values, but does not say where they stand.

The text has been read by `tomllib` before, so that it is known to be TOML, and nothing is checked here.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter

from thalweg.spark.session.program_file.positions import FieldPath, FieldPosition, TextStart

KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
BLANK = re.compile(r"[ \t]*")
BLANK_LINES = re.compile(r"(?:[ \t\n]|#[^\n]*)*")  # with comments
STRING = re.compile(
    r'''
    """ (?: [^\\] | \\. )*? "{3,5}  # several lines; up to two quotes may stand before the last three
    | \'{3} .*? \'{3,5}
    | " (?: [^"\\\n] | \\. )* "
    | \' [^'\n]* \'
    ''',
    re.DOTALL | re.VERBOSE,
)
OTHER_VALUE = re.compile(r"[^,\]}#\n]*")  # a number, a truth value, a date
TRIPLE = ('"""', "'''")


def toml_positions(text: str) -> dict[FieldPath, FieldPosition]:
    """The position of every table, key and element of a list.

    >>> lines = ['checkpoint = "c"', "", "[streams.TCP]", "select = [", '  "a",', '  "b",', "]", 'to.format = "json"']
    >>> for field, position in toml_positions(chr(10).join(lines)).items():
    ...     print(position.line, field)
    1 ('checkpoint',)
    3 ('streams',)
    3 ('streams', 'TCP')
    4 ('streams', 'TCP', 'select')
    5 ('streams', 'TCP', 'select', 0)
    6 ('streams', 'TCP', 'select', 1)
    8 ('streams', 'TCP', 'to')
    8 ('streams', 'TCP', 'to', 'format')
    """
    scanner = _TomlScanner(text)
    scanner.document()
    return scanner.found


class _TomlScanner:
    """Goes through a TOML text once, from the start to the end."""

    def __init__(self, text: str) -> None:
        self.found: dict[FieldPath, FieldPosition] = {}
        self._text = text
        self._at = 0
        self._tables: Counter[FieldPath] = Counter()  # of each list of tables, those that have begun

    def document(self) -> None:
        table: FieldPath = ()
        self._skip(BLANK_LINES)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(BLANK_LINES)

    def _header(self) -> FieldPath:
        """A line such as `[streams.TCP]`, or `[[list]]` for the next table of a list."""
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        table = self._key(())
        self._at += brackets
        if brackets == 1:
            return table
        element = (*table, self._tables[table])
        self._tables[table] += 1
        self.found[element] = FieldPosition(line)
        return element

    def _pair(self, table: FieldPath) -> None:
        field = self._key(table)
        self._at += 1  # the sign =
        self._skip(BLANK)
        self._value(field)

    def _key(self, table: FieldPath) -> FieldPath:
        """A key, which may have dots: each of its parts is a field, noted where it is first named."""
        line, field = self._line(), table
        while True:
            self._skip(BLANK)
            field = (*field, _unquoted(self._skip(KEY)))
            self.found.setdefault(field, FieldPosition(line))
            self._skip(BLANK)
            if self._text[self._at] != ".":
                return field
            self._at += 1

    def _value(self, field: FieldPath) -> None:
        opening = self._text[self._at]
        if opening in "\"'":
            self.found[field] = FieldPosition(self.found[field].line, self._string())
        elif opening == "[":
            self._elements(field)
        elif opening == "{":
            self._inline_table(field)
        else:
            self._skip(OTHER_VALUE)

    def _elements(self, field: FieldPath) -> None:
        self._at += 1
        for number in itertools.count():
            self._skip_separators()
            if self._text[self._at] == "]":
                break
            self.found[*field, number] = FieldPosition(self._line())
            self._value((*field, number))
        self._at += 1

    def _inline_table(self, field: FieldPath) -> None:
        self._at += 1
        self._skip_separators()
        while self._text[self._at] != "}":
            self._pair(field)
            self._skip_separators()
        self._at += 1

    def _string(self) -> TextStart | None:
        """A string; returns where its content begins, if the file has the same letters as the content."""
        line, start = self._line(), self._at
        string = self._skip(STRING)
        if string.startswith('"') and "\\" in string:
            return None
        quotes = 3 if string.startswith(TRIPLE) else 1
        if string[quotes:].startswith("\n"):  # which is not part of the content
            return TextStart(line + 1, 0)
        return TextStart(line, start + quotes - (self._text.rfind("\n", 0, start) + 1))

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None  # noqa: S101 - the text is TOML
        self._at = match.end()
        return match[0]

    def _skip_separators(self) -> None:
        """Blanks, comments and commas between elements."""
        self._skip(BLANK_LINES)
        while self._text[self._at] == ",":
            self._at += 1
            self._skip(BLANK_LINES)

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1


def _unquoted(key: str) -> str:
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key
