"""The sizes of rows by the types of their columns, as Spark's optimizer assumes them: what projections save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thalweg.sql.query import QueryInput

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

ROW = 8  # bytes of a row beside its columns (Spark's EstimationUtils)
LONG_DECIMAL = 18  # digits that fit into 8 bytes
# Bytes of a value (`defaultSize` of Spark's types); 20 for texts and unknown types, 100 for bytes.
VALUES = {
    **dict.fromkeys(("boolean", "byte", "void"), 1),
    "short": 2,
    **dict.fromkeys(("integer", "float", "date"), 4),
    **dict.fromkeys(("long", "double", "timestamp", "timestamp_ntz"), 8),
    "binary": 100,
}
TEXT = 20
UNREAD = ""  # all columns together that a query does not read: streams may have hundreds of columns


@dataclass(frozen=True)
class InputSizes:
    """The sizes of the rows of a query's inputs, as a cost model takes them, all by alias."""

    rows: Mapping[str, float] = field(default_factory=dict)  # of a row, in mean rows of all inputs
    columns: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # the share of a row that each takes


def default_size(kind: DataType) -> int:
    """The bytes of a value of a type, as Spark assumes them where it has no statistics.

    >>> from pyspark.sql.types import ArrayType, DecimalType, LongType, StringType, StructType
    >>> default_size(LongType()), default_size(StringType()), default_size(DecimalType(38, 2))
    (8, 20, 16)
    >>> default_size(ArrayType(StructType().add("a", "integer").add("b", "string")))
    24
    """
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(kind, StructType):
        return sum(default_size(column.dataType) for column in kind.fields)
    if isinstance(kind, ArrayType):
        return default_size(kind.elementType)
    if isinstance(kind, MapType):
        return default_size(kind.keyType) + default_size(kind.valueType)
    if isinstance(kind, DecimalType):
        return 8 if kind.precision <= LONG_DECIMAL else 16
    return VALUES.get(kind.typeName(), TEXT)


def input_sizes(
    inputs: Sequence[QueryInput], selected: frozenset[str], schemas: Mapping[str, StructType]
) -> InputSizes:
    """The sizes of the rows of a query's inputs, by the schemas of streams and tables.

    `selected` has the aliases of inputs with selections. Only these have a projection in plans: of the others, no
    column is read that the query does not need.
    """
    whole: dict[str, int] = {}
    columns: dict[str, dict[str, float]] = {}
    for each in inputs:
        own = {column.name: default_size(column.dataType) for column in schemas[each.source].fields}
        if each.alias in selected:
            whole[each.alias] = ROW + sum(own.values())
            read = {name: own[name] for name in each.columns}
            sizes = {**read, UNREAD: sum(own.values()) - sum(read.values())}
            columns[each.alias] = {name: size / whole[each.alias] for name, size in sizes.items()}
        else:
            whole[each.alias] = ROW + sum(own[name] for name in each.columns)
    mean = sum(whole.values()) / len(whole)
    return InputSizes({alias: size / mean for alias, size in whole.items()}, columns)
