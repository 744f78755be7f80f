"""Temporary views under which the text of a micro-batch finds its rows and tables, removed when it is done."""

from __future__ import annotations

import contextlib
import uuid
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from thalweg.spark.identifiers import backticked
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import Program
from thalweg.spark.session.sources import SharedStream
from thalweg.spark.session.waiting import ALWAYS
from thalweg.spark.session.worker.take_in import TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ROWS_OF_ONE_TASK = 1_000_000  # up to which a query runs in one task: to move rows between tasks would take longer
# How Spark runs queries whose streams are one partition each.
SETTINGS_OF_ONE_TASK = {
    # Above this size Spark spreads the rows of one partition over several, and it takes the product of the sizes of its
    # inputs for the size of a join: a join of a join would move its rows.
    "spark.sql.maxSinglePartitionBytes": str(1 << 62),
    # Otherwise the union of all queries is one partition too, because each of them is: one task for all queries.
    "spark.sql.unionOutputPartitioning": "false",
    # The code of a whole union is compiled anew in each micro-batch, and that of each query is not.
    "spark.sql.codegen.wholeStage.union.enabled": "false",
    "spark.sql.adaptive.enabled": "false",  # there is one stage, after which nothing is left to adapt
}


class Views:
    """Views of one Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._token = uuid.uuid4().hex
        self._names: list[str] = []

    def add(self, frame: DataFrame) -> str:
        """A name for a DataFrame."""
        name = f"thalweg_{self._token}_{len(self._names)}"
        frame.createOrReplaceTempView(name)
        self._names.append(name)
        return name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in self._names:
            self.spark.catalog.dropTempView(name)


class TableViews:
    """Views of static tables, which all Spark sessions of a driver find; removed with this object."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, DataFrame]) -> None:
        token = uuid.uuid4().hex
        views = {table: f"thalweg_{token}_{number}" for number, table in enumerate(tables)}
        self.names = {table: f"global_temp.{view}" for table, view in views.items()}
        for table, frame in tables.items():
            frame.createOrReplaceGlobalTempView(views[table])
        removal = weakref.finalize(self, _drop_global_views, spark, tuple(views.values()))
        removal.atexit = False  # Spark ends then, and its views with it


def _drop_global_views(spark: SparkSession, views: Sequence[str]) -> None:
    with contextlib.suppress(Exception):  # Spark may have been stopped before, and with it all views
        for view in views:
            spark.catalog.dropGlobalTempView(view)


class RowViews(Views):
    """Views of the rows of each stream in files, and of static tables."""

    def __init__(
        self,
        spark: SparkSession,
        tables: TableViews,
        program: Program,
        streams: Sequence[SharedStream],
        folder: str,
        files: Sequence[WaitingFile],
    ) -> None:
        super().__init__(spark)
        self.tables = tables
        self.count = sum(file.rows for file in files)
        self._program = program
        self._streams = streams
        self._folder = folder
        self._files = files
        self._settings_before: dict[str, str | None] = {}

    def __enter__(self) -> Self:
        if self.in_one_task:
            for name, value in SETTINGS_OF_ONE_TASK.items():
                self._settings_before[name] = self.spark.conf.get(name, None)
                self.spark.conf.set(name, value)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        for name, value in self._settings_before.items():
            if value is None:
                self.spark.conf.unset(name)
            else:
                self.spark.conf.set(name, value)

    @property
    def are_few(self) -> bool:
        """Whether there are so few rows that to move them would take longer than to compute with them."""
        return self.count <= ROWS_OF_ONE_TASK

    @property
    def in_one_task(self) -> bool:
        """Whether there are rows, but so few that each query runs in one task."""
        return self.count > 0 and self.are_few

    def files_of(self, stream: str, after: int = ALWAYS) -> list[str]:
        """The paths of the files with a stream's rows, if they have rows after a time."""
        return [f"{self._folder}/{file.path}" for file in self._files if file.stream == stream and file.latest > after]

    @cached_property
    def rows(self) -> dict[str, str]:
        """Where each stream's rows are selected from: a view, or a query that has no rows."""
        found = {}
        for stream in self._streams:
            if self._program.readers(stream.name):
                paths = self.files_of(stream.name)
                if paths:
                    schema = stored_schema(self._program, stream)
                    found[stream.name] = self.add(self.spark.read.schema(schema).parquet(*paths))
                else:
                    found[stream.name] = f"({no_rows(self._program, stream)})"
        return found


def stored_schema(program: Program, stream: SharedStream) -> StructType:
    """The columns of a stream's rows in files: its time, columns that queries read, and conditions."""
    from pyspark.sql.types import BooleanType, LongType, StructType

    schema = StructType().add(TIME, LongType())
    for name in program.columns(stream):
        schema = schema.add(stream.stored_name(name), stream.frame.schema[name].dataType)
    for column in _answers(program, stream):
        schema = schema.add(column, BooleanType())
    return schema


def no_rows(program: Program, stream: SharedStream) -> str:
    """The text of a query with the columns of a stream's rows in files, and no row: Spark leaves out what reads it."""
    own = [f"{backticked(name)} AS {backticked(stream.stored_name(name))}" for name in program.columns(stream)]
    answers = [f"CAST(NULL AS BOOLEAN) AS {backticked(column)}" for column in _answers(program, stream)]
    columns = ", ".join([f"CAST(NULL AS BIGINT) AS {TIME}", *own, *answers])
    return f"SELECT {columns} FROM {stream.of_no_rows.names[stream.name]} WHERE FALSE"


def _answers(program: Program, stream: SharedStream) -> list[str]:
    """The columns with the answers of shared conditions and Python predicates on a stream's rows."""
    conditions = [condition.column for condition in program.conditions if condition.stream == stream.name]
    return conditions + [call.column for call in program.calls if call.stream == stream.name]
