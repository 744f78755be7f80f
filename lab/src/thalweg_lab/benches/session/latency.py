"""latency: the time from the end of a round to its results in the sink, beside that of one streaming query of Spark.

A thousand rows a second come in real time: every tenth of a second a file, whose rows have the times since the file
before. Both contenders write Parquet files, and a round's results count as delivered when its files are written. They
take turns, and the results of both have to be those of the rows that came.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from thalweg_lab.benches.filters.race import THALWEG, Tick
from thalweg_lab.benches.session.work import SECOND, STREAMS, packets
from thalweg_lab.results import Result, claim

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "latency"
RATE, SECONDS, TURNS = 1_000, 35.0, 2  # rows a second; seconds of each turn of a contender
WARM_UP = 5.0  # seconds of a first turn that is not counted, and of the beginning of each turn
FILE_SECONDS = 0.1
STREAM = STREAMS[0]
SCHEMA = "ts timestamp, src bigint, dest bigint, size bigint, flags string"
SIZE = 700
QUERY = f"SELECT dest, count(*) AS n FROM {STREAM} WHERE size > {SIZE} GROUP BY dest WINDOW [1]"  # noqa: S608 - ours
SPARK = "a streaming query of Spark"
PERCENTILES = (50, 99)

Start = Callable[["SparkSession", "DataFrame", str, dict[int, float]], "StreamingQuery"]
Groups = dict[tuple[int, int], int]  # from the end of a round in microseconds and a destination to its number of rows


@dataclass(frozen=True)
class ContenderRun:
    """One run of a contender: the time when each round's results were there, and the results."""

    delivered: dict[int, float]  # by the end of the round in microseconds: seconds after that end
    groups: Groups


def measure(
    spark: SparkSession,
    tick: Tick,
    *,
    seconds: float = SECONDS,
    warm_up: float = WARM_UP,
    turns: int = TURNS,
) -> list[Result]:
    """The median and the 99th percentile of both, which take turns."""
    contenders: dict[str, Start] = {THALWEG: start_session, SPARK: start_streaming_query}
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for start in contenders.values():
        take_turn(spark, start, warm_up)  # compiles what there is to compile
    for turn in range(turns):
        for place, (name, start) in enumerate(contenders.items()):
            delivered = take_turn(spark, start, seconds).delivered
            first = min(delivered) / SECOND
            spent[name] += [after for end, after in delivered.items() if end / SECOND - first >= warm_up]
            tick(turn * len(contenders) + place + 1, turns * len(contenders))
    note = f"{RATE:,} rows a second, window of 1 s, a file each {FILE_SECONDS:g} s, to Parquet files"
    return [
        claim(
            NAME,
            f"{name}, ms from the end of a round to its results, p{percentile}",
            1e3 * float(np.percentile(of, percentile)),
            "beside Spark's",
            holds=True,
            note=f"{note}; {len(of)} rounds, in turns of {seconds:g} s",
        )
        for name, of in spent.items()
        for percentile in PERCENTILES
    ]


def take_turn(spark: SparkSession, start: Start, seconds: float) -> ContenderRun:
    """Run a contender while files come."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder, "stream").mkdir()
        stream = spark.readStream.schema(SCHEMA).parquet(f"{folder}/stream")
        written: dict[int, float] = {}  # from the number of a micro-batch to the time when its results were written
        running = start(spark, stream, folder, written)
        try:
            with ThreadPoolExecutor(1) as executor:
                came = executor.submit(drop_files, f"{folder}/stream", seconds).result()
            running.processAllAvailable()
        finally:
            running.stop()
        turn = read_results(f"{folder}/results", written)
    expected = expected_groups(came, set(turn.delivered))
    if not turn.groups or turn.groups != expected:
        raise AssertionError(f"{len(turn.groups)} groups were delivered, not {len(expected)}, or with other counts")
    return turn


def start_session(spark: SparkSession, stream: DataFrame, folder: str, written: dict[int, float]) -> StreamingQuery:
    """A session with one query."""
    import thalweg as tw
    from thalweg.spark.session.sinks import Delivery, FolderSink

    class TimedFolder(FolderSink):
        def deliver(self, delivery: Delivery) -> None:
            super().deliver(delivery)
            written[delivery.number] = time.time()

    session = tw.Session(spark, checkpoint=f"{folder}/checkpoint")
    session.stream(STREAM, stream, event_time="ts")
    session.query(QUERY, to=TimedFolder(f"{folder}/results"))
    return session.start()


def start_streaming_query(
    spark: SparkSession,  # noqa: ARG001 - as all contenders are started
    stream: DataFrame,
    folder: str,
    written: dict[int, float],
) -> StreamingQuery:
    """Spark's own windows, each put out when the watermark has passed it."""
    from thalweg_lab.benches.session.plain import in_spark, parsed

    def write(results: DataFrame, number: int) -> None:
        results.write.parquet(f"{folder}/results/{batch_name(number)}")
        written[number] = time.time()

    results = in_spark(parsed(QUERY), {STREAM: stream})
    writer = results.writeStream.outputMode("append").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.foreachBatch(write).start()


def drop_files(folder: str, seconds: float) -> pa.Table:
    """Write files in real time; returns all rows."""
    rows, tables = round(RATE * FILE_SECONDS), list[pa.Table]()
    start = time.time()
    for number in range(round(seconds / FILE_SECONDS)):
        begin, end = (start + (number + more) * FILE_SECONDS for more in (0, 1))
        times = np.linspace(begin * SECOND, end * SECOND, rows, endpoint=False).astype(np.int64)
        table = packets(STREAM, number, rows)
        table = table.set_column(0, "ts", pa.array(times, pa.timestamp("us", tz="UTC")))
        time.sleep(max(end - time.time(), 0.0))
        unseen = Path(folder, f"_{number:06d}.parquet")  # by Spark, which leaves out such names
        parquet.write_table(table, unseen)
        unseen.rename(unseen.with_name(unseen.name[1:]))
        tables.append(table)
    return pa.concat_tables(tables)


def batch_name(number: int) -> str:
    """How the names of a micro-batch's files begin, as those of a session do."""
    return f"batch-{number:09d}"


def read_results(folder: str, written: dict[int, float]) -> ContenderRun:
    """The results of all micro-batches."""
    turn = ContenderRun({}, {})
    for number, at in written.items():
        for path in Path(folder).glob(f"{batch_name(number)}*"):
            table = parquet.read_table(path, columns=["round_end", "dest", "n"])
            ends = table.column("round_end").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
            turn.groups.update(
                zip(
                    zip(ends, table.column("dest").to_pylist(), strict=True), table.column("n").to_pylist(), strict=True
                )
            )
            turn.delivered.update((end, at - end / SECOND) for end in set(ends))
    return turn


def expected_groups(came: pa.Table, ends: set[int]) -> Groups:
    """The results of these rounds."""
    kept = came.filter(pc.field("size") > SIZE)
    times = kept.column("ts").cast(pa.int64()).to_numpy()
    groups: Groups = {}
    for end, dest in zip((-(-times // SECOND) * SECOND).tolist(), kept.column("dest").to_pylist(), strict=True):
        if end in ends:
            groups[end, dest] = groups.get((end, dest), 0) + 1
    return groups
