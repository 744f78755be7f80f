"""Act three: six standing queries, once as six streaming queries of Spark and once as one session.

In each phase another of the three streams is scarce, so that another join order is the best one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

import thalweg as tw
from thalweg_lab.benches.session.bursty import HOSTS, OPTIONS, QUERIES, SCARCE, USUAL
from thalweg_lab.benches.session.work import SECONDS, STREAMS, TEN, packets, row_that_ends_rounds
from thalweg_lab.demo.in_turns import PLAIN, THALWEG, Contender, Tables, overall, steps_of, stopped_at_the_end
from thalweg_lab.demo.ratios import Ratio, require_same
from thalweg_lab.demo.tell import told_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE = "Standing queries: six queries of three streams, tw.Session beside six queries of Spark"
ROWS = 30_000  # of a stream that is not scarce, a micro-batch
SIX = QUERIES | {name: TEN[name] for name in ("tcp to 2", "tcp by source", "udp by host", "small syn")}


def play(spark: SparkSession, console: Console, folder: Path, seconds: float, seed: int) -> list[Ratio]:
    """Run the act, and return what was measured."""
    from thalweg_lab.benches.session.plain import in_spark, parsed

    def make(number: int, phase: int) -> Tables:
        return {stream: make_packets(stream, number, phase, seed) for stream in STREAMS}

    schemas = {name: table.schema for name, table in make(0, 0).items()}
    plain, thalweg = (Contender(name, folder / name) for name in (PLAIN, THALWEG))
    streams = {each.name: each.frames(spark, schemas) for each in (plain, thalweg)}
    steps = []
    options: dict[str, Any] = dict(OPTIONS)
    session = tw.Session(spark, checkpoint=folder / "session")
    with stopped_at_the_end(plain, thalweg), told_steps(console) as tell:
        for place, text in enumerate(SIX.values()):
            results = in_spark(parsed(text), streams[PLAIN])
            writer = results.writeStream.format("parquet").option("path", str(plain.folder / f"result{place}"))
            plain.running.append(writer.option("checkpointLocation", plain.checkpoint).start())
        for name, frame in streams[THALWEG].items():
            session.stream(name, frame, event_time="ts")
        for place, (name, text) in enumerate(SIX.items()):
            session.query(text, name=name, to=thalweg.folder / f"result{place}", **options)
        thalweg.running.append(session.start())
        for step in steps_of((plain, thalweg), make, seconds):
            steps.append(step)
            tell(step, _chart(session.explain().to_dict()["sessions"][0]))
        last = {stream: row_that_ends_rounds((len(steps) + 10) * SECONDS) for stream in STREAMS}
        for contender in (plain, thalweg):
            contender.feed(last, len(steps))
    found = {contender.name: _result_rows(spark, contender) for contender in (plain, thalweg)}
    require_same("results of the queries", found)
    return [Ratio.of_rates("packets a second", overall(steps))]


def make_packets(stream: str, number: int, phase: int, seed: int) -> pa.Table:
    """The packets of a stream in a micro-batch, and a row that ends its rounds."""
    share, large = SCARCE if stream == STREAMS[phase % len(STREAMS)] else USUAL
    found = packets(stream, number, max(round(share * ROWS), 1), HOSTS, large, seed)
    return pa.concat_tables([found, row_that_ends_rounds((number + 1) * SECONDS)])


def _result_rows(spark: SparkSession, contender: Contender) -> list[int]:
    counts = []
    for place in range(len(SIX)):
        folder = contender.folder / f"result{place}"
        counts.append(spark.read.parquet(str(folder)).count() if any(folder.glob("*.parquet")) else 0)
    return counts


def _chart(about: dict[str, Any]) -> str:
    """What the charts of the joins have done."""
    joins = [query for query in about["queries"] if query["plans_that_differ_in_spark"] > 1]
    told = [f"{query['name']} {query['moves']} and {query['switches']}" for query in joins]
    return f"moves on the chart, and switches to another plan: {'; '.join(told)}"
