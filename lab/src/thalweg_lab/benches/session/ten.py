"""ten: seven single-stream queries and three joins over three shared streams."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, race
from thalweg_lab.benches.session.contenders import APART, BY_HAND, run_apart, run_by_hand, run_session
from thalweg_lab.benches.session.work import STREAMS, TEN, Packets, files
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "ten"
ROWS, BATCHES, ROUNDS = 100_000, 8, 3  # rows a stream and micro-batch
TRIES = 2  # of each contender in a round: single runs of some seconds differ by a quarter


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """The time from start to the last result in its sink."""
    with files(Packets({name: [rows // 20] * 2 for name in STREAMS})) as folder:
        for run in (run_session, run_apart, run_by_hand):
            run(spark, folder, TEN)  # compiles what there is to compile
    note = f"{len(TEN)} queries, {len(STREAMS)} streams, {batches} micro-batches of {rows:,} rows a stream, to files"
    with files(Packets({name: [rows] * batches for name in STREAMS})) as folder:
        contenders = {
            THALWEG: partial(run_session, spark, folder, TEN),
            AGAIN: partial(run_session, spark, folder, TEN),
            APART: partial(run_apart, spark, folder, TEN),
            BY_HAND: partial(run_by_hand, spark, folder, TEN),
        }
        found = race(NAME, contenders, rounds, tick, note, tries=TRIES)
    return [found.faster(APART, 3), found.faster(BY_HAND, 1.5), found.control()]
