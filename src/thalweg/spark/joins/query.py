"""From texts and DataFrames to a `JoinQuery`: the columns that the join needs, their types, and its conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from thalweg.joinorder.text import Attribute, classes
from thalweg.mjoin import CHANGE, Input, JoinQuery, Residual
from thalweg.spark.identifiers import backticked
from thalweg.spark.joins.condition import Condition
from thalweg.spark.joins.how import JoinType
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.residuals import Column
from thalweg.spark.joins.spark_conditions import ResidualConditions
from thalweg.spark.joins.text import ResultColumn

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

Output = Literal["append", "changelog"]

# Numbers that Spark compares as the wider of the two; other types are compared with themselves only.
WIDER = ("tinyint", "smallint", "int", "bigint"), ("float", "double")
WIDENED = {"smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}
NOT_KEYS = ("array", "map", "struct", "variant", "geometry", "geography")  # types that have no single value


def choose_casts(inputs: Sequence[JoinInput], condition: Condition) -> dict[Column, str]:
    """The type as which each key column is compared, where it is not its own."""
    types = {each.name: each.types for each in inputs}
    casts: dict[Column, str] = {}
    for equal in classes(condition.equalities):
        kinds = {attribute: _key_type(attribute, types[attribute.stream][attribute.name]) for attribute in equal}
        if len(set(kinds.values())) == 1:
            continue
        family = next((family for family in WIDER if set(kinds.values()) <= set(family)), None)
        if family is None:
            said = ", ".join(f"{attribute} is {kind}" for attribute, kind in kinds.items())
            first, *_, last = kinds
            raise ValueError(
                f"keys of different types never match in the same way everywhere: {said}. Cast one of them: "
                f"on='CAST({first} AS {kinds[last]}) = {last}'"
            )
        widest = max(kinds.values(), key=family.index)
        casts |= {_column(attribute): widest for attribute, kind in kinds.items() if kind != widest}
    return casts


def check_output(output: str, select: Sequence[ResultColumn]) -> None:
    """Refuse a column of the result that is called as the column of changes."""
    for name, column, alias in select:
        if output == "changelog" and alias.lower() == CHANGE:
            raise ValueError(
                f"a changelog has a column {CHANGE!r} of its own; give {Attribute(name, column)} another name: "
                f"select=['{Attribute(name, column)} AS other', ...]"
            )


def _key_type(attribute: Attribute, kind: DataType) -> str:
    """The type of a key, which is a scalar."""
    name = kind.simpleString()
    if name.startswith(NOT_KEYS):
        raise ValueError(
            f"the key {attribute} is {name}, and keys are single values: join by parts of it, such as "
            f"on='{attribute.stream}.part = ...' with frame.withColumn('part', col('{backticked(attribute.name)}')...)"
        )
    if "collate" in name:
        raise ValueError(
            f"the key {attribute} is {name}, and keys are compared byte by byte: write "
            f"on='collate({attribute}, \\'UTF8_BINARY\\') = ...', or lower({attribute}) on both sides"
        )
    return name


def build_query(
    inputs: Sequence[JoinInput],
    condition: Condition,
    conditions: ResidualConditions,
    select: Sequence[ResultColumn],
    casts: Mapping[Column, str],
    event_time_of: tuple[str, ...],
    join_type: JoinType,
    output: Output,
) -> JoinQuery:
    """The query, with just the columns that it needs."""
    equalities = tuple(frozenset(map(_column, equal)) for equal in classes(condition.equalities))
    hidden = dict.fromkeys(column for each in conditions.in_spark for column in each.columns)
    keys = {column for equal in equalities for column in equal}
    results = (*select, *hidden)
    needed = keys | {(name, column) for name, column, _ in results}
    needed |= {column for test in conditions.in_cells for column in test.columns}
    needed |= {(each.name, each.time) for each in inputs if each.time}
    as_numbers = {column for each in inputs for column in _times_as_numbers(each, keys) if column in needed}
    return JoinQuery(
        inputs=tuple(
            Input(each.name, _stored_schema(each, needed, as_numbers, casts), each.time, each.window) for each in inputs
        ),
        equalities=equalities,
        residuals=tuple(
            Residual(tuple(dict.fromkeys(name for name, _ in test.columns)), test.columns, test)
            for test in conditions.in_cells
        ),
        select=results,
        output=output,
        event_time_of=event_time_of,
        kind=join_type.kind,
        preserved=join_type.preserved,
    )


def _column(attribute: Sequence[str]) -> Column:
    name, column = attribute
    return name, column


def _times_as_numbers(source: JoinInput, keys: set[Column]) -> set[Column]:
    """The timestamps that are stored as int64 microseconds: event time, and keys."""
    return {
        (source.name, column)
        for column, kind in source.arrow_types.items()
        if pa.types.is_timestamp(kind) and (column == source.time or (source.name, column) in keys)
    }


def _stored_schema(
    source: JoinInput, needed: set[Column], as_numbers: set[Column], casts: Mapping[Column, str]
) -> pa.Schema:
    """The columns of an input that are needed, in the types in which they are stored."""
    fields = []
    for name, kind in source.arrow_types.items():
        column = (source.name, name)
        if column in as_numbers:
            fields.append(pa.field(name, pa.int64()))
        elif column in needed:
            fields.append(pa.field(name, WIDENED[casts[column]] if column in casts else kind))
    return pa.schema(fields)
