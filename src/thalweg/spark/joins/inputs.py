"""The inputs of `tw.join` as they were given: checked, with their windows and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from thalweg.joinorder.text import Attribute
from thalweg.mjoin import CountWindow, TimeWindow
from thalweg.registry import hint
from thalweg.spark.arrow_types import arrow_type
from thalweg.spark.identifiers import backticked
from thalweg.spark.joins.condition import Condition
from thalweg.spark.joins.table import ChangingTable
from thalweg.spark.joins.text import WINDOW_EXAMPLE, parse_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column that has a watermark
TIMES = {"timestamp", "timestamp_ntz"}


@dataclass(frozen=True)
class JoinInput:
    """An input as it was given: its DataFrame, and how its columns are stored and shown."""

    name: str
    frame: DataFrame
    time: str | None = None
    window: TimeWindow | CountWindow | None = None
    is_table: bool = False  # of a streaming query
    changing: ChangingTable | None = None  # of a table that may change

    @property
    def types(self) -> dict[str, DataType]:
        """The type of each column."""
        return {field.name: field.dataType for field in self.frame.schema.fields}

    @property
    def has_watermark(self) -> bool:
        """Whether the user has given it a watermark."""
        return self.own_delay is not None

    @property
    def own_delay(self) -> int | None:
        """The delay in milliseconds that the user has given it with a watermark; None if there is none."""
        marked = (field for field in self.frame.schema.fields if _is_watermarked(field))
        return next((int(field.metadata[WATERMARK]) for field in marked), None)

    @property
    def arrow_types(self) -> dict[str, pa.DataType]:
        """Arrow's type of each column."""
        return {name: arrow_type(kind) for name, kind in self.types.items()}


def check_inputs(streams: object, windows: object, event_time: object) -> list[JoinInput]:
    """The inputs, with their windows and times."""
    if not isinstance(streams, Mapping):
        raise TypeError(
            f"tw.join takes DataFrames by name, not a {type(streams).__name__}: tw.join({{'R1': r1, 'R2': r2}}, on=...)"
        )
    if not isinstance(event_time, str | Mapping):
        raise TypeError(
            f"event_time is the name of a column, or names by stream, not {event_time!r}: write event_time='ts' or "
            f"event_time={{'R1': 'ts', 'R2': 'created'}}"
        )
    if len(streams) < 2:  # noqa: PLR2004 - a join has two sides
        raise ValueError("tw.join takes two or more DataFrames by name: tw.join({'R1': r1, 'R2': r2}, on=...)")
    frames = {name: each.frame if isinstance(each, ChangingTable) else each for name, each in streams.items()}
    for name, frame in frames.items():
        _check_frame(name, frame)
    for option, given in (("windows", windows), ("event_time", event_time)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in streams:
                raise ValueError(f"{option} names {name!r}, which is not in the join{hint(name, streams)}")
    is_streaming = any(frame.isStreaming for frame in frames.values())
    inputs = [
        _check_input(name, frame, windows, event_time, is_streaming=is_streaming) for name, frame in frames.items()
    ]
    changing = {name: each for name, each in streams.items() if isinstance(each, ChangingTable) and is_streaming}
    return [replace(each, changing=changing.get(each.name)) for each in inputs]


def _check_frame(name: str, frame: DataFrame) -> None:
    if not hasattr(frame, "isStreaming"):
        raise TypeError(f"{name} is a Spark DataFrame, not {type(frame).__name__}")
    lower = [column.lower() for column in frame.columns]
    for column in frame.columns:
        if lower.count(column.lower()) > 1:
            raise ValueError(f"{name} has several columns {column!r}; rename or drop all but one")


def _check_input(name: str, frame: DataFrame, windows: object, event_time: object, *, is_streaming: bool) -> JoinInput:
    has_window = isinstance(windows, Mapping) and name in windows
    if is_streaming and not frame.isStreaming:
        if has_window and cast(Mapping[str, object], windows)[name] is not None:
            raise ValueError(
                f"{name} is static in a streaming query: a table, whose rows never expire. Write "
                f"windows={{'{name}': None, ...}}, or make it a stream: spark.readStream"
            )
        return JoinInput(name, frame, is_table=True)
    if windows is None or (isinstance(windows, Mapping) and not has_window):
        raise ValueError(f"what is the window of {name}? Write windows={WINDOW_EXAMPLE}")
    window = parse_window(windows[name] if isinstance(windows, Mapping) else windows, name)
    if window is None and not is_streaming:
        return JoinInput(name, frame)
    column = event_time.get(name) if isinstance(event_time, Mapping) else event_time
    return JoinInput(name, frame, _check_time(name, frame, column), window)


def _check_time(name: str, frame: DataFrame, column: object) -> str:
    """The column of event time of an input, as the input spells it."""
    fields = {field.name: field for field in frame.schema.fields}
    if column is None:
        raise ValueError(f"what is the event time of {name}? Write event_time={{'{name}': 'ts', ...}}")
    time = next((known for known in fields if str(column) in {known, backticked(known)}), None)
    time = time or next((known for known in fields if str(column).lower() == known.lower()), None)
    if time is None:
        raise ValueError(
            f"the event time of {name} is {column!r}, which it does not have{hint(str(column), fields)} Its columns: "
            f"{', '.join(fields)}"
        )
    kind = fields[time].dataType.simpleString()
    if kind not in TIMES:
        raise ValueError(
            f"the event time {Attribute(name, time)} is {kind}; make it a timestamp: "
            f"frame.withColumn('{time}', col('{backticked(time)}').cast('timestamp'))"
        )
    marked = [field.name for field in fields.values() if _is_watermarked(field)]
    if marked and time not in marked:
        raise ValueError(
            f"{name} has a watermark on {marked[0]!r}, but its event time is {time!r}: name the same column in "
            f"withWatermark and event_time"
        )
    return time


def _is_watermarked(field: StructField) -> bool:
    return WATERMARK in (field.metadata or {})


def apply_condition(inputs: Sequence[JoinInput], condition: Condition, delay: int) -> list[JoinInput]:
    """The inputs with their watermarks, without the rows that conditions on one input drop, and with computed keys."""
    return [replace(each, frame=_applied(each, condition, delay)) for each in inputs]


def _applied(source: JoinInput, condition: Condition, delay: int) -> DataFrame:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    frame = source.frame
    if frame.isStreaming and source.time and not source.has_watermark:
        frame = frame.withWatermark(backticked(source.time), f"{delay} microseconds")
    frame = frame.alias(source.name)
    text = ""
    try:
        for text in (text for name, text in condition.filters if name == source.name):
            frame = frame.where(text)
        for key, text in condition.computed:
            if key.stream == source.name:
                frame = frame.select("*", f.expr(text).alias(key.name)).alias(source.name)
    except AnalysisException as error:
        raise ValueError(f"Spark refuses {text!r} in on=: {first_sentence(error)}") from None
    return frame


def first_sentence(error: Exception) -> str:
    """An error of Spark, without the plan that follows it."""
    return str(error).split(";", maxsplit=1)[0].split(" SQLSTATE", maxsplit=1)[0]
