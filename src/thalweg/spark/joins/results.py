"""The results of a streaming join on their way to Spark: as columns, which cross to Spark once and are not copied.

Spark takes the results of a stateful operator as pandas frames. A frame whose columns are Arrow arrays becomes an Arrow
batch again as it is. Timestamps cross as microseconds, since Spark would convert them by time zone. Spark converts
nested values one by one, so results that have any, or values of rare types, cross as packed bytes, and
`packing.unpacker` makes columns of them. (Decision 0068)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.mjoin import CHANGE, EVENT_TIME, JoinQuery
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.layout import as_shown

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FLAT = (  # types whose values Spark takes over as they are
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_date,
    pa.types.is_decimal,
    pa.types.is_timestamp,
)


@dataclass(frozen=True)
class ResultShape:
    """The columns of results as the user knows them, in the types of Arrow and of Spark."""

    arrow: pa.Schema
    spark: StructType

    @property
    def is_flat(self) -> bool:
        """Whether results can cross to Spark as columns."""
        return all(any(is_kind(field.type) for is_kind in FLAT) for field in self.arrow)

    def given(self) -> StructType:
        """The columns that the operator gives, where results are flat."""
        from pyspark.sql.types import LongType, StructField, StructType

        return StructType(
            [
                StructField(_name(number), LongType() if _is_instant(field.type) else self.spark[number].dataType)
                for number, field in enumerate(self.arrow)
            ]
        )

    def named(self, results: DataFrame) -> DataFrame:
        """The columns that the operator gave, by the names and types that the user knows."""
        from pyspark.sql import functions as f

        columns = []
        for number, field in enumerate(self.arrow):
            column = f.col(_name(number))
            shown = f.timestamp_micros(column) if _is_instant(field.type) else column
            columns.append(shown.alias(field.name))
        return results.select(*columns)


def choose_shape(query: JoinQuery, inputs: Sequence[JoinInput]) -> ResultShape:
    """The columns of a query's results."""
    from pyspark.sql.types import ByteType, StructField, StructType

    by_name = {each.name: each for each in inputs}
    shown = pa.schema([(alias, by_name[name].arrow_types[column]) for name, column, alias in query.select])
    # Not as text, which has no room for the odd names that fields within a struct may have.
    fields = StructType([StructField(alias, by_name[name].types[column]) for name, column, alias in query.select])
    if query.event_time_of:
        source = by_name[query.event_time_of[0]]
        time = str(source.time)
        shown = shown.append(pa.field(EVENT_TIME, source.arrow_types[time]))
        fields = fields.add(EVENT_TIME, source.types[time])
    if query.output == "changelog":
        shown, fields = shown.append(pa.field(CHANGE, pa.int8())), fields.add(CHANGE, ByteType())
    return ResultShape(shown, fields)


def as_frame(results: pa.RecordBatch, shown: pa.Schema) -> pd.DataFrame:
    """Results as a pandas frame over the same memory.

    >>> as_frame(pa.record_batch({"size": [1, None]}), pa.schema([("size", pa.int64())])).dtypes.astype(str).to_dict()
    {'column_0': 'int64[pyarrow]'}
    """
    import pandas as pd

    columns = [_given(column, field.type) for column, field in zip(results.columns, shown, strict=True)]
    extension = pd.arrays.ArrowExtensionArray
    return pd.DataFrame(
        {_name(number): pd.Series(extension(column)) for number, column in enumerate(columns)}, copy=False
    )


def _name(number: int) -> str:
    return f"column_{number}"


def _is_instant(kind: pa.DataType) -> bool:
    """Whether values are instants, which Spark shows by the session's time zone."""
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


def _given(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A stored column as the operator gives it."""
    shown = as_shown(column, kind)
    return shown.view(pa.int64()) if _is_instant(kind) else shown
