"""Structs, maps, arrays and intervals as Spark hands them to a pandas UDF, converted by PySpark's own function.

Structs are DataFrames, maps are dictionaries, arrays are NumPy arrays, down to any depth. The function is not public: a
version of PySpark that lacks it converts these columns itself, and the UDF stays in Spark.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import pyarrow as pa

HOW: dict[str, Any] = {
    "struct_in_pandas": "dict",
    "ndarray_as_list": False,
    "prefer_int_ext_dtype": False,
    "df_for_struct": True,
}


@cache
def can_convert() -> bool:
    """Whether this version of PySpark has the function."""
    try:
        from pyspark.sql.conversion import ArrowBatchTransformer

        parameters = inspect.signature(ArrowBatchTransformer.to_pandas).parameters
    except (ImportError, AttributeError):
        return False
    return {"timezone", *HOW} <= parameters.keys()


def is_converted_by_pyspark(kind: pa.DataType) -> bool:
    """Whether a column of a type is converted here, and not by Arrow.

    >>> is_converted_by_pyspark(pa.list_(pa.int64())), is_converted_by_pyspark(pa.int64())
    (True, False)
    """
    return bool(pa.types.is_nested(kind) or pa.types.is_duration(kind))


def nested_series(column: pa.Array, time_zone: str) -> Any:  # noqa: ANN401 - a Series, or a DataFrame of a struct
    """A whole column, with times in the session's time zone."""
    from pyspark.sql.conversion import ArrowBatchTransformer

    batch = pa.RecordBatch.from_arrays([column], names=["_0"])
    (series,) = ArrowBatchTransformer.to_pandas(batch, timezone=time_zone, **HOW)
    return series
