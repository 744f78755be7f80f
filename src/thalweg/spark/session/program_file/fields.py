"""Checks the fields of a table in a program file: unknown fields, missing fields, and values of the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from reprlib import Repr
from typing import Any

from thalweg.output import Json
from thalweg.registry import hint
from thalweg.spark.session.program_file.positions import FieldPath
from thalweg.spark.session.program_file.program_text import Problem, ProgramFileError, ProgramText

SHORT = Repr()  # aliases of YAML make values of a few lines that would take terabytes if they were written out
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 3, 80, 80


@dataclass(frozen=True)
class ValueKind:
    """A type of values: what people call it, and how to tell."""

    noun: str
    holds: Callable[[object], bool]


@dataclass(frozen=True)
class Field:
    """A field that a table may have, with an example of what to write."""

    name: str
    kind: ValueKind
    example: Json
    is_required: bool = False


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_table_of_texts(value: object) -> bool:
    return _is_table(value) and all(_is_text(inner) for inner in value.values())  # type: ignore[attr-defined]


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _is_table_of_options(value: object) -> bool:
    return _is_table(value) and all(isinstance(inner, str | int | float) for inner in value.values())  # type: ignore[attr-defined]


TEXT = ValueKind("a text", _is_text)
NUMBER = ValueKind("a number", _is_number)
WHOLE_NUMBER = ValueKind("a whole number", lambda value: _is_number(value) and isinstance(value, int))
TRUE = ValueKind("true", lambda value: value is True)
TEXTS = ValueKind(
    "a list of texts", lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value))
)
TABLE = ValueKind("a table", _is_table)
TABLE_OF_TEXTS = ValueKind("a table of texts", _is_table_of_texts)
OPTIONS = ValueKind("a table of texts, numbers and truth values", _is_table_of_options)
TEXT_OR_TABLE = ValueKind("a text or a table", lambda value: _is_text(value) or _is_table(value))


@dataclass(frozen=True)
class Checker:
    """Collects the problems of a file, so that all of them can be told at once."""

    text: ProgramText
    problems: list[Problem] = field(default_factory=list)

    def note(self, path: FieldPath, message: str) -> None:
        """Note what is wrong with a field."""
        self.problems.append(self.text.problem(path, message))

    def table(self, path: FieldPath, values: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
        """The fields of a table that are as they should be."""
        known = {each.name: each for each in fields}
        for name in map(str, values):  # YAML has names that are no texts
            if name not in known:
                self.note(
                    (*path, name), f"there is no such field{hint(name, known)} Fields here are {', '.join(known)}"
                )
        good: dict[str, Any] = {}
        for name, each in known.items():
            if name not in values:
                if each.is_required:
                    self.note(path, f"{name} is missing: write {self.text.example(name, each.example)}")
            elif not each.kind.holds(values[name]):
                example = self.text.example(name, each.example)
                self.note((*path, name), f"{SHORT.repr(values[name])} is not {each.kind.noun}: write {example}")
            else:
                good[name] = values[name]
        return good

    def tables(self, path: FieldPath, tables: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, dict[str, Any]]:
        """Tables by their names, each with the same fields; those with problems are left out."""
        good: dict[str, dict[str, Any]] = {}
        for name, values in tables.items():
            before = len(self.problems)
            if TABLE.holds(values):
                good[name] = self.table((*path, name), values, fields)
            else:
                self.note((*path, name), f"{SHORT.repr(values)} is not a table: write its fields {_names(fields)}")
            if len(self.problems) > before:
                good.pop(name, None)
        return good

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect the problems that are raised, and go on."""
        try:
            yield
        except ProgramFileError as error:
            self.problems.extend(error.problems)

    def finish(self) -> None:
        """Raise all problems as one error, if there are any."""
        if self.problems:
            raise ProgramFileError(self.problems)


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(each.name for each in fields)
