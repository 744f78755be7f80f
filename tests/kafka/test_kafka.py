"""From Kafka to Kafka, while the driver and the broker are killed: every result is there, and files have it once.

`thalweg run` has a stream and results in topics, too.
"""

from __future__ import annotations

import io
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
from rich.console import Console
from tests.fast_spark import fast_session
from tests.kafka.broker import Broker
from tests.kafka.pipelines import ROWS_A_BATCH, SCHEMA

from thalweg.spark.session.program_file.command import run_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ROOT = Path(__file__).parent.parent.parent
BROKER_JARS, CONNECTOR_JARS = ROOT / ".jars" / "kafka-broker", ROOT / ".jars" / "kafka-connector"
PROGRAM = Path(__file__).with_name("pipelines.py")
MILLISECOND, SECOND = 1_000, 1_000_000
START = 10**9 * SECOND
ROWS, KEYS, SPAN = 2000, 40, 120 * SECOND  # rows of each topic, and the event time that they cover
END_ID = -1  # of the rows that end the rounds of the session; the filter keeps none of them
SECONDS = 400  # that a phase of the test may take on a busy machine
OUTAGE_SECONDS = 3.0
MOST_STARTS = 4  # a broker may be away for longer than the program waits for it
CHECKPOINTS = {"kept": "A", "files": "A", "joined": "AB", "session/spark": "A"}  # of each query, and its topics

KEPT = "SELECT id FROM A WHERE v % 2 = 1 AND v > 20 AND k % 3 <> 0"
JOINED = "SELECT A.id AS a, B.id AS b FROM A, B WHERE A.k = B.k AND abs(A.ts - B.ts) < 5000000"
ROUNDS = """
    SELECT k, count(*) AS n, sum(v)::BIGINT AS total, (ts + 9999999) // 10000000 * 10000000 AS round_end
    FROM A GROUP BY k, round_end
"""
PROGRAM_FILE = """
checkpoint = "file-checkpoint"
trigger.available_now = true

[streams.A]
format = "kafka"
options = {{ "kafka.bootstrap.servers" = "{server}", subscribe = "A", startingOffsets = "earliest", \
maxOffsetsPerTrigger = {rows} }}
select = ["from_json(CAST(value AS STRING), '{schema}').*"]
event_time = "ts"
delay = "10 minutes"

[queries.rounds]
text = "SELECT k, count(*) AS n, sum(v) AS total FROM A GROUP BY k WINDOW [10 seconds]"
to = {{ format = "kafka", options = {{ "kafka.bootstrap.servers" = "{server}", topic = "rounds-of-file" }} }}
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
    with fast_session("kafka-tests", **{"spark.jars": connector}) as session:
        yield session


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


class Pipelines:
    """The program with the queries: it can be killed, and is started again if it fails while the broker is away."""

    def __init__(self, folder: Path, broker: Broker, connector: str) -> None:
        self._command = [sys.executable, str(PROGRAM), broker.address, str(folder), connector]
        self._folder = folder
        self._log = folder / "program.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=kept | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.starts += 1

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not ready():
            assert time.monotonic() < deadline, self._log.read_text()[-5000:]
            if self._process is None or self._process.poll() is not None:
                assert self.starts < MOST_STARTS, self._log.read_text()[-5000:]
                self.start()
            time.sleep(0.02)

    def micro_batches(self, log: str) -> list[int]:
        """How many micro-batches of each query have begun ("offsets"), or are done ("commits")."""
        return [len(self._numbers(checkpoint, log)) for checkpoint in CHECKPOINTS]

    def has_read(self, rows: int) -> bool:
        """Whether the micro-batches that are done hold so many rows of each topic."""
        return all(self._rows(checkpoint) == rows * len(topics) for checkpoint, topics in CHECKPOINTS.items())

    def _rows(self, checkpoint: str) -> int:
        last = max(self._numbers(checkpoint, "commits"), default=None)
        if last is None:
            return 0
        offsets = (self._folder / checkpoint / "offsets" / str(last)).read_text().splitlines()[2:]  # a line a source
        return sum(sum(ends.values()) for line in offsets for ends in json.loads(line).values())

    def _numbers(self, checkpoint: str, log: str) -> list[int]:
        return [int(path.name) for path in (self._folder / checkpoint / log).glob("*") if path.name.isdigit()]


@pytest.fixture
def pipelines(tmp_path: Path, broker: Broker, connector: str) -> Iterator[Pipelines]:
    pipelines = Pipelines(tmp_path, broker, connector)
    yield pipelines
    pipelines.kill()


def answer(text: str, **tables: pa.Table) -> set[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return set(connection.execute(text).fetchall())


def test_every_result_is_there_after_the_driver_and_the_broker_were_killed(
    tmp_path: Path, broker: Broker, kafka_spark: SparkSession, pipelines: Pipelines
) -> None:
    topics = {"A": made(1), "B": made(2)}
    for name, rows in topics.items():
        produce(kafka_spark, broker, name, rows)

    pipelines.start()
    pipelines.wait_until(
        lambda: (
            all(pipelines.micro_batches("commits"))
            and pipelines.micro_batches("offsets") != pipelines.micro_batches("commits")
        )
    )
    pipelines.kill()  # in the middle of a micro-batch of at least one query

    before = pipelines.micro_batches("commits")
    pipelines.start()
    pipelines.wait_until(lambda: pipelines.micro_batches("commits") != before)
    broker.kill()
    time.sleep(OUTAGE_SECONDS)
    broker.start()
    pipelines.wait_until(lambda: pipelines.has_read(ROWS))

    end = pa.table({"id": [END_ID], "k": [3], "v": [0], "ts": [START + 100 * SPAN]})  # ends the rounds of the session
    for name in topics:
        produce(kafka_spark, broker, name, end)
    pipelines.wait_until(lambda: pipelines.has_read(ROWS + 1))

    kept = Counter((row["id"],) for row in read(kafka_spark, broker, "kept"))
    assert set(kept) == answer(KEPT, **topics)
    assert kept.total() - len(kept) <= pipelines.starts * ROWS_A_BATCH  # of the micro-batches that were cut off

    files = kafka_spark.read.parquet(str(tmp_path / "kept-files")).select("id").collect()
    assert Counter((row["id"],) for row in files) == Counter(answer(KEPT, **topics))

    joined = Counter((row["a"], row["b"]) for row in read(kafka_spark, broker, "joined"))
    assert set(joined) == answer(JOINED, **topics) | {(END_ID, END_ID)}

    rounds = read(kafka_spark, broker, "rounds")
    found = {(row["k"], row["n"], row["total"], _microseconds(row["round_end"])) for row in rounds}
    assert found == answer(ROUNDS, **topics)


def test_a_program_file_reads_a_topic_and_writes_another(
    tmp_path: Path, broker: Broker, kafka_spark: SparkSession
) -> None:
    """`thalweg run` joins the Spark session of the test, which has the jars of Kafka."""
    rows = made(1)
    end = pa.table({"id": [END_ID], "k": [3], "v": [0], "ts": [START + 100 * SPAN]})  # ends all rounds before it
    produce(kafka_spark, broker, "A", rows)
    produce(kafka_spark, broker, "A", end)
    file = tmp_path / "session.toml"
    file.write_text(PROGRAM_FILE.format(server=broker.address, schema=SCHEMA, rows=ROWS_A_BATCH))
    console = Console(file=io.StringIO(), width=200)
    for _ in range(2):  # the second time there is nothing left to read
        assert run_file(file, console), console.file.getvalue()  # type: ignore[attr-defined]
    rounds = read(kafka_spark, broker, "rounds-of-file")
    found = Counter((row["k"], row["n"], row["total"], _microseconds(row["round_end"])) for row in rounds)
    assert found == Counter(answer(ROUNDS, A=rows))


def _microseconds(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(int))
