"""The inputs of `tw.join` as they were given: checked, with their windows and times, and the types of their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from thalweg.joinorder.text import classes
from thalweg.mjoin import CountWindow, TimeWindow
from thalweg.registry import hint
from thalweg.spark.joins.text import WINDOW_EXAMPLE, Condition, parse_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

WATERMARK = "spark.watermarkDelayMs"  # what Spark notes of a column that has one

# Numbers that Spark compares as the wider of the two; other types are compared with themselves only.
WIDER = ("tinyint", "smallint", "int", "bigint"), ("float", "double")


@dataclass(frozen=True)
class Side:
    """An input as it was given: its DataFrame, and how its columns are stored and shown."""

    name: str
    frame: DataFrame
    time: str | None
    window: TimeWindow | CountWindow | None
    travels: bool  # a table of a streaming query

    @property
    def types(self) -> dict[str, DataType]:
        """The type of each column."""
        return {field.name: field.dataType for field in self.frame.schema.fields}

    @property
    def has_watermark(self) -> bool:
        """Whether the user has given it one."""
        return any(WATERMARK in (field.metadata or {}) for field in self.frame.schema.fields)

    @property
    def arrow_types(self) -> dict[str, pa.DataType]:
        """Arrow's type of each column."""
        from pyspark.sql.pandas.types import to_arrow_type

        return {name: to_arrow_type(kind, timezone="UTC") for name, kind in self.types.items()}


def sides_of(streams: Mapping[str, DataFrame], windows: object, event_time: object) -> list[Side]:
    """The inputs, with their windows and times."""
    if len(streams) < 2:  # noqa: PLR2004 - a join has two sides
        raise ValueError("tw.join takes two or more DataFrames by name: tw.join({'R1': r1, 'R2': r2}, on=...)")
    for name, frame in streams.items():
        if not hasattr(frame, "isStreaming"):
            raise TypeError(f"{name} is a Spark DataFrame, not {type(frame).__name__}")
        twice = [
            column for column in frame.columns if [each.lower() for each in frame.columns].count(column.lower()) > 1
        ]
        if twice:
            raise ValueError(f"{name} has several columns {twice[0]!r}; rename or drop all but one")
    for what, given in (("windows", windows), ("event_time", event_time)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in streams:
                raise ValueError(f"{what} names {name!r}, which is not in the join{hint(name, streams)}")
    streaming = any(frame.isStreaming for frame in streams.values())
    return [_side(name, frame, windows, event_time, streaming=streaming) for name, frame in streams.items()]


def _side(name: str, frame: DataFrame, windows: object, event_time: object, *, streaming: bool) -> Side:
    travels = streaming and not frame.isStreaming
    given = isinstance(windows, Mapping) and name in windows
    if travels and given and cast(Mapping[str, object], windows)[name] is not None:
        raise ValueError(
            f"{name} is static in a streaming query: a table, whose rows never expire. Write windows={{'{name}': None, "
            f"...}}, or make it a stream: spark.readStream"
        )
    if travels:
        return Side(name, frame, None, None, travels=True)
    if windows is None or (isinstance(windows, Mapping) and not given):
        raise ValueError(f"what is the window of {name}? Write windows={WINDOW_EXAMPLE}")
    window = parse_window(windows[name] if isinstance(windows, Mapping) else windows, name)
    if window is None and not streaming:
        return Side(name, frame, None, None, travels=False)
    column = event_time.get(name) if isinstance(event_time, Mapping) else event_time
    own = {field.name: field for field in frame.schema.fields}
    if column is None:
        raise ValueError(f"what is the event time of {name}? Write event_time={{'{name}': 'ts', ...}}")
    if column not in own:
        raise ValueError(
            f"the event time of {name} is {column!r}, which it does not have{hint(str(column), own)} Its columns: "
            f"{', '.join(own)}"
        )
    kind = own[column].dataType.simpleString()
    if kind not in {"timestamp", "timestamp_ntz"}:
        raise ValueError(
            f"the event time {name}.{column} is {kind}; make it a timestamp: "
            f"frame.withColumn('{column}', col('{column}').cast('timestamp'))"
        )
    marked = [field.name for field in frame.schema.fields if WATERMARK in (field.metadata or {})]
    if marked and column not in marked:
        raise ValueError(
            f"{name} has a watermark on {marked[0]!r}, but its event time is {column!r}: name the same column in "
            f"withWatermark and event_time"
        )
    return Side(name, frame, column, window, travels=False)


def casts_of(sides: Sequence[Side], condition: Condition) -> dict[tuple[str, str], str]:
    """The type as which each key column is compared, where it is not its own."""
    types = {one.name: {name: kind.simpleString() for name, kind in one.types.items()} for one in sides}
    casts: dict[tuple[str, str], str] = {}
    for one in classes(condition.equalities):
        kinds = {each: types[each.stream][each.name] for each in one}
        if len(set(kinds.values())) == 1:
            continue
        family = next((each for each in WIDER if set(kinds.values()) <= set(each)), None)
        if family is None:
            said = ", ".join(f"{each} is {kind}" for each, kind in kinds.items())
            first = next(iter(kinds))
            raise ValueError(
                f"keys of different types never match in the same way everywhere: {said}. Cast one: "
                f"frame.withColumn('{first.name}', col('{first.name}').cast('...'))"
            )
        widest = max(kinds.values(), key=family.index)
        casts |= {(each.stream, each.name): widest for each, kind in kinds.items() if kind != widest}
    return casts


def arrow_type(name: str) -> pa.DataType:
    """Arrow's type for one of the numbers that are widened."""
    return {
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
    }[name]
