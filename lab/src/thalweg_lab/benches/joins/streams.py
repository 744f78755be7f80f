"""Runs a workload on Spark as streams of files, by `tw.join` or by Spark's own joins, and times it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from thalweg.spark.checkpoint_files import SETTING
from thalweg.spark.joins.plan import CHANGELOG, PROVIDER
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Measurement, Tick, part_of, race
from thalweg_lab.benches.joins.cells import drive, prepared
from thalweg_lab.benches.joins.work import FILL, JoinWorkload
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIGURED = (PROVIDER, CHANGELOG, SETTING)  # the settings that tw.configure may change
DELAY = "1 second"
CONTROL_ROUNDS = 9  # of five, the median still varied by a tenth
RUNS = 3  # of `tw.join` beside one run of Spark's joins, whose times vary less, as they are longer
WARM_UP = 20  # times as many rows as in the untimed run come in the timed runs
SPARK = "Spark's chained joins"

Streams = dict[str, "DataFrame"]
Make = Callable[["SparkSession", Streams, JoinWorkload], "DataFrame"]


@contextmanager
def files(workload: JoinWorkload) -> Iterator[str]:
    """The workload as files, a file for each stream and batch."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-", ignore_cleanup_errors=True) as folder:
        for number, tables in enumerate(workload.batches):
            for name, table in tables.items():
                path = Path(folder, name, f"{number}.parquet")
                path.parent.mkdir(exist_ok=True)
                parquet.write_table(table, path)
                os.utime(path, (10**9 + number, 10**9 + number))  # Spark reads the oldest first
        yield folder


@contextmanager
def configured(spark: SparkSession) -> Iterator[None]:
    """The settings that `tw.configure` makes, until the context ends."""
    import thalweg as tw

    with kept_settings(spark, CONFIGURED):
        tw.configure(spark)
        yield


@contextmanager
def kept_settings(spark: SparkSession, names: Sequence[str]) -> Iterator[None]:
    """Set these settings back when the context ends."""
    before = {name: spark.conf.get(name, None) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def against_spark(
    spark: SparkSession,
    tick: Tick,
    scenario: str,
    make_workload: Callable[[int, int], JoinWorkload],
    counts: tuple[int, int],
    target: float,
    about: dict[str, Any] | None = None,
) -> list[Result]:
    """`tw.join` and Spark's own joins, after an untimed run of either on few rows; and the control.

    Spark's joins take so long that one run says enough. Of `tw.join` there are several, whose median counts; the
    control has several rounds.
    """
    rows, batches = counts
    small, workload = make_workload(max(rows // WARM_UP, 1), 1), make_workload(rows, batches)
    drive(small.query, prepared(small))  # compiles all kernels
    with files(small) as folder:
        race(scenario, contenders_of(spark, folder, small), 1, lambda _done, _total: None, "")
    note = (
        f"{len(workload.names)} streams, {rows:,} rows a stream and batch, windows of {workload.window} batches, "
        f"{batches} batches counted"
    )
    with files(workload) as folder:
        contenders = contenders_of(spark, folder, workload)
        contenders[THALWEG]()  # the machine is not warm yet
        contenders[THALWEG] = partial(median_run, contenders[THALWEG], RUNS)
        found = race(
            scenario, contenders, 1, part_of(tick, 0, 2), f"{note}; Thalweg's time is the median of {RUNS} runs"
        )
        again = {name: partial(run, spark, folder, workload, thalweg_join, about) for name in (THALWEG, AGAIN)}
        control = race(scenario, again, CONTROL_ROUNDS, part_of(tick, 1, 2), note)
    return [found.faster(SPARK, target), control.control()]


def median_run(contender: Callable[[], Measurement], runs: int) -> Measurement:
    """The run with the median time, of several runs that must give the same results."""
    measured = sorted((contender() for _ in range(runs)), key=lambda each: each.seconds)
    if len({(each.rows, each.checksum) for each in measured}) > 1:
        raise AssertionError(f"runs gave different results: {measured}")
    return measured[runs // 2]


def contenders_of(spark: SparkSession, folder: str, workload: JoinWorkload) -> dict[str, Callable[[], Measurement]]:
    """`tw.join` and Spark's own joins."""
    return {
        THALWEG: partial(run, spark, folder, workload, thalweg_join),
        SPARK: partial(run, spark, folder, workload, ChainedJoin(workload.names)),
    }


def run(
    spark: SparkSession,
    folder: str,
    workload: JoinWorkload,
    make: Make,
    about: dict[str, Any] | None = None,
    skip: int = len(FILL),
) -> Measurement:
    """Join the streams of a folder; the time is that of the batches after filling, planning and state included."""
    import thalweg as tw

    frames = {name: stream_of(spark, f"{folder}/{name}") for name in workload.names}
    answers: dict[int, tuple[int, int]] = {}
    total = " + ".join(f"coalesce({name}_v, -1)" for name in workload.names)  # NULL where a row has no match

    def take(results: DataFrame, number: int) -> None:
        rows, checksum = results.selectExpr("count(*)", f"coalesce(sum({total}), 0)").collect()[0]
        answers[number] = rows, checksum

    # Spark's own joins are faster with the state store that it has by default.
    settings = nullcontext() if isinstance(make, ChainedJoin) else configured(spark)
    with settings, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        joined = make(spark, frames, workload)
        writer = joined.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        if about is not None:
            about |= tw.explain(query).to_dict()["joins"][0]
        progress = query.recentProgress
    counted = range(skip, len(workload.batches))
    seconds = sum(report.durationMs["triggerExecution"] / 1e3 for report in progress if report.batchId in counted)
    rows, checksum = (sum(answer[place] for answer in answers.values()) for place in range(2))
    return Measurement(rows, checksum, seconds)


def thalweg_join(
    spark: SparkSession,  # noqa: ARG001 - as all
    frames: Streams,
    workload: JoinWorkload,
    **options: Any,  # noqa: ANN401 - of tw.join
) -> DataFrame:
    """By `tw.join`."""
    import thalweg as tw

    return tw.join(
        frames,
        on=workload.condition,
        windows=f"{workload.seconds} seconds",
        event_time="ts",
        delay=DELAY,
        select=[f"{name}.v" for name in workload.names],
        how=workload.how,
        **options,
    )


@dataclass(frozen=True)
class ChainedJoin:
    """By Spark's own stream-stream joins, one after the other, in an order.

    Spark allows for one column of event time after a join: here the first stream's. The other columns of time become
    numbers, which the last condition compares, so that the results are those of a window over all streams.
    """

    order: tuple[str, ...]

    def __call__(self, spark: SparkSession, frames: Streams, workload: JoinWorkload) -> DataFrame:
        """The joined streams."""
        for name, frame in frames.items():
            frame.withWatermark("ts", DELAY).createOrReplaceTempView(f"bench_{name}")
        first, *others = self.order
        columns = [column for column in frames[first].columns if column != "ts"]
        spark.sql(
            f"SELECT {', '.join(f'{column} AS {first}_{column}' for column in columns)}, ts FROM bench_{first}"  # noqa: S608 - ours
        ).createOrReplaceTempView("bench_joined")
        joined = [first]
        for name in others:
            frame = spark.sql(_step(workload, joined, name, frames[name].columns))
            frame.createOrReplaceTempView("bench_joined")
            joined.append(name)
        return spark.table("bench_joined")


def _step(workload: JoinWorkload, joined: Sequence[str], name: str, columns: Sequence[str]) -> str:
    """One more stream, as SQL."""
    within = workload.seconds * 1_000_000
    equal = [
        f"l.{other}_{theirs} = r.{dict(equality)[name]}"
        for equality in workload.on
        if name in dict(equality)
        for other, theirs in equality
        if other in joined
    ]
    near = [
        f"r.ts > l.ts - INTERVAL {workload.seconds} SECONDS AND r.ts < l.ts + INTERVAL {workload.seconds} SECONDS",
        *(f"abs(unix_micros(r.ts) - l.{other}_time) < {within}" for other in joined[1:]),
    ]
    how = workload.how.upper()
    taken = ", ".join(f"r.{column} AS {name}_{column}" for column in columns if column != "ts")
    return (
        f"SELECT l.*, {taken}, unix_micros(r.ts) AS {name}_time FROM bench_joined l {how} JOIN bench_{name} r "  # noqa: S608 - ours
        f"ON {' AND '.join([*equal, *near])}"
    )


def stream_of(spark: SparkSession, folder: str) -> DataFrame:
    """The files of a folder, one a micro-batch."""
    schema = spark.read.parquet(folder).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
