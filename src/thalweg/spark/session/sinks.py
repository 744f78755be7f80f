"""Where the results of a query go: files, memory, any writer of Spark, or a function.

Results come as Parquet files that the workers of the session have written, once for each micro-batch. If a micro-batch
is repeated after a failure, its results come again, with the same number and the same rows.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.spark.filters.file_sink import FileSink
from thalweg.spark.jvm import active_jvm, java_method

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

DATA_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"
ROWS_IN_A_PLAN = 10_000  # of results, up to which they are part of a plan and not files that it reads
PLAIN_TYPES = frozenset(
    (
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal",
        "string",
        "binary",
        "date",
        "timestamp",
    )
)


@dataclass(frozen=True, eq=False)
class Delivery:
    """The results of one query in one micro-batch."""

    spark: SparkSession
    number: int  # of the micro-batch
    files: tuple[str, ...]
    schema: StructType
    may_be_repeated: bool  # whether an earlier try may have delivered it already
    rows: int | None = None  # in all files; None if that is not known

    def frame(self) -> DataFrame:
        """The results as a DataFrame: few rows are within its plan, so that Spark needs no job to collect them."""
        from pyspark.sql.types import StructField, StructType

        # As Spark reads files: any column may be NULL.
        schema = StructType([StructField(field.name, field.dataType) for field in self.schema.fields])
        if self.rows is None or self.rows > ROWS_IN_A_PLAN or not all(map(_is_plain, schema.fields)):
            return self.spark.read.schema(schema).parquet(*self.files)
        return self.spark.createDataFrame(_table(self.files), schema)


def _is_plain(field: StructField) -> bool:
    """Whether a column is of a type that Spark takes from Arrow as it is in files."""
    return field.dataType.typeName() in PLAIN_TYPES


def _table(files: Sequence[str]) -> pa.Table:
    import pyarrow.parquet as pq

    return pa.concat_tables([pq.read_table(file) for file in files], promote_options="permissive")


class Sink(ABC):
    """Takes the results of one query.

    If a sink fails, its query is left out and the others go on; if `must_not_miss`, the micro-batch fails instead, and
    is repeated when the session is started again, so that no result is lost.
    """

    must_not_miss = False

    def check(self, spark: SparkSession) -> None:  # noqa: B027 - most sinks need no check
        """Refuse what Spark cannot write to, when a query is added."""

    def claim(self, spark: SparkSession, checkpoint: str) -> None:  # noqa: B027 - most sinks need no check
        """Make sure that the sink can be written to, before anything starts."""

    @abstractmethod
    def deliver(self, delivery: Delivery) -> None:
        """Take the results of a micro-batch; those of an earlier try are replaced, if the sink can do that."""


class MemorySink(Sink):
    """Keeps results in the memory of the driver, for tests and for looking at them."""

    def __init__(self) -> None:
        self._tables: dict[int, pa.Table] = {}

    def deliver(self, delivery: Delivery) -> None:
        """Keep a table for each micro-batch."""
        self._tables[delivery.number] = _table(delivery.files)

    def table(self) -> pa.Table | None:
        """All results so far; None if there is none yet."""
        tables = [self._tables[number] for number in sorted(self._tables)]
        return pa.concat_tables(tables, promote_options="permissive") if tables else None


class FolderSink(Sink):
    """Writes results to a folder of files, each exactly once."""

    def __init__(
        self, path: str | os.PathLike[str], file_format: str = "parquet", options: Mapping[str, str] | None = None
    ) -> None:
        self.path = os.path.expanduser(os.fspath(path)).rstrip("/")  # noqa: PTH111 - may be a URL
        self._format = file_format
        self._options = dict(options or {})
        self._files: FileSink | None = None

    def check(self, spark: SparkSession) -> None:
        """Refuse an unknown format; Parquet files need no data source of Spark."""
        if self._format != "parquet":
            check_format(spark, self._format)

    def claim(self, spark: SparkSession, checkpoint: str) -> None:
        """Make the folder this query's own."""
        self._files = FileSink(spark, self.path, checkpoint, self._format, self._options)
        self._files.claim()

    def deliver(self, delivery: Delivery) -> None:
        """Move Parquet files in as they are; Spark writes other formats."""
        assert self._files is not None  # noqa: S101 - claimed before the session starts
        is_local = "://" not in self.path and all("://" not in file for file in delivery.files)
        if self._format != "parquet" or self._options or not is_local:
            self._files.write(delivery.frame(), delivery.number)
            return
        folder, prefix = Path(self.path), f"batch-{delivery.number:09d}-"
        if delivery.may_be_repeated:
            for earlier in folder.glob(f"{prefix}*"):
                earlier.unlink()
        for file in delivery.files:
            shutil.move(file, folder / f"{prefix}{Path(file).name}")


class WriterSink(Sink):
    """Hands results to a writer of Spark, such as Kafka's, which may write them again after a failure.

    Kafka takes a column `value`: results that have no column of that name become JSON objects. A broker or a database
    that is away for a while is no fault of the query.
    """

    must_not_miss = True

    def __init__(self, file_format: str, options: Mapping[str, str]) -> None:
        self._format = file_format
        self._options = dict(options)

    def check(self, spark: SparkSession) -> None:
        """Refuse an unknown format."""
        check_format(spark, self._format)

    def deliver(self, delivery: Delivery) -> None:
        """Append the results."""
        frame = delivery.frame()
        if self._format == "kafka" and "value" not in frame.columns:
            frame = frame.selectExpr("to_json(struct(*)) AS value")
        frame.write.format(self._format).options(**self._options).mode("append").save()


def check_format(spark: SparkSession, name: str) -> None:
    """Refuse a format for which Spark has no data source."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException

    settings = spark._jsparkSession.sessionState().conf()  # noqa: SLF001 - Python has no way to ask for a data source
    try:
        java_method(active_jvm(), DATA_SOURCE, "lookupDataSource")(name, settings)
    except (AnalysisException, Py4JJavaError):
        raise ValueError(
            f"Spark has no data source for the format {name!r}: write another format, such as 'parquet', or start "
            f"Spark with the package of the data source in spark.jars.packages"
        ) from None


class FunctionSink(Sink):
    """Calls a function with the results of a micro-batch and its number, as Spark's foreachBatch does."""

    def __init__(self, function: Callable[[DataFrame, int], Any]) -> None:
        self._function = function

    def deliver(self, delivery: Delivery) -> None:
        """Call the function."""
        self._function(delivery.frame(), delivery.number)
