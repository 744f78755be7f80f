"""Takes a condition apart at its outermost AND, OR or NOT, as a user writes it: SQL text, or a Column.

In a classic session Catalyst analyses a condition as a whole, once; its parts are found in the tree, and know their
columns by identity, but for those of a stream, whose micro-batches have columns of their own. With Spark Connect the
tree is at the server, and the client's own expressions are taken apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thalweg.spark.analysis.catalyst import AnalysedCondition
from thalweg.spark.filters.split.logic import Connective
from thalweg.spark.filters.split.names import client_sql, sql_name
from thalweg.spark.filters.split.text import take_text_apart
from thalweg.spark.jvm import active_jvm, java_class
from thalweg.spark.operators import expression, negation

if TYPE_CHECKING:
    from pyspark.sql import Column

CONNECTIVES: dict[str, Connective] = {"and": "and", "or": "or", "!": "not", "not": "not"}
KINDS: dict[Connective, str] = {"and": "And", "or": "Or", "not": "Not"}  # of Catalyst's expressions


class NoColumnError(Exception):
    """There is no Column of a part of a Column in this version of Spark."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A condition, or a part of a condition."""

    written: str | Column | None  # None for a part of a Column, of which the analysis alone knows
    analysed: AnalysedCondition | None  # None with Spark Connect
    by_name: bool = False  # whether its parts have to know their columns by name

    @property
    def text(self) -> str:
        """The SQL text."""
        if isinstance(self.written, str):
            return self.written
        if self.analysed is not None:
            return sql_name(self.analysed.sql)
        client: Any = self.written  # a Column of Connect, of which the public types say nothing
        return client_sql(client._expr)  # noqa: SLF001 - no public way

    @property
    def truth_text(self) -> str | None:
        """A condition that was written as text, with the cast by which analysis makes a truth value of it, if any."""
        if not isinstance(self.written, str):
            return None
        is_cast = self.analysed is not None and self.analysed.tree.kind == "Cast"
        return f"cast({self.written} AS boolean)" if is_cast else self.written

    def column(self, *, negated: bool = False) -> Column:
        """The condition, or its negation, as a Column."""
        if self.analysed is not None and not self.by_name and self.analysed.reads_own_columns:
            found = self.analysed.column
            if found is not None:
                return negation(found) if negated else found  # Spark need not analyse it again
        if isinstance(self.written, str):
            return expression(f"NOT ({self.truth_text})" if negated else str(self.truth_text))
        if self.written is None:
            raise NoColumnError
        return negation(self.written) if negated else self.written


def take_apart(piece: Piece) -> tuple[Connective, list[Piece]] | None:
    """The outermost connective of a condition and its operands; None if it has none."""
    if isinstance(piece.written, str):
        found = take_text_apart(piece.written)
        if found is None:
            return None
        connective, texts = found
        parts = _operands(piece.analysed, connective, len(texts))
        if parts is None:
            return None
        return connective, [Piece(*pair, by_name=piece.by_name) for pair in zip(texts, parts, strict=True)]
    if piece.analysed is None:
        return _of_client(piece.written)
    return _of_column(piece, piece.analysed) if piece.by_name else _of_catalyst(piece.analysed)


def _of_catalyst(condition: AnalysedCondition) -> tuple[Connective, list[Piece]] | None:
    """The operands in Catalyst's tree."""
    connective = next((name for name, kind in KINDS.items() if kind == condition.tree.kind), None)
    if connective is None or not condition.stands_alone:
        return None
    return connective, [Piece(None, part) for part in condition.parts]


def _of_column(piece: Piece, analysed: AnalysedCondition) -> tuple[Connective, list[Piece]] | None:
    """The operands of the expression that PySpark holds; None where a version of Spark holds other objects."""
    from py4j.protocol import Py4JError
    from pyspark.sql.classic.column import Column

    written: Any = piece.written
    try:
        node = written._jc.node()  # noqa: SLF001 - no public way
        kind = node.getClass().getSimpleName()
        if kind == "SqlExpression":
            return take_apart(Piece(node.expression(), analysed, by_name=True))
        if kind == "ExpressionColumnNode":  # of a plan that Spark has analysed: it knows columns by identity anyway
            return _of_catalyst(analysed)
        connective = CONNECTIVES.get(node.functionName()) if kind == "UnresolvedFunction" else None
        if connective is None or analysed.tree.kind != KINDS[connective]:
            return None
        make, arguments = java_class(active_jvm(), "org.apache.spark.sql.Column"), node.arguments()
        columns = [Column(make(arguments.apply(place))) for place in range(arguments.size())]
    except (Py4JError, TypeError):
        return None
    return connective, [Piece(*pair, by_name=True) for pair in zip(columns, analysed.parts, strict=True)]


def _operands(
    condition: AnalysedCondition | None, connective: Connective, count: int
) -> Sequence[AnalysedCondition | None] | None:
    """The operands in the tree of a text that has so many; None if the tree has another form."""
    if condition is None:
        return [None] * count
    if count == 1 and connective != "not":
        return [condition]
    if condition.tree.kind != KINDS[connective]:
        return None
    if connective == "not":
        return condition.parts
    # Spark's parser makes a balanced tree of a long conjunction.
    left, right = condition.parts
    first = _operands(left, connective, (count + 1) // 2)
    second = _operands(right, connective, count // 2)
    return None if first is None or second is None else [*first, *second]


def _of_client(column: Any) -> tuple[Connective, list[Piece]] | None:  # noqa: ANN401 - a Column of Connect
    from pyspark.sql.connect import expressions as client
    from pyspark.sql.connect.column import Column

    found = getattr(column, "_expr", None)
    if isinstance(found, client.SQLExpression):
        return take_apart(Piece(found._expr, None))  # noqa: SLF001 - no public way
    if not isinstance(found, client.UnresolvedFunction):
        return None
    connective = CONNECTIVES.get(found._name)  # noqa: SLF001 - as above
    if connective is None:
        return None
    return connective, [Piece(Column(argument), None) for argument in found._args]  # noqa: SLF001 - as above
