"""The streams and static tables of a session, and all streams as one: each row with its stream's name and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from thalweg.spark.analysis.catalyst import Facts, facts_of
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.worker.take_in import TIME
from thalweg.sql.query import Source
from thalweg.sql.rename import with_columns_renamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from thalweg.spark.session.views import TableViews

STREAM = "stream"  # the column of the name of a row's stream


@dataclass(frozen=True, eq=False)
class SharedStream:
    """A stream that queries read: `delay` is how many microseconds of event time a row may be late."""

    name: str
    frame: DataFrame
    event_time: str
    delay: int
    _facts: dict[str, Facts] = field(default_factory=dict, repr=False)  # of conditions that were looked at before
    _stored_sql: dict[str, str] = field(default_factory=dict, repr=False)  # of conditions

    @property
    def source(self) -> Source:
        """The stream as the text of a query sees it."""
        return Source(self.name, tuple(self.frame.columns))

    @cached_property
    def of_no_rows(self) -> TableViews:
        """A view with its columns and no row, which is made once: Spark takes long to make a DataFrame of no rows."""
        from thalweg.spark.session.views import TableViews  # which knows streams itself

        spark = self.frame.sparkSession
        return TableViews(spark, {self.name: spark.createDataFrame([], self.schema)})

    @property
    def schema(self) -> StructType:
        """Its columns, each of which may be NULL."""
        from pyspark.sql.types import StructField, StructType

        return StructType([StructField(column.name, column.dataType) for column in self.frame.schema.fields])

    def stored_name(self, column: str) -> str:
        """The name of one of its columns among the rows of all streams."""
        return f"{self.name}:{column}"

    def stored_sql(self, condition: str) -> str:
        """A condition with the names that columns have among the rows of all streams."""
        if condition not in self._stored_sql:
            names: dict[tuple[str, ...], str] = {(name,): self.stored_name(name) for name in self.frame.columns}
            self._stored_sql[condition] = with_columns_renamed(condition, names)
        return self._stored_sql[condition]

    def facts(self, conditions: Sequence[str]) -> list[Facts]:
        """What is known of each condition without running it."""
        from pyspark.sql import functions as f

        unknown = [condition for condition in dict.fromkeys(conditions) if condition not in self._facts]
        if unknown:
            found = facts_of(self.frame, [f.expr(condition) for condition in unknown])
            self._facts.update(zip(unknown, found, strict=True))
        return [self._facts[condition] for condition in conditions]

    def check_read(self, columns: Sequence[str]) -> None:
        """Refuse columns of types that files of rows which wait cannot hold."""
        for name in columns:
            if has_interval_of_months(self.frame.schema[name].dataType):
                kind = self.frame.schema[name].dataType.simpleString()
                raise TypeError(
                    f"column {name!r} of stream {self.name!r} is of type {kind}, which a session cannot keep: give the "
                    f"stream a column of months instead, df.withColumn({name!r}, expr('CAST({name} AS INT)'))"
                )

    def check(self) -> None:
        """Refuse a DataFrame that is no stream, or whose event time is none."""
        if not self.frame.isStreaming:
            raise TypeError(f"stream {self.name!r} is a static DataFrame: write session.table({self.name!r}, df)")
        kinds = {field.name: field.dataType.typeName() for field in self.frame.schema.fields}
        lower = [name.lower() for name in kinds]
        if len(set(lower)) < len(self.frame.columns):
            raise ValueError(f"stream {self.name!r} has two columns of one name: rename one of them with df.toDF(...)")
        if self.event_time not in kinds:
            raise ValueError(
                f"stream {self.name!r} has no column {self.event_time!r}; it has {', '.join(kinds)}: write "
                f"event_time='...'"
            )
        if kinds[self.event_time] != "timestamp":
            raise TypeError(
                f"stream {self.name!r}: the event time {self.event_time!r} is of type {kinds[self.event_time]}: cast "
                f"it to timestamp"
            )


def has_interval_of_months(kind: DataType) -> bool:
    """Whether a type is, or has within it, an interval of months and years, which Arrow and Parquet do not agree on."""
    from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, StructType, YearMonthIntervalType

    if isinstance(kind, StructType):
        return any(has_interval_of_months(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return has_interval_of_months(kind.elementType)
    if isinstance(kind, MapType):
        return has_interval_of_months(kind.keyType) or has_interval_of_months(kind.valueType)
    return isinstance(kind, YearMonthIntervalType | CalendarIntervalType)


@dataclass(frozen=True, eq=False)
class StaticTable:
    """A table that queries join with."""

    name: str
    frame: DataFrame

    @property
    def source(self) -> Source:
        """The table as the text of a query sees it."""
        return Source(self.name, tuple(self.frame.columns), is_stream=False)


def tasks_at_once(spark: SparkSession) -> int:
    """How many tasks run at the same time: more tasks than that only cost the time to start them."""
    return max(spark.sparkContext.defaultParallelism, 1)


def divided_up(dividend: str, divisor: str) -> str:
    """The text of a division of two whole numbers that rounds up; Spark's `div` rounds towards zero.

    >>> divided_up("time", "20L")
    '((time) + pmod(-(time), 20L)) div 20L'
    """
    return f"(({dividend}) + pmod(-({dividend}), {divisor})) div {divisor}"


def all_streams(streams: Sequence[SharedStream]) -> DataFrame:
    """The rows of all streams in one streaming DataFrame; the columns of the other streams are NULL."""
    from pyspark.sql import functions as f

    def tagged(stream: SharedStream) -> DataFrame:
        columns = [
            f.col(backticked(field.name)).alias(stream.stored_name(field.name))
            if other is stream
            else f.lit(None).cast(field.dataType).alias(other.stored_name(field.name))
            for other in streams
            for field in other.frame.schema.fields
        ]
        time = f.unix_micros(f.col(backticked(stream.event_time)))
        return stream.frame.select(f.lit(stream.name).alias(STREAM), time.alias(TIME), *columns)

    frames = [tagged(stream) for stream in streams]
    return reduce(lambda left, right: left.unionByName(right), frames)
