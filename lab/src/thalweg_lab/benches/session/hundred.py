"""hundred: a hundred queries of one stream, from twenty distinct conditions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, part_of, race
from thalweg_lab.benches.session.contenders import APART, run_apart, run_session
from thalweg_lab.benches.session.work import STREAMS, Packets, files, hundred
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "hundred"
ROWS, BATCHES, ROUNDS = 100_000, 8, 3
TRIES = 3  # of each contender in a round: single runs of some seconds differ by a quarter
FEW = 10  # queries to compare the time of a round with


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """Against a hundred streaming queries of Spark, which run once, and against a tenth of the queries."""
    queries = hundred()
    few = dict(list(queries.items())[:FEW])
    with files(Packets({name: [rows // 20] * 2 for name in STREAMS})) as folder:
        run_session(spark, folder, queries)
        run_apart(spark, folder, few)
    note = f"{len(queries)} queries of one stream, {batches} micro-batches of {rows:,} rows, to files"
    with files(Packets({name: [rows if name == STREAMS[0] else 1] * batches for name in STREAMS})) as folder:
        session = partial(run_session, spark, folder, queries)
        contenders = {THALWEG: session, APART: partial(run_apart, spark, folder, queries)}
        apart = race(NAME, contenders, 1, part_of(tick, 0, 2), note)
        control = race(NAME, {THALWEG: session, AGAIN: session}, rounds, part_of(tick, 1, 2), note, tries=TRIES)
        tenth = [min(run_session(spark, folder, few).seconds for _ in range(TRIES)) for _ in range(rounds)]
    ratio = sorted(control.seconds[THALWEG])[rounds // 2] / sorted(tenth)[rounds // 2]
    return [
        apart.faster(APART, 20),
        at_most(
            NAME, f"times the time with {FEW} of the queries", ratio, 3, f"{control.note}; medians of {rounds} rounds"
        ),
        control.control(),
    ]
