"""The sections of a program file as values: streams, tables, predicates, queries, where results go, when to start.

For each table of the file there is a tuple of the fields that may be written in it, and a class of what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.spark.session.program_file.fields import (
    NUMBER,
    OPTIONS,
    TABLE,
    TABLE_OF_TEXTS,
    TEXT,
    TEXT_OR_TABLE,
    TEXTS,
    TRUE,
    WHOLE_NUMBER,
    Field,
)
from thalweg.spark.session.program_file.program_text import ProgramText
from thalweg.spark.session.session import DELAY

FILE_FORMATS = ("avro", "csv", "json", "orc", "parquet", "text", "xml")  # of Spark, for streams, tables and results
MEMORY, CONSOLE = "memory", "console"

SCHEMA = "src long, dest long, ts timestamp"
RESULTS = {"format": "parquet", "path": "results/web"}
FILE_FIELDS = (
    Field("checkpoint", TEXT, "checkpoint", is_required=True),
    Field("streams", TABLE, {"TCP": {"format": "json", "path": "tcp"}}, is_required=True),
    Field("queries", TABLE, {"web": {"text": "SELECT ... WINDOW [10 seconds]"}}, is_required=True),
    Field("tables", TABLE, {"hosts": {"format": "csv", "path": "hosts.csv"}}),
    Field("predicates", TABLE_OF_TEXTS, {"is_scan": "checks:is_scan"}),
    Field("late", TEXT, "late"),
    Field("memory", TEXT, "512MB"),
    Field("spark", TABLE, {"master": "local[2]"}),
    Field("trigger", TABLE, {"processing_time": "10 seconds"}),
)
SPARK_FIELDS = (
    Field("master", TEXT, "local[2]"),
    Field("app_name", TEXT, "traffic"),
    Field("conf", OPTIONS, {"spark.driver.memory": "4g"}),
)
SOURCE_FIELDS = (
    Field("format", TEXT, "json", is_required=True),
    Field("path", TEXT, "data/tcp"),
    Field("options", OPTIONS, {"maxFilesPerTrigger": 5}),
    Field("schema", TEXT, SCHEMA),
)
STREAM_FIELDS = (
    *SOURCE_FIELDS,
    Field("event_time", TEXT, "ts", is_required=True),
    Field("delay", TEXT, "10 seconds"),
    Field("select", TEXTS, ["CAST(value AS STRING) AS body", "timestamp AS ts"]),
)
QUERY_FIELDS = (
    Field("text", TEXT, "SELECT src, dest FROM TCP WHERE dest = 2 WINDOW [10 seconds]", is_required=True),
    Field("to", TEXT_OR_TABLE, RESULTS, is_required=True),
    Field("rate_weight", NUMBER, 0.4),
    Field("memory_weight", NUMBER, 0.6),
    Field("partitions", WHOLE_NUMBER, 10),
    Field("scheduler", TEXT, "by-chart"),
)
SINK_FIELDS = (
    Field("format", TEXT, "parquet", is_required=True),
    Field("path", TEXT, "results/web"),
    Field("options", OPTIONS, {"compression": "zstd"}),
)
TRIGGER_FIELDS = (Field("processing_time", TEXT, "10 seconds"), Field("available_now", TRUE, example=True))


@dataclass(frozen=True)
class SparkSection:
    """Which Spark to start."""

    master: str | None = None
    app_name: str = "thalweg"
    conf: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceSection:
    """A static table, and what is common to tables and streams."""

    format: str
    path: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    schema: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamSection(SourceSection):
    """A stream."""

    event_time: str
    delay: str = DELAY
    select: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkSection:
    """Where results go: `memory`, `console`, or a format of Spark."""

    format: str
    path: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuerySection:
    """A standing query."""

    text: str
    to: SinkSection
    options: Mapping[str, Any] = field(default_factory=dict)  # further arguments of `Session.query`


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """A whole program file, with absolute paths; `trigger` is what `Session.start` takes."""

    text: ProgramText
    checkpoint: str
    late: str
    memory: int | None  # bytes
    spark: SparkSection
    streams: Mapping[str, StreamSection]
    tables: Mapping[str, SourceSection]
    predicates: Mapping[str, str]
    queries: Mapping[str, QuerySection]
    trigger: Mapping[str, Any]
