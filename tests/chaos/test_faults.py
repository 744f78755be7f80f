"""Faults around queries, not kills: full disks, predicates that misbehave, streams that burst, repeat and reorder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from tests.chaos.seeds import SEED
from tests.spark.joins import harness
from tests.spark.joins import test_restart as joins
from tests.spark.joins.conftest import rocks

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["rocks"]  # a fixture

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]

SMALL, LARGE = "size=200k", "size=500m"
ROWS = 20_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a file system of its own, which is full after some hundred kilobytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() or subprocess.call(["/bin/mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]):
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.check_call(["/bin/umount", "--lazy", str(folder)])


def test_a_full_disk_for_the_checkpoint_loses_nothing(small_disk: Path, environment: dict[str, str]) -> None:
    """The query fails; as soon as there is room again, it goes on from where it was."""
    folder = small_disk.parent
    joins.write_streams(folder)
    (folder / "checkpoint").symlink_to(small_disk)
    assert joins.start(folder, environment).wait(joins.SECONDS) != 0
    assert "No space left on device" in (folder / "program.log").read_text()
    subprocess.check_call(["/bin/mount", "-o", f"remount,{LARGE}", str(small_disk)])
    joins.finish(joins.start(folder, environment), folder)
    joins.check(folder)


def test_a_checkpoint_that_cannot_be_written_loses_nothing(
    spark: SparkSession, small_disk: Path, tmp_path: Path
) -> None:
    """The query fails and says why; as soon as the disk can be written to again, it goes on from where it was."""
    subprocess.check_call(["/bin/mount", "-o", f"remount,{LARGE}", str(small_disk)])
    rows = spark.readStream.schema("id long").parquet(f"{tmp_path}/in/*")

    def run() -> None:
        kept = tw.stream(rows, "id > 2", tw.predicate(on="id", takes="numpy")(is_odd), checkpoint=small_disk)
        kept.to_files(tmp_path / "out", availableNow=True).awaitTermination()

    spark.range(10).write.parquet(f"{tmp_path}/in/0")
    run()
    spark.range(10, 20).write.parquet(f"{tmp_path}/in/1")
    subprocess.check_call(["/bin/mount", "-o", "remount,ro", str(small_disk)])
    with pytest.raises(Exception, match="Read-only file system"):
        run()
    subprocess.check_call(["/bin/mount", "-o", "remount,rw", str(small_disk)])
    run()
    found = [row["id"] for row in spark.read.parquet(f"{tmp_path}/out").orderBy("id").collect()]
    assert found == [number for number in range(3, 20) if number % 2]


def test_a_full_disk_for_learnt_state_costs_the_learning_only(spark: SparkSession, small_disk: Path) -> None:
    (small_disk / "full").write_bytes(bytes(190 << 10))
    numbers = spark.range(ROWS).selectExpr("id", "id % 100 AS v")
    kept = tw.where(numbers, tw.predicate(on="v", takes="numpy")(is_odd), "v > 20", state=small_disk)
    assert kept.count() == sum(row % 2 == 1 and row % 100 > 20 for row in range(ROWS))


def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


def test_a_predicate_that_raises_at_random(spark: SparkSession, tmp_path: Path) -> None:
    """Each row is kept, rejected, or in the quarantine: none is lost."""

    @tw.predicate(on="id", takes="rows")
    def fails_now_and_then(number: int) -> bool:
        if os.urandom(1)[0] < 2:
            raise RuntimeError("no answer")
        return number % 3 == 0

    numbers = spark.range(ROWS)
    kept = tw.where(
        numbers, fails_now_and_then, on_error="quarantine", quarantine=tmp_path / "aside", quarantine_columns="id"
    )
    found = {row["id"] for row in kept.collect()}
    aside = {row["id"] for row in spark.read.parquet(str(tmp_path / "aside")).collect()}
    wanted = set(range(0, ROWS, 3))
    assert found <= wanted
    assert wanted - found <= aside
    assert not found & aside


def test_a_predicate_that_becomes_a_thousand_times_dearer(spark: SparkSession) -> None:
    @tw.predicate(on="id", takes="numpy")
    def dearer(number: np.ndarray) -> np.ndarray:
        time.sleep((0.0 if number.size and number.max() < ROWS // 2 else 1e-6) * number.size)
        return number % 2 < 1

    @tw.predicate(on="id", takes="numpy")
    def cheap(number: np.ndarray) -> np.ndarray:
        return number % 5 < 1

    kept = tw.where(spark.range(ROWS), dearer, cheap)
    assert [row["id"] for row in kept.orderBy("id").collect()] == list(range(0, ROWS, 10))


def test_a_predicate_that_leaks_ends_at_the_bound_of_its_worker(environment: dict[str, str]) -> None:
    """The query fails with the name of the predicate, and the next query runs."""
    program = Path(__file__).with_name("leaking_predicate.py")
    ended = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert "MemoryError" in ended.stdout, ended.stderr[-3000:]
    assert "leaks" in ended.stdout
    assert f"kept {ROWS // 2}" in ended.stdout


def test_a_predicate_that_hangs_does_not_keep_a_stream_from_stopping(spark: SparkSession, tmp_path: Path) -> None:
    @tw.predicate(on="value", takes="numpy")
    def hangs(value: np.ndarray) -> np.ndarray:
        time.sleep(3600)
        return value >= 0

    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = tw.where(stream, hangs).writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    while not query.status["isTriggerActive"]:
        time.sleep(0.1)
    time.sleep(2)
    query.stop()
    assert not query.isActive


def test_streams_that_stop_burst_repeat_and_reorder(rocks: SparkSession, tmp_path: Path) -> None:
    random = np.random.default_rng(SEED)
    batches: dict[str, list[pa.Table]] = {}
    for name, sizes in {"A": [3, 300, 1, 3], "B": [5, 0, 0, 400], "C": [3, 3, 300, 3]}.items():
        tables = [
            table.slice(0, size) for table, size in zip(harness.made([name], 4, 400, SEED)[name], sizes, strict=True)
        ]
        tables[2] = pa.concat_tables([tables[2], tables[1].slice(0, 20)])  # some rows come twice, the second time late
        batches[name] = [table.take(random.permutation(table.num_rows)) for table in tables]
    harness.write(batches, tmp_path)
    joined = tw.join(
        {name: harness.stream(rocks, tmp_path, name) for name in "ABC"},
        on="A.k = B.k AND B.l = C.l",
        windows="25 seconds",
        event_time="ts",
        delay="1 minute",
        select=["A.v", "B.v", "C.v"],
    )
    harness.run(joined, tmp_path)
    found = harness.given(rocks.read.parquet(str(tmp_path / "out")).collect(), "ABC")
    assert found == harness.answer(batches, "A.k = B.k AND B.l = C.l", dict.fromkeys("ABC", 25))
