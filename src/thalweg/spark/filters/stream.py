"""`tw.stream`: filters a stream micro-batch by micro-batch, and plans each anew.

A streaming DataFrame's plan is fixed when the query starts. Here every micro-batch is an ordinary DataFrame: a small
part of it tells in which order Spark shall run conditions and lookups on the rest. What is learnt is kept in the
checkpoint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from thalweg.drift import Detector
from thalweg.ordering import Policy
from thalweg.spark.filters.routes import RouteBy
from thalweg.spark.filters.where import OnError, Where, gather, make_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SAMPLING_SHARE = 0.05  # of the time that micro-batches take, which looking at them first may take
SLOWER = 1.5  # times the usual time: a micro-batch that took as long makes the next one be looked at


def stream(
    frame: DataFrame,
    *predicates: Any,  # noqa: ANN401 - as in tw.where
    checkpoint: str | os.PathLike[str],
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "none",
    route_by: RouteBy = None,
    on_error: OnError = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    quarantine_columns: Sequence[str] = (),
) -> FilteredStream:
    """A stream filtered by predicates, whose plan Thalweg chooses anew for every micro-batch.

    Parameters are those of `tw.where`. `checkpoint` is the query's checkpoint location; what is learnt is kept in it,
    and a query that is started again goes on where it was, with the order that it had.

    Examples
    --------
    >>> query = stream(logs, "status >= 500", is_odd, checkpoint="checkpoints/odd").to_files("odd")  # doctest: +SKIP
    """
    if not getattr(frame, "isStreaming", False):
        raise TypeError("tw.stream takes a streaming DataFrame; for a batch, write tw.where(df, ...)")
    if not hasattr(frame, "_jdf"):
        raise TypeError("tw.stream needs a classic session: with Spark Connect write tw.where(df, ...).writeStream...")
    made = make_where(
        frame,
        predicates,
        policy=policy,
        drift=drift,
        route_by=route_by,
        on_error=on_error,
        quarantine=quarantine,
        quarantine_columns=quarantine_columns,
        state=f"{os.fspath(checkpoint).rstrip('/')}/thalweg",
        joins=True,
    )
    return FilteredStream(frame, made, os.fspath(checkpoint))


class FilteredStream:
    """What `tw.stream` describes; it runs when it is told what to do with the rows."""

    def __init__(self, frame: DataFrame, where: Where, checkpoint: str) -> None:
        self.thalweg_where = where
        self._frame = frame
        self._checkpoint = checkpoint
        self._planner = Replanner(where)

    def foreach_batch(
        self,
        function: Callable[[DataFrame, int], None],
        *,
        name: str | None = None,
        **trigger: Any,  # noqa: ANN401
    ) -> DrivenQuery:
        """Start, and call a function with the kept rows of every micro-batch and its number.

        After a failure a micro-batch may come again, with the same number and the same rows. `trigger` is what
        Spark's ``DataStreamWriter.trigger`` takes: ``availableNow=True`` or ``processingTime="10 seconds"``.
        """
        planner = self._planner

        def run(batch: DataFrame, number: int) -> None:
            with planner.batch(batch) as kept:
                function(kept, number)

        writer = self._frame.writeStream.foreachBatch(run).option("checkpointLocation", self._checkpoint)
        writer = writer.queryName(name) if name else writer
        return DrivenQuery((writer.trigger(**trigger) if trigger else writer).start(), self.thalweg_where)

    def to_files(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "parquet",  # noqa: A002 - Spark's word for it
        name: str | None = None,
        options: dict[str, str] | None = None,
        **trigger: Any,  # noqa: ANN401 - as above
    ) -> DrivenQuery:
        """Start, and write the kept rows to files, each row exactly once.

        Every micro-batch has a folder of its own, ``batch=0`` and so on, which is replaced as a whole if the
        micro-batch comes again. Read the result with ``spark.read.parquet(path)``.
        """
        target = os.fspath(path).rstrip("/")

        def write(kept: DataFrame, number: int) -> None:
            kept.write.format(format).options(**options or {}).mode("overwrite").save(f"{target}/batch={number}")

        return self.foreach_batch(write, name=name, **trigger)


class DrivenQuery:
    """A running stream: Spark's `StreamingQuery`, and what Thalweg knows of it for `tw.explain`."""

    def __init__(self, query: StreamingQuery, where: Where) -> None:
        self.query = query
        self.thalweg_where = where
        driven[query.id] = where

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as Spark has it
        return getattr(self.query, name)


driven: dict[str, Where] = {}  # by the query's id, for metrics


class Replanner:
    """Chooses the plan of each micro-batch, looking at a part of it first as often as that stays cheap."""

    def __init__(self, where: Where, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.where = where
        self.batches = self.samples = 0
        self._clock = clock
        self._credit = 0.0  # seconds that looking may take
        self._look_seconds = 0.0  # that it took last
        self._usual = 0.0  # seconds that a micro-batch takes
        self._alarmed = True
        saved = gather(where)
        if saved is None:
            where.choose_unsampled()
        else:
            where.learned = saved
            where.choose_by(saved.profile, "as learnt before the restart")
            where.take_up(saved)
            self._alarmed = False

    @contextmanager
    def batch(self, frame: DataFrame) -> Iterator[DataFrame]:
        """The rows of a micro-batch that are kept; the time until the context ends is taken for the micro-batch's."""
        if self.where.wants_sample() and (self._alarmed or self._credit >= self._look_seconds):
            self._look(frame)
        start = self._clock()
        yield self.where.plan.apply(frame)
        self._note(self._clock() - start)

    def _note(self, seconds: float) -> None:
        """Learn how long a micro-batch took: it earns its share for looking, and is compared with the usual."""
        earned = SAMPLING_SHARE * seconds
        self._credit = min(self._credit + earned, self._look_seconds + earned)
        self._alarmed = bool(self.batches) and seconds > SLOWER * self._usual
        self._usual = 0.7 * self._usual + 0.3 * seconds if self.batches else seconds
        self.batches += 1

    def _look(self, frame: DataFrame) -> None:
        start = self._clock()
        sampled = self.where.take_sample(frame, None)
        if len(sampled.codes):
            self.where.consider(sampled)
            self.where.keep_plan()
        self.samples += 1
        self._look_seconds = self._clock() - start
        self._credit -= self._look_seconds
        self._alarmed = False
