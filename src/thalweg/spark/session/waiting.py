"""Rows that wait for their rounds to end: written once, in segments, and read by all queries that need them."""

from __future__ import annotations

import operator
import shutil
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from thalweg.spark.session.position import QueryPosition, WaitingSegment
from thalweg.spark.session.program import Program
from thalweg.spark.session.rows import Panes, holds
from thalweg.spark.session.sources import STREAM, TIME
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_SEGMENTS = 8  # above which they are written together, as one
NEVER = 1 << 62  # microseconds: later than any event time
ALWAYS = -NEVER

KeepFrom = Mapping[str, int]  # by stream, the time after which rows are still needed


def keep_from(program: Program, positions: Mapping[str, QueryPosition]) -> dict[str, int]:
    """For each stream that is read, the time after which some query still needs its rows."""
    times: dict[str, int] = {}
    for query in program.queries:
        position = positions[query.token]
        if not position.is_served:
            continue
        begins = ALWAYS if position.delivered is None else bounds(position.delivered + 1, query.query.window)[0]
        for each in query.streams:
            times[each.source] = min(times.get(each.source, NEVER), begins)
    return times


def open_panes(panes: Panes, needed_after: KeepFrom) -> Panes:
    """The panes with rows that are still needed."""
    return {
        stream: {end: pane for end, pane in ends.items() if end > needed_after[stream]}
        for stream, ends in panes.items()
        if stream in needed_after
    }


class WaitingRows:
    """The segments in the session's folder."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder

    def read(self, segments: tuple[WaitingSegment, ...], rows: DataFrame) -> DataFrame:
        """The rows of a micro-batch, and those of earlier ones that wait."""
        return rows.unionByName(self._stored(segments), allowMissingColumns=True) if segments else rows

    def write(
        self,
        rows: DataFrame,
        program: Program,
        latest: Mapping[str, int],
        segments: tuple[WaitingSegment, ...],
        needed_after: KeepFrom,
        number: int,
    ) -> tuple[WaitingSegment, ...]:
        """Write the rows of a micro-batch that are still needed; returns the segments that are needed from now on.

        `latest` has the latest time of each stream in the micro-batch.
        """
        kept = tuple(each for each in segments if _is_needed(each.latest, needed_after))
        if not _is_needed(latest, needed_after):
            return kept
        chosen = rows.where(_any([holds(each) & _is_after(each.stream, needed_after) for each in program.conjunctions]))
        newest = dict(latest)
        if len(kept) >= MOST_SEGMENTS:
            stored = self._stored(kept).where(_any([_is_after(stream, needed_after) for stream in needed_after]))
            chosen = chosen.unionByName(stored, allowMissingColumns=True)
            for segment in kept:
                for stream, time in segment.latest.items():
                    newest[stream] = max(time, newest.get(stream, time))
            kept = ()
        folder = f"segments/{number}"
        chosen.write.mode("overwrite").parquet(f"{self._folder}/{folder}")
        return (*kept, WaitingSegment(folder, newest))

    def remove(self, segments: tuple[WaitingSegment, ...], kept: tuple[WaitingSegment, ...]) -> None:
        """Remove segments but those that are kept."""
        for folder in {each.folder for each in segments} - {each.folder for each in kept}:
            shutil.rmtree(f"{self._folder}/{folder}", ignore_errors=True)

    def _stored(self, segments: tuple[WaitingSegment, ...]) -> DataFrame:
        folders = [f"{self._folder}/{each.folder}" for each in segments]
        return self._spark.read.option("mergeSchema", "true").parquet(*folders)


def _is_after(stream: str, needed_after: KeepFrom) -> Column:
    from pyspark.sql import functions as f

    return (f.col(STREAM) == stream) & (f.col(TIME) > needed_after.get(stream, NEVER))


def _any(conditions: list[Column]) -> Column:
    from pyspark.sql import functions as f

    return reduce(operator.or_, conditions, f.lit(False))  # noqa: FBT003


def _is_needed(latest: Mapping[str, int], needed_after: KeepFrom) -> bool:
    return any(time > needed_after.get(stream, NEVER) for stream, time in latest.items())
