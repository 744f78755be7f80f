"""native-stream-drift: the condition that drops most rows changes; Thalweg plans each micro-batch anew."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Measurement, Tick, race
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "native-stream-drift"
ROWS, ROUNDS = 4_000_000, 1  # rows a micro-batch
PHASES, BATCHES = 2, 10  # micro-batches a phase
FEW, MOST = 2, 95  # per cent of the rows that a quick condition keeps in its own phase, and in the others
SLOW = "s rlike '(u|s|e|r|-|[0-9])+@.*[.]org$'"  # keeps all
QUICK = tuple(f"t{number} rlike '^keep'" for number in range(PHASES))

WRITTEN, CLAIRVOYANT = "the written order", "a clairvoyant"

Take = Callable[["DataFrame", int], None]
Start = Callable[["DataFrame", Take, str], Any]  # from a stream, a function of kept rows, and a folder to a query


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS, batches: int = BATCHES
) -> list[Result]:
    """Against plain `foreachBatch` in the written order and in the best order of each micro-batch."""

    def contenders(rows: int, batches: int) -> dict[str, Callable[[], Measurement]]:
        def known(number: int) -> tuple[str, ...]:
            own = min(number // batches, PHASES - 1)
            return (QUICK[own], *(condition for condition in QUICK if condition != QUICK[own]), SLOW)

        starts: dict[str, Start] = {
            THALWEG: _start_driven,
            AGAIN: _start_driven,
            WRITTEN: partial(_start_plain, lambda _number: (SLOW, *QUICK)),
            CLAIRVOYANT: partial(_start_plain, known),
        }
        frame = _source(spark, rows, batches)
        return {name: partial(_run, frame, start, PHASES * batches) for name, start in starts.items()}

    race(NAME, contenders(max(rows // 10, 1), 2), 1, lambda _done, _total: None, "")
    note = (
        f"{PHASES} phases of {batches} micro-batches of {rows:,} rows, the first left out; what the function of "
        f"foreachBatch takes, planning and sampling included"
    )
    found = race(NAME, contenders(rows, batches), rounds, tick, note)
    return [found.faster(WRITTEN, 3), found.faster(CLAIRVOYANT, 0.85), found.control()]


def _source(spark: SparkSession, rows: int, batches: int) -> DataFrame:
    """A stream of micro-batches with this many rows each, whose texts change with the phase."""
    texts = (
        f"if(pmod(xxhash64(value, {number}), 100) < if(value div {rows * batches} = {number}, {FEW}, {MOST}), "
        f"'keep', 'drop') as t{number}"
        for number in range(PHASES)
    )
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=2, startTimestamp=0)
    return stream.load().selectExpr("value as id", "concat('user-', value, '@example.org') as s", *texts)


def _start_driven(frame: DataFrame, take: Take, folder: str) -> Any:  # noqa: ANN401 - a streaming query
    import thalweg as tw

    return tw.stream(frame, SLOW, *QUICK, checkpoint=folder).foreach_batch(take)


def _start_plain(order: Callable[[int], tuple[str, ...]], frame: DataFrame, take: Take, folder: str) -> Any:  # noqa: ANN401 - as above
    def run(batch: DataFrame, number: int) -> None:
        take(batch.where(" AND ".join(order(number))), number)

    return frame.writeStream.foreachBatch(run).option("checkpointLocation", folder).start()


def _run(frame: DataFrame, start: Start, batches: int) -> Measurement:
    """Run a stream for this many micro-batches; the first is a warm-up and does not count."""
    answers: dict[int, tuple[int, int]] = {}
    enough = threading.Event()

    def take(kept: DataFrame, number: int) -> None:
        if number >= batches:
            enough.set()
            return
        count, checksum = kept.selectExpr("count(*)", "coalesce(sum(id), 0)").collect()[0]
        answers[number] = count, checksum

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Spark may still be writing to it
        query = start(frame, take, folder)
        while not enough.wait(0.05) and query.isActive:
            pass
        spent = {progress.batchId: progress.durationMs["addBatch"] / 1e3 for progress in query.recentProgress}
        query.stop()
        if failure := query.exception():
            raise failure
    counted = range(1, batches)
    rows, checksum = (sum(answers[number][place] for number in counted) for place in range(2))
    return Measurement(rows, checksum, sum(spent[number] for number in counted))
