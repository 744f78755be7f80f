"""Arrow values as the Python values that Spark hands to a Python UDF, for predicates that take one row at a time.

Structs are `Row`, maps are dictionaries, timestamps are naive and local, whichever the time zone of the session.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

Converter = Callable[[Any], Any]


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column, as a Python UDF of Spark gets them.

    >>> python_values(pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())))
    [{'a': 1}, None]
    """
    values: list[Any] = column.to_pylist()
    convert = _converter(column.type)
    return values if convert is None else [None if value is None else convert(value) for value in values]


@lru_cache(maxsize=1000)
def _converter(kind: pa.DataType) -> Converter | None:
    """The function that makes Spark's value of an Arrow value that is not NULL; None where they are the same."""
    if pa.types.is_timestamp(kind):
        return _local if kind.tz is not None else None
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_map(kind):
        key, item = _nullable(_converter(kind.key_type)), _nullable(_converter(kind.item_type))
        return lambda pairs: {key(name): item(value) for name, value in pairs}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _converter(kind.value_type)
        if inner is None:
            return None
        element = _nullable(inner)
        return lambda values: [element(value) for value in values]
    return None


def _local(moment: datetime) -> datetime:
    return moment.astimezone().replace(tzinfo=None)


def _struct(kind: pa.StructType) -> Converter:
    fields = [kind.field(number) for number in range(kind.num_fields)]
    names = [field.name for field in fields]
    if any((field.metadata or {}).get(b"variant") == b"true" for field in fields):
        from pyspark.sql.types import VariantVal

        return lambda value: VariantVal(value["value"], value["metadata"])
    from pyspark.sql.types import Row

    row = Row(*names)
    converters = [_nullable(_converter(field.type)) for field in fields]

    def convert(value: dict[str, Any]) -> Any:  # noqa: ANN401 - a Row
        return row(*(converter(value[name]) for name, converter in zip(names, converters, strict=True)))

    return convert


def _nullable(convert: Converter | None) -> Converter:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
