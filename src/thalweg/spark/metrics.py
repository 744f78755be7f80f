"""Feeds the explanation (`tw.explain`) of running streams to a function, micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from thalweg.spark import runs
from thalweg.spark.explain import explanation_of
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

    `latest` holds the last ones of each query, by its id. `close` takes the listener off again, when all that has
    happened until then was told. An error of the function is logged at once, and raised again by `close`.

    Examples
    --------
    >>> metrics = Metrics(spark, lambda told: print(told["batch"], told["wheres"][0]["order"]))  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, function: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.latest: dict[str, dict[str, Any]] = {}
        self.errors: list[Exception] = []
        self._spark = spark
        self._function = function
        self._runs: dict[str, list[runs.Run]] = {}
        # Spark waits for its listeners, and they may not ask it anything meanwhile: the work is done elsewhere.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="thalweg-metrics")
        spark.streams.addListener(self)

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
        }
        self._submit(self._feed, about)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing has happened."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The query's last metrics stay; its plan is forgotten behind the events that came before."""
        self._submit(self._runs.pop, str(event.id), None)

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

    def _find(self, query: str) -> list[runs.Run]:
        """The runs of a query; its plan is looked through until they are found."""
        if not self._runs.get(query):
            attached = runs.attached_to(query)
            if attached is not None:
                self._runs[query] = [attached]
            else:
                running = next((each for each in self._spark.streams.active if str(each.id) == query), None)
                self._runs[query] = runs.find(keys_in_plan(running)) if running is not None else []
        return self._runs[query]
