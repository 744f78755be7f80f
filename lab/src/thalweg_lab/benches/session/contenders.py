"""The contenders: a session, as many streaming queries of Spark, and one program that shares by hand."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters.race import Measurement
from thalweg_lab.benches.session.work import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from thalweg.spark.session.logs import BatchRecord

APART, BY_HAND = "a streaming query of Spark for each", "one foreachBatch that shares by hand"


def streams_of(spark: SparkSession, folder: str) -> dict[str, DataFrame]:
    """The streams, a file of each a micro-batch."""
    schema = spark.read.parquet(f"{folder}/{STREAMS[0]}").schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return {name: reader.parquet(f"{folder}/{name}") for name in STREAMS}


def run_session(
    spark: SparkSession,
    folder: str,
    queries: Mapping[str, str],
    options: Mapping[str, Any] = MappingProxyType({}),
    fixed: Mapping[str, int] = MappingProxyType({}),
) -> Measurement:
    """All queries in a session, to files.

    `options` are those of every query; `fixed` has the number of the join tree that a query always runs, by its name.
    """
    return run_capped(spark, folder, queries, None, options, fixed)[0]


def run_capped(
    spark: SparkSession,
    folder: str,
    queries: Mapping[str, str],
    memory: int | None,
    options: Mapping[str, Any] = MappingProxyType({}),
    fixed: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Measurement, list[BatchRecord]]:
    """All queries in a session with a memory cap, to files; and what it noted of each micro-batch."""
    import thalweg as tw
    from thalweg_lab.benches.session.fixed_plan import fixed_plan

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        start = time.perf_counter()
        session = tw.Session(spark, checkpoint=f"{place}/checkpoint", memory=memory)
        for name, frame in streams_of(spark, folder).items():
            session.stream(name, frame, event_time="ts")
        for name, text in queries.items():
            query = session.query(text, name=name, to=f"{place}/{name}", **options)
            if name in fixed:
                # A session has no fixed plans: nobody but a benchmark needs them.
                query._scheduler = fixed_plan(fixed[name])  # noqa: SLF001
        session.start(availableNow=True).awaitTermination()
        seconds = time.perf_counter() - start
        failed = [
            about for about in session.explain().to_dict()["sessions"][0]["queries"] if about["status"] != "served"
        ]
        if failed or session.engine is None:
            raise AssertionError(f"queries failed: {failed}")
        return _measured(spark, place, queries, seconds), list(session.engine.log)


def run_apart(spark: SparkSession, folder: str, queries: Mapping[str, str]) -> Measurement:
    """A streaming query for each, all at once, to files."""
    from thalweg_lab.benches.session.plain import in_spark, parsed

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        start = time.perf_counter()
        running = []
        for name, text in queries.items():
            results = in_spark(parsed(text), streams_of(spark, folder))
            writer = results.writeStream.format("parquet").option("path", f"{place}/{name}")
            writer = writer.option("checkpointLocation", f"{place}/checkpoint/{name}").trigger(availableNow=True)
            running.append(writer.start())
        for query in running:
            query.awaitTermination()
        return _measured(spark, place, queries, time.perf_counter() - start)


def run_by_hand(spark: SparkSession, folder: str, queries: Mapping[str, str]) -> Measurement:
    """One streaming query whose function caches the micro-batch and writes the results of each query."""
    from thalweg_lab.benches.session.plain import in_spark, of_stream, parsed, tagged

    asked = {name: parsed(text) for name, text in queries.items()}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:

        def write_all(batch: DataFrame, number: int) -> None:  # noqa: ARG001 - as Spark calls it
            cached = batch.persist()
            streams = {name: of_stream(cached, name) for name in STREAMS}
            for name, query in asked.items():
                in_spark(query, streams).write.mode("append").parquet(f"{place}/{name}")
            cached.unpersist()

        start = time.perf_counter()
        writer = tagged(streams_of(spark, folder)).writeStream.foreachBatch(write_all)
        writer = writer.option("checkpointLocation", f"{place}/checkpoint").trigger(availableNow=True)
        writer.start().awaitTermination()
        return _measured(spark, place, queries, time.perf_counter() - start)


def _measured(spark: SparkSession, place: str, queries: Mapping[str, str], seconds: float) -> Measurement:
    """What was written: rows and checksum over all queries."""
    from thalweg_lab.benches.session.plain import checksum

    rows = total = 0
    for name in queries:
        if any(Path(place, name).glob("*.parquet")):  # of a query that has results
            count, sums = checksum(spark.read.parquet(f"{place}/{name}"))
            rows, total = rows + count, total + sums
    return Measurement(rows, total, seconds)
