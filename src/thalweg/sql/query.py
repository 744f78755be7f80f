"""A continuous query as a value: what was asked, after parsing and before any plan. Knows neither Spark nor sqlglot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Source:
    """A stream or a static table that a session offers to its queries under a name."""

    name: str
    columns: tuple[str, ...]
    is_stream: bool = True


@dataclass(frozen=True)
class Position:
    """A place in the text of a query. Lines and columns count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Expression:
    """A Spark SQL expression, rendered from its parsed form.

    sql writes every column as `alias`.`column`. inputs are the aliases it reads, columns its (alias, column) pairs.
    """

    sql: str
    inputs: frozenset[str]
    columns: frozenset[tuple[str, str]]
    position: Position


@dataclass(frozen=True)
class QueryInput:
    """A source in the FROM clause, with the columns of it that the query reads anywhere."""

    alias: str
    source: str
    is_stream: bool
    columns: tuple[str, ...]


@dataclass(frozen=True)
class PredicateCall:
    """A call of a Python predicate that the session knows by name, on columns of one input."""

    predicate: str
    columns: tuple[str, ...]
    negated: bool


@dataclass(frozen=True)
class Selection:
    """A condition on one input: a part of the conjunction in WHERE or ON.

    shared_sql writes its columns without the alias, so that two queries which test the same thing of one source have
    the same text. call is there if the condition is a Python predicate; its kind is then "python".
    """

    alias: str
    expression: Expression
    shared_sql: str
    kind: Literal["equality", "range", "other", "python"]
    call: PredicateCall | None = None


@dataclass(frozen=True)
class EquiJoin:
    """An equality between an expression of one input and an expression of another."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Output:
    """A column of the result."""

    name: str
    expression: Expression
    is_aggregate: bool


@dataclass(frozen=True)
class RoundWindow:
    """WINDOW [length SLIDE slide], in microseconds of event time. Without SLIDE both are equal.

    Window number j, from 1, holds the rows with (j * slide - length) < time <= j * slide.
    """

    length: int
    slide: int


@dataclass(frozen=True)
class ContinuousQuery:
    """A query that runs once for each round of its window.

    text is what the user wrote; digest tells the query apart from every other query by its meaning, not by its layout:
    the same for two texts that differ in white space, comments or the case of keywords only.
    """

    text: str
    digest: str
    inputs: tuple[QueryInput, ...]
    outputs: tuple[Output, ...]
    selections: tuple[Selection, ...]
    equi_joins: tuple[EquiJoin, ...]
    residuals: tuple[Expression, ...]
    group_by: tuple[Expression, ...]
    having: Expression | None
    is_distinct: bool
    window: RoundWindow

    @property
    def is_aggregated(self) -> bool:
        """Whether results are groups of rows."""
        return bool(self.group_by) or self.having is not None or any(output.is_aggregate for output in self.outputs)
