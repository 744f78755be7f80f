"""From Kafka to Kafka, while the driver and the broker are killed: every result is there, and files have it once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.kafka.broker import Broker
from tests.kafka.pipelines import ROWS_A_BATCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ROOT = Path(__file__).parent.parent.parent
BROKER_JARS, CONNECTOR_JARS = ROOT / ".jars" / "kafka-broker", ROOT / ".jars" / "kafka-connector"
PROGRAM = Path(__file__).with_name("pipelines.py")
MILLISECOND, SECOND = 1_000, 1_000_000
START = 10**9 * SECOND
ROWS, KEYS, SPAN = 2400, 40, 120 * SECOND  # rows of each topic, and the event time that they cover
END_ID = -1  # of the rows that end the rounds of the session
SECONDS = 400  # that a run may take on a busy machine
OUTAGE_SECONDS = 3.0
RESTARTS = 2
MAY_REPEAT = 2 * ROWS_A_BATCH  # rows of the micro-batches that a kill cuts off
CHECKPOINTS = {"kept": "kept", "files": "files", "joined": "joined", "rounds": "session/spark"}

KEPT = "SELECT id FROM A WHERE v % 2 = 1 AND v > 20 AND k % 3 <> 0"
JOINED = "SELECT A.id AS a, B.id AS b FROM A, B WHERE A.k = B.k AND abs(A.ts - B.ts) < 5000000"
ROUNDS = """
    SELECT k, count(*) AS n, sum(v)::BIGINT AS total, (ts + 9999999) // 10000000 * 10000000 AS round_end
    FROM A GROUP BY k, round_end
"""


@pytest.fixture
def connector() -> str:
    if not CONNECTOR_JARS.is_dir():
        pytest.skip("the jars of Kafka are not here: make test-kafka")
    return ",".join(str(jar) for jar in sorted(CONNECTOR_JARS.glob("*.jar")))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(BROKER_JARS, tmp_path)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def kafka_spark(connector: str) -> Iterator[SparkSession]:
    from thalweg.spark.start import local_session

    settings: dict[str, Any] = {"spark.jars": connector}
    session = local_session("kafka-tests", **settings)
    yield session
    session.stop()


def made(seed: int) -> pa.Table:
    """Random rows in the order of their event time."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "k": random.integers(0, KEYS, ROWS),
            "v": random.integers(0, 100, ROWS),
            "ts": START + np.sort(random.integers(1, SPAN // MILLISECOND, ROWS)) * MILLISECOND,  # JSON has no more
        }
    )


def produce(spark: SparkSession, broker: Broker, topic: str, rows: pa.Table) -> None:
    packed = "struct(id, k, v, timestamp_micros(ts) AS ts)"
    frame = spark.createDataFrame(rows.to_pandas()).selectExpr(
        f"to_json({packed}) AS value", "CAST(k AS STRING) AS key"
    )
    writer = frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", broker.address)
    writer.option("topic", topic).save()


def read(spark: SparkSession, broker: Broker, topic: str) -> list[dict[str, Any]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.address).option("subscribe", topic)
    return [json.loads(row["value"]) for row in reader.load().selectExpr("CAST(value AS STRING) AS value").collect()]


def begin(folder: Path, broker: Broker, connector: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    with (folder / "program.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), broker.address, str(folder), connector],
            env=kept | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], folder: Path, again: Callable[[], subprocess.Popen[bytes]]) -> None:
    """Wait for the end of the program; start it again if it fails, as a broker may be away for longer than it waits."""
    for _ in range(RESTARTS):
        if process.wait(SECONDS) == 0:
            return
        process = again()
    assert process.wait(SECONDS) == 0, (folder / "program.log").read_text()[-5000:]


def micro_batches(folder: Path, log: str) -> dict[str, int]:
    """How many micro-batches of each query have begun ("offsets"), or are done ("commits")."""
    return {
        name: sum(path.name.isdigit() for path in (folder / place / log).glob("*"))
        for name, place in CHECKPOINTS.items()
    }


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert process.poll() is None, (folder / "program.log").read_text()[-5000:]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def answer(text: str, **tables: pa.Table) -> set[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return set(connection.execute(text).fetchall())


def test_every_result_is_there_after_the_driver_and_the_broker_were_killed(
    tmp_path: Path, broker: Broker, connector: str, kafka_spark: SparkSession
) -> None:
    topics = {"A": made(1), "B": made(2)}
    for name, rows in topics.items():
        produce(kafka_spark, broker, name, rows)

    process = begin(tmp_path, broker, connector)
    wait_until(
        lambda: (
            all(micro_batches(tmp_path, "commits").values())
            and micro_batches(tmp_path, "offsets") != micro_batches(tmp_path, "commits")
        ),
        process,
        tmp_path,
    )
    os.killpg(process.pid, signal.SIGKILL)  # in the middle of a micro-batch of at least one query
    process.wait()

    before = micro_batches(tmp_path, "commits")
    process = begin(tmp_path, broker, connector)
    wait_until(lambda: micro_batches(tmp_path, "commits") != before, process, tmp_path)
    broker.kill()
    time.sleep(OUTAGE_SECONDS)
    broker.start()
    finish(process, tmp_path, lambda: begin(tmp_path, broker, connector))

    end = pa.table({"id": [END_ID], "k": [3], "v": [0], "ts": [START + 100 * SPAN]})  # kept and joined by no query
    for name in topics:
        produce(kafka_spark, broker, name, end)
    finish(begin(tmp_path, broker, connector), tmp_path, lambda: begin(tmp_path, broker, connector))

    kept = Counter((row["id"],) for row in read(kafka_spark, broker, "kept"))
    assert set(kept) == answer(KEPT, **topics)
    assert kept.total() - len(kept) <= MAY_REPEAT

    files = kafka_spark.read.parquet(str(tmp_path / "kept-files")).select("id").collect()
    assert Counter((row["id"],) for row in files) == Counter(answer(KEPT, **topics))

    joined = Counter((row["a"], row["b"]) for row in read(kafka_spark, broker, "joined"))
    assert set(joined) - {(END_ID, END_ID)} == answer(JOINED, **topics)

    rounds = read(kafka_spark, broker, "rounds")
    found = {(row["k"], row["n"], row["total"], _microseconds(row["round_end"])) for row in rounds}
    assert found == answer(ROUNDS, **topics)


def _microseconds(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(int))
