"""The Arrow type that a Spark type has in Python workers, by any supported version of PySpark."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type; timestamps are in UTC.

    >>> from pyspark.sql.types import TimestampType
    >>> arrow_type(TimestampType())
    TimestampType(timestamp[us, tz=UTC])
    """
    from pyspark.sql.pandas.types import to_arrow_type

    is_told = "timezone" in inspect.signature(to_arrow_type).parameters  # since 4.2; before, it is UTC by default
    return to_arrow_type(kind, timezone="UTC") if is_told else to_arrow_type(kind)
