"""Plain Spark's ways to filter by Python functions, to compare with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Function = Callable[[Integers], Booleans]  # from the rows' numbers to which are kept


def conjunction(frame: DataFrame, tests: Iterable[Function]) -> DataFrame:
    """`&` of scalar Arrow UDFs: every UDF sees every row."""
    return frame.where(reduce(operator.and_, (scalar(test)(frame["id"]) for test in tests)))


def chain(frame: DataFrame, tests: Iterable[Function]) -> DataFrame:
    """An iterator Arrow UDF for each test, in a `where` of its own: a fixed order that does save work."""
    for test in tests:
        frame = frame.where(_iterator(test)(frame["id"]))
    return frame


def fused(frame: DataFrame, keep: Callable[..., Booleans], columns: Iterable[str]) -> DataFrame:
    """A function of several columns, in one iterator Arrow UDF."""
    from pyspark.sql.pandas.functions import arrow_udf

    def keeps(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for arrays in batches:
            yield pa.array(keep(*arrays))

    keeps.__annotations__ = {"batches": Iterator[tuple[pa.Array, ...]], "return": Iterator[pa.Array]}
    udf: Any = arrow_udf("boolean")(keeps)  # type: ignore[call-overload]  # its types leave Arrow out
    return frame.where(udf(*(frame[name] for name in columns)))


def in_table(frame: DataFrame, table: pa.Table, on: str) -> DataFrame:
    """A semi-join with a table that is broadcast."""
    from pyspark.sql import functions as f

    return frame.join(f.broadcast(frame.sparkSession.createDataFrame(table)), on, "left_semi")


def scalar(test: Function) -> Any:  # noqa: ANN401 - a function that makes a Column
    """A scalar Arrow UDF."""
    from pyspark.sql.pandas.functions import arrow_udf

    def keep(ids: pa.Array) -> pa.Array:
        return pa.array(test(ids.to_numpy()))

    keep.__annotations__ = {"ids": pa.Array, "return": pa.Array}
    return arrow_udf("boolean")(keep)  # type: ignore[call-overload]  # its types leave Arrow out


def _iterator(test: Function) -> Any:  # noqa: ANN401 - as above
    from pyspark.sql.pandas.functions import arrow_udf

    def keep(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for ids in batches:
            yield pa.array(test(ids.to_numpy()))

    keep.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return arrow_udf("boolean")(keep)  # type: ignore[call-overload]  # its types leave Arrow out
