"""A window that is larger than a worker's memory ends in an error that says what to write, in a real worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import thalweg as tw

folder, rocks = sys.argv[1], "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", False)
    .config("spark.sql.shuffle.partitions", 1)
    .config("spark.executor.pyspark.memory", "1g")
    .config("spark.sql.streaming.stateStore.providerClass", rocks)
    .getOrCreate()
)
columns = ["id AS k", "repeat('x', 2000) AS text", "timestamp_seconds(id DIV 1000) AS ts"]
rows = spark.range(0, 600_000, 1, 15).selectExpr(*columns)
rows.write.parquet(f"{folder}/a")
stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/a")
other = spark.range(10).selectExpr("id AS k")
joined = tw.join(
    {"A": stream, "T": other}, on="A.k = T.k", windows={"A": "1 hour"}, event_time={"A": "ts"}, select=["A.text"]
)
query = joined.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint").start()
query.awaitTermination()
"""


def test_a_window_larger_than_a_worker(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode
    assert "WindowTooLargeError: cell 0 does not fit into the memory of a worker" in done.stderr
    assert "Give it less: more cells=" in done.stderr
