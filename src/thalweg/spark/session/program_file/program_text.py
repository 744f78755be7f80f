"""The text of a program file, read as TOML or YAML, and errors that name its file, line and field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.output import Json
from thalweg.spark.session.program_file.positions import FieldPath, FieldPosition, field_name
from thalweg.spark.session.program_file.toml_positions import toml_positions
from thalweg.spark.session.program_file.yaml_positions import read_yaml
from thalweg.sql.errors import QueryError

ENDINGS = (".toml", ".yaml", ".yml")
NAMED_LINE = re.compile(r"\(at line (\d+)")  # as `tomllib` and `read_yaml` name the line of an error


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong at a line of a file; line 0 stands for the whole file."""

    line: int
    message: str


class ProgramFileError(ValueError):
    """A program file that cannot be run, with all problems that were found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.problems = tuple(sorted(problems))

    def __str__(self) -> str:
        return "\n".join(problem.message for problem in self.problems)


@dataclass(frozen=True, eq=False)
class ProgramText:
    """The values of a program file, and where they stand."""

    path: Path
    values: dict[str, Any]
    positions: dict[FieldPath, FieldPosition]

    @property
    def folder(self) -> Path:
        """The folder of the file, from which relative paths start."""
        return self.path.absolute().parent

    def problem(self, field: FieldPath, message: str) -> Problem:
        """What is wrong with a field. The line is that of the innermost table which the file has."""
        line = self._position(field).line
        place = f"{self.path}:{line}" if line else f"{self.path}"
        return Problem(line, f"{place}: {field_name(field)}: {message}" if field else f"{place}: {message}")

    def query_problem(self, field: FieldPath, error: QueryError) -> Problem:
        """What is wrong in the text of a query, at the line and column of the file if they are known."""
        start = self._position(field).text
        if start is None:
            return self.problem(field, str(error))
        place = start.in_file(error.position)
        _, _, shown = str(error).partition("\n")
        message = f"{field_name(field)}: {error.message}; {error.hint}\n{shown}"
        return Problem(place.line, f"{self.path}:{place.line}:{place.column}: {message}")

    def example(self, name: str, value: Json) -> str:
        """A field as it is written in this file.

        >>> ProgramText(Path("a.toml"), {}, {}).example("to", {"format": "json", "path": "out"})
        'to = {format = "json", path = "out"}'
        >>> ProgramText(Path("a.yaml"), {}, {}).example("to", {"format": "json", "path": "out"})
        'to: {format: "json", path: "out"}'
        """
        sign = " =" if self.path.suffix == ".toml" else ":"
        return f"{name}{sign} {_written(value, sign)}"

    def _position(self, field: FieldPath) -> FieldPosition:
        known = (self.positions[field[:size]] for size in range(len(field), 0, -1) if field[:size] in self.positions)
        return next(known, FieldPosition(0))


def read_program_text(path: Path) -> ProgramText:
    """Read a file, or raise a `ProgramFileError`."""
    if path.suffix not in ENDINGS:
        raise ProgramFileError([Problem(0, f"{path}: the name of a program file ends in {' or '.join(ENDINGS)}")])
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            values, positions = tomllib.loads(text), toml_positions(text)
        else:
            values, positions = read_yaml(text)
    except OSError as error:
        raise ProgramFileError([Problem(0, f"{path}: the file cannot be read: {error.strerror}")]) from None
    except RecursionError:
        raise ProgramFileError([Problem(0, f"{path}: lists within lists, or tables within tables, too deep")]) from None
    except ValueError as error:
        named = NAMED_LINE.search(str(error))
        line = int(named[1]) if named else 0
        raise ProgramFileError([Problem(line, f"{path}:{line}: {error}" if line else f"{path}: {error}")]) from None
    if not isinstance(values, dict):
        raise ProgramFileError([Problem(0, f"{path}: a program file has the sections streams and queries")])
    return ProgramText(path, values, positions)


def _written(value: Json, sign: str) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}{sign} {_written(inner, sign)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(inner, sign) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
