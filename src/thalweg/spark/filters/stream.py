"""`tw.stream`: filters a stream micro-batch by micro-batch, and plans each anew.

A streaming DataFrame's plan is fixed when the query starts. Here every micro-batch is an ordinary DataFrame: a small
part of it tells in which order Spark shall run conditions and lookups on the rest. Learnt statistics are kept in the
checkpoint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from thalweg.drift import Detector
from thalweg.keywords import checks_keywords
from thalweg.ordering import Policy
from thalweg.spark import runs
from thalweg.spark.filters.choose import choose
from thalweg.spark.filters.evidence import evidence_of
from thalweg.spark.filters.file_sink import FileSink
from thalweg.spark.filters.lower import lower
from thalweg.spark.filters.query import FilterOptions, OnError, ask
from thalweg.spark.filters.routes import RouteBy
from thalweg.spark.filters.run import FilterRun, merge_reports, save_evidence, saved_evidence
from thalweg.spark.filters.sample_worth import has_choice
from thalweg.spark.filters.where import check_frame, record, sampled_rows
from thalweg.spark.first_rows import NoSampleError
from thalweg.spark.interruptions import brief_interruptions
from thalweg.spark.job_descriptions import described_jobs
from thalweg.spark.triggers import TRIGGERS, check_trigger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SAMPLING_SHARE = 0.05  # of the time that micro-batches take, which looking at them first may take
SLOWER = 1.5  # times the usual time: after a micro-batch that took so long, the next micro-batch is looked at
QUERY_ID = "sql.streaming.queryId"  # Spark's local property within a micro-batch


@checks_keywords("tw.stream")
def stream(
    frame: DataFrame,
    *predicates: Any,  # noqa: ANN401 - as in tw.where
    checkpoint: str | os.PathLike[str],
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "glr",
    route_by: RouteBy = None,
    on_error: OnError = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    quarantine_columns: str | Sequence[str] = (),
) -> FilteredStream:
    """A stream filtered by predicates, whose plan Thalweg chooses anew for every micro-batch.

    The other parameters are as for `tw.where`. `checkpoint` is the query's checkpoint location; learnt statistics are
    kept in it, and a query that is started again goes on where it was, with the order that it had.

    Examples
    --------
    >>> query = stream(logs, "status >= 500", is_odd, checkpoint="checkpoints/odd").to_files("odd")  # doctest: +SKIP
    """
    check_frame(frame, "tw.stream")
    if not frame.isStreaming:
        raise TypeError("tw.stream takes a streaming DataFrame; for a batch, write tw.where(df, ...)")
    if not hasattr(frame, "_jdf"):
        raise TypeError("tw.stream needs a classic session: with Spark Connect write tw.where(df, ...).writeStream...")
    place = os.path.expanduser(os.fspath(checkpoint)).rstrip("/")  # noqa: PTH111 - may be a URL
    options = FilterOptions(
        policy=policy,
        drift=drift,
        route_by=route_by,
        on_error=on_error,
        quarantine=quarantine,
        quarantine_columns=quarantine_columns,
        state=f"{place}/thalweg",
    )
    query = ask(frame, predicates, options, may_join=True)
    notes = merge_reports(query)
    evidence, unusable = saved_evidence(query)
    return FilteredStream(frame, record(query, evidence, [*notes, *unusable]), place)


class FilteredStream:
    """A filtered stream, as `tw.stream` returns it; it runs when it is told what to do with the rows."""

    def __init__(self, frame: DataFrame, run: FilterRun, checkpoint: str) -> None:
        self.thalweg_run = run
        self._frame = frame
        self._checkpoint = checkpoint
        self._planner = Replanner(run)

    @checks_keywords("foreach_batch", *TRIGGERS)
    def foreach_batch(
        self,
        function: Callable[[DataFrame, int], None],
        *,
        name: str | None = None,
        **trigger: Any,  # noqa: ANN401
    ) -> DrivenQuery:
        """Start, and call a function with the kept rows of every micro-batch and its number.

        After a failure a micro-batch may come again, with the same number and the same rows. `trigger` takes the
        arguments of Spark's ``DataStreamWriter.trigger``: ``availableNow=True`` or ``processingTime="10 seconds"``.
        """
        check_trigger(trigger, "tw.stream")
        planner, run = self._planner, self.thalweg_run
        job_description = f"thalweg where: {len(run.query.predicates)} predicates"

        def run_batch(batch: DataFrame, number: int) -> None:
            # Before Spark tells of the micro-batch, so that metrics find the run.
            query_id = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
            if query_id is not None:
                runs.attach(query_id, run)
            described = described_jobs(batch.sparkSession, job_description)
            with brief_interruptions(), described, planner.batch(batch) as kept:
                function(kept, number)

        writer = self._frame.writeStream.foreachBatch(run_batch).option("checkpointLocation", self._checkpoint)
        writer = writer.queryName(name) if name else writer
        started = (writer.trigger(**trigger) if trigger else writer).start()
        runs.attach(str(started.id), run)
        return DrivenQuery(started, run)

    @checks_keywords("to_files", *TRIGGERS)
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

        The files of a micro-batch are replaced as a whole if it comes again. Read the result with
        ``spark.read.parquet(path)``. Only one query writes to a folder: another query is refused.
        """
        check_trigger(trigger, "tw.stream")
        sink = FileSink(self._frame.sparkSession, os.fspath(path), self._checkpoint, format, options or {})
        sink.claim()
        return self.foreach_batch(sink.write, name=name, **trigger)


class DrivenQuery:
    """A running stream: Spark's `StreamingQuery`, and its run for `tw.explain`."""

    def __init__(self, query: StreamingQuery, run: FilterRun) -> None:
        self.query = query
        self.thalweg_run = run

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as Spark has it
        return getattr(self.query, name)


class Replanner:
    """Chooses the plan of each micro-batch, looking at a part of it first as often as that stays cheap."""

    def __init__(self, run: FilterRun, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self.run = run
        self.batches = self.samples = 0
        self._clock = clock
        self._credit = 0.0  # seconds that looking may take
        self._look_seconds = 0.0  # that it took last
        self._usual = 0.0  # seconds that a micro-batch takes
        self._is_alarmed = run.plan.evidence is None  # the next micro-batch is looked at, at any cost

    @contextmanager
    def batch(self, frame: DataFrame) -> Iterator[DataFrame]:
        """The rows of a micro-batch that are kept; the time until the context ends is taken for the micro-batch's."""
        if has_choice(self.run.query) and (self._is_alarmed or self._credit >= self._look_seconds):
            self._look(frame)
        start = self._clock()
        yield lower(self.run.query, self.run.plan, frame)
        self._note(self._clock() - start)

    def _note(self, seconds: float) -> None:
        """Learn how long a micro-batch took: it earns its share for looking, and is compared with the usual."""
        earned = SAMPLING_SHARE * seconds
        self._credit = min(self._credit + earned, self._look_seconds + earned)
        self._is_alarmed = bool(self.batches) and seconds > SLOWER * self._usual
        self._usual = 0.7 * self._usual + 0.3 * seconds if self.batches else seconds
        self.batches += 1

    def _look(self, frame: DataFrame) -> None:
        """Take a sample of a micro-batch, and plan by it."""
        run, start = self.run, self._clock()
        try:
            rows = sampled_rows(run.query, frame, None)
        except NoSampleError as error:
            run.note(f"a sample was not used: {error}")
        else:
            if len(rows):
                evidence = evidence_of(run.query, rows, run.plan.order)
                run.switch_to(choose(run.query, evidence, run.plan.order))
                failure = save_evidence(run.query, evidence)
                if failure:
                    run.note(failure)
        self.samples += 1
        self._look_seconds = self._clock() - start
        self._credit -= self._look_seconds
        self._is_alarmed = False
