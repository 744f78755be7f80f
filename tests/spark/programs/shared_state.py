"""A filter and a join on a cluster, whose folder of learnt state is slow from the start, and lost after a file of rows.

Prints what was found as JSON. The folder is slow in workers and in the driver (`tests/python_daemon/slow_folder.py`).
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from slow_folder import NOTES, slow_down

import thalweg as tw
from thalweg.spark.start import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ROWS = 2000  # of a file
START = 10**9 * 1_000_000
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MEMORY = 1 << 30  # of a Python worker


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


@tw.predicate(on="v", takes="numpy")
def is_greedy(v: np.ndarray) -> np.ndarray:
    return np.ones(2 * MEMORY, np.uint8)[: v.size] > 0


def write_rows(folder: Path, number: int) -> None:
    """Write a file for each stream."""
    ids = np.arange(number * ROWS, (number + 1) * ROWS)
    times = pa.array(START + ids * 1000, pa.timestamp("us", "UTC"))
    for name in "AB":
        table = pa.table({"id": ids, "v": ids % 100, "k": ids % 7, "ts": times})
        hidden = folder / name / f".{number}.parquet"  # until it is whole
        parquet.write_table(table, hidden)
        hidden.rename(folder / name / f"{number}.parquet")


def main(master: str, folder_name: str) -> None:
    folder = Path(folder_name)
    notes, state = folder / "looks", folder / "state"
    slow_down(notes)
    settings: dict[str, Any] = {
        "spark.executor.pyspark.memory": f"{MEMORY >> 20}m",
        f"spark.executorEnv.{NOTES}": str(notes),
        "spark.python.daemon.module": "slow_folder",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.streaming.stateStore.providerClass": ROCKS,
    }
    spark = spark_session("shared-state", master=master, **settings)

    def stream(name: str) -> DataFrame:
        return spark.readStream.schema("id long, v long, k long, ts timestamp").parquet(str(folder / name))

    def write(frame: DataFrame, name: str) -> StreamingQuery:
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        return writer.start(str(folder / name))

    def found(name: str) -> list[int]:
        return sorted(row["id"] for row in spark.read.parquet(str(folder / name)).collect())

    for name in "AB":
        (folder / name).mkdir()
    wanted = tw.lookup(pa.table({"k": [1, 3]}), on="k")
    queries = {
        "kept": write(tw.where(stream("A"), is_odd, "v > 20", wanted, state=state / "filter"), "kept"),
        "joined": write(
            tw.join(
                {"A": stream("A"), "B": stream("B")},
                on="A.id = B.id",
                windows="1 hour",
                event_time="ts",
                delay="1 minute",
                cells=2,
                select=["A.id AS id"],
                state=state / "join",
            ),
            "joined",
        ),
    }

    def read_file(number: int) -> None:
        write_rows(folder, number)
        for query in queries.values():
            query.processAllAvailable()

    read_file(0)
    about: dict[str, object] = {"slow": {name: found(name) for name in queries}}
    shutil.rmtree(state)
    state.touch()  # so that nobody can make the folder again
    read_file(1)
    about["lost"] = {name: found(name) for name in queries}
    about["explained"] = [str(tw.explain(query)) for query in queries.values()]
    about["micro_batches"] = sum(len(query.recentProgress) for query in queries.values())
    for query in queries.values():
        query.stop()
    try:
        tw.where(spark.range(100).selectExpr("id", "id AS v"), is_greedy).count()
    except Exception as error:  # noqa: BLE001 - as Spark wraps it
        about["error"] = str(error)
    about["after"] = tw.where(spark.range(100).selectExpr("id", "id AS v"), is_odd).count()
    print(json.dumps(about))  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
