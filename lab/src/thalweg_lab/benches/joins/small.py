"""small: micro-batches of few rows, whose time is that of planning, of starting tasks and of committing state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from thalweg.spark.checkpoint_files import BY_FILE_SYSTEM, SETTING
from thalweg_lab.benches.filters.race import AGAIN, Measurement, Tick, part_of, race
from thalweg_lab.benches.joins.streams import (
    SPARK,
    ChainedJoin,
    contenders_of,
    files,
    kept_settings,
    run,
    thalweg_join,
)
from thalweg_lab.benches.joins.work import FILL, JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "small"
STREAMS = ("A", "B", "C", "D")
ROWS, NUMBERS_OF_STREAMS = (10, 1000), (2, 4)  # rows a stream and micro-batch
WINDOW, BATCHES, ROUNDS = 10, 10, 3
MOST = 0.8  # of the time that Spark's own joins take
RENAMED = f"{SPARK}, with files renamed as tw.configure lets them"  # Spark's joins gain from that setting, too


def make_workload(rows: int, streams: int, batches: int) -> JoinWorkload:
    """A row matches one row in the window of each other stream."""
    names = STREAMS[:streams]
    keys = {name: StreamKeys({"k": rows * WINDOW}, rows) for name in names}
    on = (tuple((name, "k") for name in names),)
    return JoinWorkload(on=on, window=WINDOW, batches=random_batches(keys, batches, FILL))


def measure(
    spark: SparkSession,
    tick: Tick,
    *,
    rows: Sequence[int] = ROWS,
    numbers_of_streams: Sequence[int] = NUMBERS_OF_STREAMS,
    batches: int = BATCHES,
    rounds: int = ROUNDS,
) -> list[Result]:
    """The time of a micro-batch, for each number of rows and of streams."""
    cases = [(number, streams) for streams in numbers_of_streams for number in rows]
    results: list[Result] = []
    for place, (number, streams) in enumerate(cases):
        results += _case(
            spark, part_of(tick, place, len(cases)), make_workload(number, streams, batches), number, rounds
        )
    return results


def _case(spark: SparkSession, tick: Tick, workload: JoinWorkload, rows: int, rounds: int) -> list[Result]:
    label = f"{len(workload.names)} streams, {rows:,} rows"
    note = f"windows of {WINDOW} batches, {len(workload.batches) - len(FILL)} micro-batches"
    with files(workload) as folder:
        contenders = contenders_of(spark, folder, workload)
        race(NAME, contenders, 1, lambda _done, _total: None, note)  # the machine is not warm yet
        contenders[RENAMED] = partial(_with_files_renamed, spark, folder, workload)
        contenders[AGAIN] = partial(run, spark, folder, workload, thalweg_join)
        found = race(NAME, contenders, rounds, tick, note, label=label)
    return [found.slower(SPARK, MOST), found.slower(RENAMED, MOST), found.control()]


def _with_files_renamed(spark: SparkSession, folder: str, workload: JoinWorkload) -> Measurement:
    with kept_settings(spark, (SETTING,)):
        spark.conf.set(SETTING, BY_FILE_SYSTEM)
        return run(spark, folder, workload, ChainedJoin(workload.names))
