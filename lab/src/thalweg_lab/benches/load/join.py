"""join: `tw.join` of two to six streams, a match of each row in each other stream, with windows of 1 to 60 seconds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.loaded_query import QueryKind, Setting
from thalweg_lab.benches.load.sweep import Effort, swept
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FITTED = (Setting(2), Setting(3), Setting(5), Setting(6), Setting(3, window=60))
HELD_OUT = (Setting(4), Setting(3, window=10), Setting(3, is_chain=True, cells=8))
EFFORT = Effort(rows=(12_000, 240_000), interval=2.0)
NAMES = "ABCDEF"


def start(
    spark: SparkSession, frames: Sequence[DataFrame], setting: Setting, folder: str, trigger: dict[str, Any]
) -> StreamingQuery:
    """Start a join."""
    names = NAMES[: setting.parts]
    tw.configure(spark)
    spark.conf.set("spark.sql.shuffle.partitions", str(setting.cells))
    joined = tw.join(
        {name: frame.selectExpr("*", "value AS other") for name, frame in zip(names, frames, strict=True)},
        on=condition(setting),
        windows=f"{setting.window} seconds",
        event_time="timestamp",
        delay="1 second",
        select=["A.value"],
        cells=setting.cells,
    )
    writer = joined.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(**trigger).start()


def condition(setting: Setting) -> str:
    """All streams share a key; or each shares one of two keys with the next.

    >>> condition(Setting(3)), condition(Setting(3, is_chain=True))
    ('A.value = B.value AND A.value = C.value', 'A.value = B.value AND B.other = C.other')
    """
    names = NAMES[: setting.parts]
    if not setting.is_chain:
        return " AND ".join(f"A.value = {name}.value" for name in names[1:])
    columns = ("value", "other")
    return " AND ".join(
        f"{left}.{columns[place % 2]} = {right}.{columns[place % 2]}"
        for place, (left, right) in enumerate(pairwise(names))
    )


JOIN = QueryKind("join", ("stream", "streams"), start, condition=condition)


def measure(spark: SparkSession, tick: Tick, *, effort: Effort = EFFORT) -> list[Result]:
    """The costs of joins, and how their rate and latency change with the streams and the window."""
    return swept(spark, JOIN, FITTED, HELD_OUT, effort, tick)
