"""Act two: the packets that four routers of a network have all seen, once by Spark's own joins and once by `tw.join`.

Four streams are joined on the packet's number, each with a window of ten minutes. Which router sees the fewest packets
changes from phase to phase.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from rich.console import Console

import thalweg as tw
from thalweg_lab.benches.joins.streams import CONFIGURED, DELAY, ChainedJoin, kept_settings
from thalweg_lab.benches.joins.work import BATCH_SECONDS, SECOND, START, JoinWorkload
from thalweg_lab.demo.in_turns import PLAIN, THALWEG, Contender, Tables, overall, steps_of, stopped_at_the_end
from thalweg_lab.demo.ratios import Ratio, require_same
from thalweg_lab.demo.tell import told_steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TITLE = "Four routers: a join of four streams, tw.join beside Spark's chained joins"
ROUTERS = ("R1", "R2", "R3", "R4")
WITHOUT_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
ON = "R1.pid = R2.pid AND R2.pid = R3.pid AND R3.pid = R4.pid"
WINDOW_MINUTES = 10
PACKETS = 20_000  # a minute, which is a micro-batch
SEEN_BY = (  # in each phase, the share of the packets that each router has seen
    (0.9, 0.2, 0.6, 0.8),
    (0.8, 0.9, 0.6, 0.2),
    (0.2, 0.6, 0.9, 0.8),
)
SCHEMA = pa.schema([("pid", pa.int64()), ("size", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])


def make_reports(seed: int, number: int, phase: int) -> Tables:
    """What each router reports in a minute: the packets that it has seen, with the moment."""
    random = np.random.default_rng([seed, number])
    minute = START + number * 60 * SECOND
    pid = number * PACKETS + np.arange(PACKETS)
    size = random.integers(40, 1500, PACKETS)
    sent = np.sort(random.integers(0, 55 * SECOND, PACKETS))
    tables = {}
    for router, share in zip(ROUTERS, SEEN_BY[phase], strict=True):
        seen = random.random(PACKETS) < share
        moments = minute + sent[seen] + random.integers(0, 5 * SECOND, int(seen.sum()))
        columns = [pid[seen], size[seen], pa.array(moments, pa.timestamp("us", "UTC"))]
        tables[router] = pa.table(columns, schema=SCHEMA)
    return tables


def play(spark: SparkSession, console: Console, folder: Path, seconds: float, seed: int) -> list[Ratio]:
    """Run the act, and return what was measured."""
    plain, thalweg = (Contender(name, folder / name) for name in (PLAIN, THALWEG))
    results: dict[str, tuple[int, int]] = {PLAIN: (0, 0), THALWEG: (0, 0)}

    def start(contender: Contender, joined: DataFrame) -> None:
        def add(batch: DataFrame, _number: int) -> None:
            rows, traffic = batch.selectExpr("count(*)", "coalesce(sum(R1_size), 0)").collect()[0]
            results[contender.name] = results[contender.name][0] + rows, results[contender.name][1] + traffic

        writer = joined.writeStream.foreachBatch(add).option("checkpointLocation", contender.checkpoint)
        contender.running.append(writer.start())

    schemas = dict.fromkeys(ROUTERS, SCHEMA)
    streams = {each.name: each.frames(spark, schemas) for each in (plain, thalweg)}
    steps = []
    with stopped_at_the_end(plain, thalweg), told_steps(console) as tell:
        with kept_settings(spark, (*CONFIGURED, WITHOUT_DATA)):  # queries that run keep what they started with
            spark.conf.set(WITHOUT_DATA, "false")  # for both: old rows leave with the next micro-batch that has rows
            start(plain, ChainedJoin(ROUTERS)(spark, streams[PLAIN], _workload()))
            tw.configure(spark)  # for tw.join alone: Spark's own joins are faster with the state store of its default
            joined = tw.join(
                streams[THALWEG],
                on=ON,
                windows=f"{WINDOW_MINUTES} minutes",
                event_time="ts",
                delay=DELAY,
                select=[f"{router}.size" for router in ROUTERS],
            )
            start(thalweg, joined)
        for step in steps_of((plain, thalweg), partial(make_reports, seed), seconds):
            steps.append(step)
            tell(step, _orders(tw.explain(joined).to_dict()["joins"][0]))
        state = {
            PLAIN: _rows_in_state(plain),
            THALWEG: sum(each["rows_in_state"] for each in tw.explain(joined).to_dict()["joins"][0]["inputs"].values()),
        }
    require_same("results of the join", results)
    return [
        Ratio.of_rates("reports a second", overall(steps)),
        Ratio("rows of state", state[PLAIN], state[THALWEG], is_better_if="less"),
    ]


def _workload() -> JoinWorkload:
    """The join as the benchmark of joins writes it."""
    equal = tuple((router, "pid") for router in ROUTERS)
    return JoinWorkload(on=(equal,), window=WINDOW_MINUTES * 60 // BATCH_SECONDS, batches=())


def _rows_in_state(contender: Contender) -> float:
    (query,) = contender.running
    progress: Any = query.lastProgress
    return float(sum(operator.numRowsTotal for operator in progress.stateOperators))


def _orders(about: dict[str, Any]) -> str:
    """The probe orders that most cells use."""
    orders = {router: found[0]["order"] for router, found in about["orders"].items() if found}
    return "; ".join(f"{router} probes {', '.join(order)}" for router, order in orders.items())
