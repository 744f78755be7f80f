"""Which types of columns can be compared with one another as keys, and as which type they are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

# Spark's decimals have up to 38 digits before and after the point: this type holds all of them.
WIDE_DECIMAL = pa.decimal256(76, 38)
SPARK_DIGITS = 38

# Families of types that are compared with one another: the test, the common type, and Spark's name for that type.
FAMILIES: tuple[tuple[Callable[[Any], bool], Any, str], ...] = (
    (lambda kind: pa.types.is_integer(kind) and kind != pa.uint64(), pa.int64(), "bigint"),
    (pa.types.is_floating, pa.float64(), "double"),
    (lambda kind: kind in {pa.string(), pa.large_string(), pa.string_view()}, pa.large_string(), "string"),
    (lambda kind: kind in {pa.binary(), pa.large_binary(), pa.binary_view()}, pa.large_binary(), "binary"),
    (pa.types.is_fixed_size_binary, pa.large_binary(), "binary"),
    (pa.types.is_boolean, pa.bool_(), "boolean"),
    (pa.types.is_date, pa.date32(), "date"),
    (pa.types.is_time, pa.time64("ns"), "time"),
    (pa.types.is_duration, pa.duration("us"), "interval day to second"),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, pa.timestamp("us"), "timestamp_ntz"),
    (pa.types.is_timestamp, pa.timestamp("us", "UTC"), "timestamp"),
)


@lru_cache
def common_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as which values of this type are compared, None where they cannot be.

    >>> common_type(pa.int16()), common_type(pa.dictionary(pa.int8(), pa.string())), common_type(pa.list_(pa.int8()))
    (DataType(int64), DataType(large_string), None)
    """
    if pa.types.is_dictionary(kind):
        return common_type(kind.value_type)
    if pa.types.is_decimal(kind):
        return pa.decimal128(SPARK_DIGITS, kind.scale) if kind.precision <= SPARK_DIGITS else WIDE_DECIMAL
    return next((common for belongs, common, _ in FAMILIES if belongs(kind)), None)


def spark_name(kind: pa.DataType) -> str:
    """Spark's name for a common type.

    >>> spark_name(pa.int64()), spark_name(pa.decimal128(38, 2))
    ('bigint', 'decimal(38,2)')
    """
    if pa.types.is_decimal(kind):
        return f"decimal({SPARK_DIGITS},{kind.scale})"
    return next(name for _, common, name in FAMILIES if common == kind)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in one piece, without a dictionary."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def as_type(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column as the type it is compared as, text as its bytes; an error where values would change."""
    column = flat(column)
    kind = pa.large_binary() if kind == pa.large_string() else kind
    return column if column.type == kind else column.cast(kind)
