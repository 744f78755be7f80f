"""Feeds what `tw.explain` knows of running streams to whoever wants it, micro-batch by micro-batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from thalweg.spark.explain import describe
from thalweg.spark.filters.stream import driven
from thalweg.spark.filters.where import Where, wheres_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class Metrics(StreamingQueryListener):
    """Calls a function with the metrics of each micro-batch of a query that filters with Thalweg.

    `latest` holds the last ones of each query, by its id. `close` takes the listener off again.

    Examples
    --------
    >>> metrics = Metrics(spark, lambda one: print(one["batch"], one["wheres"][0]["order"]))  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, function: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.latest: dict[str, dict[str, Any]] = {}
        self._spark = spark
        self._function = function
        self._wheres: dict[str, list[Where]] = {}
        # Spark waits for its listeners, and they may not ask it anything meanwhile: the work is done elsewhere.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="thalweg-metrics")
        spark.streams.addListener(self)

    def close(self) -> None:
        """Stop listening, when what has come in is worked off."""
        self._spark.streams.removeListener(self)
        self._worker.shutdown()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is known yet."""

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
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._worker.submit(self._feed, about)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing has happened."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Its last metrics stay."""
        self._wheres.pop(str(event.id), None)

    def _feed(self, about: dict[str, Any]) -> None:
        wheres = self._find(about["id"])
        if wheres:
            metrics = about | {"wheres": [describe(one) for one in wheres]}
            self.latest[about["id"]] = metrics
            if self._function is not None:
                self._function(metrics)

    def _find(self, query: str) -> list[Where]:
        """The filters of a query; its plan is looked through once."""
        if query not in self._wheres:
            if query in driven:
                self._wheres[query] = [driven[query]]
            else:
                try:
                    running = self._spark.streams.get(query)
                    self._wheres[query] = wheres_of(running) if running is not None else []
                except ValueError:
                    self._wheres[query] = []
        return self._wheres[query]
