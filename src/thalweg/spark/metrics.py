"""Feeds the explanation (`tw.explain`) of running streams to a function, micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from thalweg.keywords import checks_keywords
from thalweg.spark import runs
from thalweg.spark.explain import explanation_of
from thalweg.spark.interruptions import STOPPED
from thalweg.spark.plan_text import keys_in_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

DRAIN_MILLISECONDS = 10_000  # that closing waits for events that Spark has not delivered yet

log = logging.getLogger(__name__)


class Metrics(StreamingQueryListener):
    """Calls a function with the metrics of each micro-batch of a query that runs with Thalweg.

    `latest` holds the last metrics of each query, by its id. `close` takes the listener off again, once the function
    has had all micro-batches until then. An error of the function is logged at once, and raised again by `close`.
    `ended` is called with the explanation of each query that has ended, and with its error, if it had any.

    Examples
    --------
    >>> metrics = Metrics(spark, lambda told: print(told["batch"], told["wheres"][0]["order"]))  # doctest: +SKIP
    """

    @checks_keywords("tw.Metrics")
    def __init__(
        self,
        spark: SparkSession,
        function: Callable[[dict[str, Any]], None] | None = None,
        ended: Callable[[dict[str, Any], str | None], None] | None = None,
    ) -> None:
        self.latest: dict[str, dict[str, Any]] = {}
        self.errors: list[Exception] = []
        self._spark = spark
        self._function = function
        self._ended = ended
        self._runs: dict[str, list[runs.Run]] = {}
        # Spark waits for its listeners, and they may not ask it anything meanwhile: the work is done elsewhere.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="thalweg-metrics")
        spark.streams.addListener(self)

    @classmethod
    def of_active_session(
        cls, function: Callable[[dict[str, Any]], None], ended: Callable[[dict[str, Any], str | None], None]
    ) -> Metrics | None:
        """The metrics of the session that is active; None if there is none yet."""
        from pyspark.sql import SparkSession

        # The active session is known only to the thread that made it.
        spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # noqa: SLF001
        return None if spark is None else cls(spark, function, ended)

    def close(self) -> None:
        """Stop listening, once the function has had all micro-batches so far; raise its first error, if it had any."""
        if hasattr(self._spark, "_jsparkSession"):  # Connect delivers events in its own time
            with contextlib.suppress(Exception):  # events that Spark has not delivered by then are lost with it
                self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(DRAIN_MILLISECONDS)  # noqa: SLF001
        self._spark.streams.removeListener(self)
        self._worker.shutdown()
        if self.errors:
            raise self.errors[0]

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Look into the query's plan now: a short query is gone when its first progress is told."""
        self._submit(self._find, str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        progress = event.progress
        about = {
            "id": str(progress.id),
            "query": progress.name,
            "batch": progress.batchId,
            "input_rows": progress.numInputRows,
            "rows_per_second": progress.processedRowsPerSecond,
            "batch_seconds": progress.durationMs.get("triggerExecution", 0) / 1000,
            "lag_seconds": lag_seconds(progress.timestamp, progress.eventTime.get("max")),
        }
        self._submit(self._feed, about)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing has happened."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The query's last metrics stay; its plan is forgotten behind the events that came before."""
        self._submit(self._end, str(event.id), event.exception)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> None:  # noqa: ANN401 - as the function takes them
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._worker.submit(self._guarded, function, *arguments)

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> None:  # noqa: ANN401 - as above
        try:
            function(*arguments)
        except Exception as error:  # it would be lost in the thread
            log.exception("the metrics of a micro-batch were not told")
            self.errors.append(error)

    def _feed(self, about: dict[str, Any]) -> None:
        found = self._find(about["id"])
        if found:
            metrics = about | explanation_of(found).to_dict()
            self.latest[about["id"]] = metrics
            if self._function is not None:
                self._function(metrics)

    def _end(self, query: str, error: str | None) -> None:
        found = self._runs.pop(query, None)
        if found and self._ended is not None:
            was_stopped = error is not None and STOPPED in error  # by the user: Spark calls it an error
            self._ended(explanation_of(found).to_dict(), None if was_stopped else error)

    def _find(self, query: str) -> list[runs.Run]:
        """The runs of a query; its plan is looked through until they are found.

        A query that is started again from its checkpoint has its old id, and may be driven by another run.
        """
        attached = runs.attached_to(query)
        if attached is not None:
            self._runs[query] = [attached]
        elif not self._runs.get(query):
            running = next((each for each in self._spark.streams.active if str(each.id) == query), None)
            self._runs[query] = runs.find(keys_in_plan(running)) if running is not None else []
        return self._runs[query]


def lag_seconds(started: str, latest: str | None) -> float | None:
    """How far the latest event time of a micro-batch lies behind the time at which the micro-batch began.

    Spark tells event times only of queries with a watermark, and its times of day are texts in UTC.

    >>> lag_seconds("2026-01-01T00:00:09.000Z", "2026-01-01T00:00:07.500Z")
    1.5
    >>> lag_seconds("2026-01-01T00:00:09.000Z", None) is None
    True
    """
    if latest is None:
        return None
    return (datetime.fromisoformat(started) - datetime.fromisoformat(latest)).total_seconds()
