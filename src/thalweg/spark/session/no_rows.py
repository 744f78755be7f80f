"""Queries over no rows: views without rows, and aggregates such as count(*), which have a result for them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from thalweg.spark.session.branches import query_file
from thalweg.spark.session.lower import Catalog, QueryLowering
from thalweg.spark.session.program import Program, ProgramQuery
from thalweg.spark.session.views import RowViews, TableViews
from thalweg.spark.session.worker.result_files import of_no_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ResultOfNoRows:
    """The result of a query over no rows, which Spark computes once."""

    def __init__(self, query: ProgramQuery, spark: SparkSession, tables: TableViews, catalog: Catalog) -> None:
        with views_of_no_rows(query, spark, tables, catalog) as views:
            lowering = QueryLowering(query, views, catalog, (0,))
            self._outputs = spark.sql(lowering.result_of_no_rows(query.space.candidates[0].root)).toArrow()
        self._file = query_file(0, query)

    def write(self, numbers: Iterable[int], folder: str) -> list[tuple[str, int]]:
        """Write the results of some rounds to a file, if HAVING keeps them; returns files with their rows."""
        import pyarrow.parquet as pq

        table = of_no_rows(self._outputs, sorted(numbers), self._file)
        if not table.num_rows:
            return []
        path = f"{folder}/{self._file.token}-{uuid.uuid4().hex}.parquet"
        pq.write_table(table, path, compression="zstd")
        return [(path, table.num_rows)]


def views_of_no_rows(query: ProgramQuery, spark: SparkSession, tables: TableViews, catalog: Catalog) -> RowViews:
    """Views under which a query finds its streams without a row."""
    return RowViews(spark, tables, Program((query,)), list(catalog.streams.values()), folder="", files=())
