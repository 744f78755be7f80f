"""Results come to Spark as columns over the same memory, in types that Spark does not convert."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from thalweg.spark.joins.results import ResultShape, as_frame

FLAT = {
    "whole": pa.array([1, None, 3]),
    "small": pa.array([1, None, -3], pa.int8()),
    "float": pa.array([1.5, None, float("nan")], pa.float32()),
    "double": pa.array([1.5, None, float("inf")]),
    "yes": pa.array([True, None, False]),
    "text": pa.array(["x", None, ""]),
    "bytes": pa.array([b"x", None, b""]),
    "day": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "money": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(38, 2)),
    "local": pa.array([0, None, 2**50], pa.timestamp("us")),
}


@pytest.mark.parametrize("name", FLAT)
def test_columns_are_not_copied(name: str) -> None:
    column = FLAT[name]
    frame = as_frame(pa.record_batch([column], names=[name]), pa.schema([(name, column.type)]))
    given = pa.Array.from_pandas(frame["column_0"])
    assert given.to_pylist()[:2] == column.to_pylist()[:2]
    assert given.type == column.type
    assert [buffer and buffer.address for buffer in given.buffers()] == [
        buffer and buffer.address for buffer in column.buffers()
    ]


def test_instants_are_given_as_microseconds() -> None:
    kind = pa.timestamp("us", "UTC")
    results = pa.record_batch({"stored": [5, None], "kept": pa.array([7, None], kind)})
    frame = as_frame(results, pa.schema([("stored", kind), ("kept", kind)]))
    assert [pa.Array.from_pandas(frame[name]).to_pylist() for name in frame] == [[5, None], [7, None]]
    fields = StructType([StructField("stored", TimestampType()), StructField("name", StringType())])
    shape = ResultShape(pa.schema([("stored", kind), ("name", pa.string())]), fields)
    assert [field.dataType for field in shape.given()] == [LongType(), StringType()]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8())])
def test_nested_values_are_packed(kind: pa.DataType) -> None:
    assert not ResultShape(pa.schema([("nested", kind)]), StructType()).is_flat
    assert ResultShape(pa.schema([("flat", pa.string())]), StructType()).is_flat
