"""From texts and DataFrames to a `JoinQuery`: the columns that the join needs, their types, and its conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pyarrow as pa

from thalweg.joinorder.text import classes
from thalweg.mjoin import Input, JoinQuery, Residual
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.residuals import CandidateTest
from thalweg.spark.joins.text import Condition, ResultColumn

Output = Literal["append", "changelog"]
Column = tuple[str, str]  # the name of an input, and of a column

# Numbers that Spark compares as the wider of the two; other types are compared with themselves only.
WIDER = ("tinyint", "smallint", "int", "bigint"), ("float", "double")
WIDENED = {"smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}


def choose_casts(inputs: Sequence[JoinInput], condition: Condition) -> dict[Column, str]:
    """The type as which each key column is compared, where it is not its own."""
    types = {each.name: {name: kind.simpleString() for name, kind in each.types.items()} for each in inputs}
    casts: dict[Column, str] = {}
    for equal in classes(condition.equalities):
        kinds = {attribute: types[attribute.stream][attribute.name] for attribute in equal}
        if len(set(kinds.values())) == 1:
            continue
        family = next((family for family in WIDER if set(kinds.values()) <= set(family)), None)
        if family is None:
            said = ", ".join(f"{attribute} is {kind}" for attribute, kind in kinds.items())
            first = next(iter(kinds))
            raise ValueError(
                f"keys of different types never match in the same way everywhere: {said}. Cast one of them: "
                f"frame.withColumn('{first.name}', col('{first.name}').cast('...'))"
            )
        widest = max(kinds.values(), key=family.index)
        casts |= {_column(attribute): widest for attribute, kind in kinds.items() if kind != widest}
    return casts


def build_query(
    inputs: Sequence[JoinInput],
    condition: Condition,
    select: Sequence[ResultColumn],
    casts: Mapping[Column, str],
    output: Output,
) -> JoinQuery:
    """The query, with just the columns that it needs."""
    equalities = tuple(frozenset(map(_column, equal)) for equal in classes(condition.equalities))
    residuals = [(text, tuple(map(_column, attributes))) for text, attributes in condition.residuals]
    keys = {column for equal in equalities for column in equal}
    needed = keys | {(name, column) for name, column, _ in select}
    needed |= {column for _, columns in residuals for column in columns}
    needed |= {(each.name, each.time) for each in inputs if each.time}
    as_numbers = {column for each in inputs for column in _times_as_numbers(each, keys) if column in needed}
    return JoinQuery(
        inputs=tuple(
            Input(each.name, _stored_schema(each, needed, as_numbers, casts), each.time, each.window) for each in inputs
        ),
        equalities=equalities,
        residuals=tuple(
            Residual(
                tuple(dict.fromkeys(name for name, _ in columns)),
                columns,
                CandidateTest(text, columns, frozenset(as_numbers)),
            )
            for text, columns in residuals
        ),
        select=tuple(select),
        output=output,
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
