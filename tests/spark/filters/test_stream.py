"""Streams, restarts and metrics, on real micro-batches."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import thalweg as tw
from thalweg.spark.filters.file_sink import FileSink
from thalweg.spark.filters.stream import FilteredStream, Replanner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 2000  # in a file or a micro-batch
FILES = 5


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files of numbers, oldest first."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        columns = {"id": list(ids), "a": [row % 100 for row in ids], "s": [str(row) for row in ids]}
        parquet.write_table(pa.table(columns), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (10**9 + number, 10**9 + number))
    return folder


def read(spark: SparkSession, files: Path) -> DataFrame:
    stream = spark.readStream.schema("id long, a long, s string").option("maxFilesPerTrigger", 1)
    return stream.parquet(str(files))


def rare(limit: int) -> Any:  # noqa: ANN401 - a predicate
    return tw.predicate(lambda a: a < limit, on="a", takes="numpy", name=f"below {limit}", cost=1)


EXPECTED = [row for row in range(FILES * ROWS) if row % 100 < 5 and "1" in str(row)]
CONDITION = tw.expr("s rlike '1'", name="has a one", cost=1)


def test_an_ordinary_stream_goes_on_after_a_restart(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    def start(**trigger: Any) -> Any:  # noqa: ANN401
        kept = tw.where(read(spark, files), rare(90), CONDITION, rare(5), state=tmp_path / "learnt")
        writer = kept.writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint").format("parquet")
        return writer.trigger(**trigger).start(f"{tmp_path}/out")

    query = start(processingTime="100 milliseconds")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (query.lastProgress is None or query.lastProgress.batchId < 2):
        time.sleep(0.1)
    query.stop()
    first = tw.explain(query).to_dict()["wheres"][0]
    assert first["order"][:2] == ["has a one", "below 5"]
    query = start(availableNow=True)
    assert query.awaitTermination(120)
    second = tw.explain(query).to_dict()["wheres"][0]
    assert sorted(row["id"] for row in spark.read.parquet(f"{tmp_path}/out").collect()) == EXPECTED
    by_name = {one["name"]: one for one in second["predicates"]}
    assert by_name["below 5"]["rows_seen"] == second["rows"]  # warm: first from its first row on
    assert second["rows"] < sum("1" in str(row) for row in range(FILES * ROWS))  # the rest alone


@pytest.mark.parametrize("policy", ["a-greedy", pytest.param("as-written", marks=pytest.mark.thorough)])
def test_a_driven_stream_goes_on_after_a_restart(spark: SparkSession, files: Path, tmp_path: Path, policy: str) -> None:
    def describe() -> FilteredStream:
        predicates = rare(90), CONDITION, rare(5)
        return tw.stream(read(spark, files), *predicates, checkpoint=tmp_path / "checkpoint", policy=policy)

    def write(kept: DataFrame, number: int) -> None:
        write_files(kept, number)
        if number == 3:
            raise RuntimeError("the power went out")  # after the rows were written

    sink = FileSink(spark, f"{tmp_path}/out", f"{tmp_path}/checkpoint", "parquet", {})
    write_files = sink.write
    sink.claim()
    query = describe().foreach_batch(write, availableNow=True)
    with pytest.raises(Exception, match="the power went out"):
        query.awaitTermination(120)
    query = describe().to_files(tmp_path / "out", availableNow=True)
    assert query.awaitTermination(120)
    written = spark.read.parquet(f"{tmp_path}/out")
    assert written.columns == ["id", "a", "s"]
    assert sorted(row["id"] for row in written.collect()) == EXPECTED
    about = tw.explain(query).to_dict()["wheres"][0]
    assert about["rows"] > 0
    if policy == "a-greedy":
        assert about["order"][:2] == ["has a one", "below 5"]


def test_a_generated_stream_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("startTimestamp", 0)
    numbers = source.load().selectExpr("value as id", "value % 100 as a")
    last, about = -1, dict[str, Any]()
    for _ in range(2):
        kept = tw.where(numbers, rare(90), rare(5), state=tmp_path / "learnt")
        writer = kept.writeStream.option("checkpointLocation", f"{tmp_path}/checkpoint").format("parquet")
        query = writer.start(f"{tmp_path}/out")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and (query.lastProgress is None or query.lastProgress.batchId < last + 2):
            time.sleep(0.1)
        query.stop()
        last = int(query.lastProgress.batchId)  # type: ignore[union-attr]
        about = tw.explain(query).to_dict()["wheres"][0]
        assert about["order"] == ["below 5", "below 90"]
    assert {one["name"]: one["rows_seen"] for one in about["predicates"]}["below 5"] == about["rows"]  # warm
    found = sorted(row["id"] for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert found == [row for row in range(max(found) + 1) if row % 100 < 5]  # nothing lost, nothing twice
    assert max(found) >= (last + 1) * ROWS - 100


def test_conditions_are_planned_anew_for_every_micro_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.spark.filters.stream.SAMPLING_SHARE", 100.0)  # these are too small to be worth a look
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("startTimestamp", 0)
    early = f"value < {2 * ROWS}"
    numbers = source.load().selectExpr("value", f"if({early}, 'aaaa', 'zz') as s", f"if({early}, 'zz', 'aaaa') as t")
    kept: dict[int, int] = {}
    orders: dict[int, list[str]] = {}
    stream = tw.stream(numbers, "s rlike 'z'", "t rlike 'z'", checkpoint=tmp_path / "checkpoint")

    def count(frame: DataFrame, number: int) -> None:
        kept[number] = frame.count()
        orders[number] = tw.explain(stream).to_dict()["wheres"][0]["order"]

    query = stream.foreach_batch(count)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and max(kept, default=0) < 3:
        time.sleep(0.1)
    query.stop()
    assert set(kept.values()) == {0}
    assert orders[1][0] == "s rlike 'z'"  # which drops all of the early rows
    assert orders[3][0] == "t rlike 'z'"
    assert tw.explain(query).to_dict()["wheres"][0]["changes"]


def test_a_lookup_is_refreshed_while_a_stream_runs(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    for driven in (True, False):
        wanted = tw.lookup(pa.table({"a": [1]}), on="a")
        seen: dict[int, set[int]] = {}

        def note(frame: DataFrame, number: int, seen: dict[int, set[int]] = seen, wanted: Any = wanted) -> None:  # noqa: ANN401
            seen[number] = {row["a"] for row in frame.collect()}
            if number == 2:
                wanted.refresh(pa.table({"a": [2, 3]}))

        place = tmp_path / f"checkpoint-{driven}"
        if driven:
            stream = tw.stream(read(spark, files), wanted, "a < 90", checkpoint=place)
            query = stream.foreach_batch(note, availableNow=True)
        else:
            kept = tw.where(read(spark, files), wanted, "a < 90")
            writer = kept.writeStream.foreachBatch(note).option("checkpointLocation", str(place))
            query = writer.trigger(availableNow=True).start()  # type: ignore[assignment]
        assert query.awaitTermination(120)
        assert [seen[number] for number in range(FILES)] == [{1}] * 3 + [{2, 3}] * (FILES - 3)


def test_metrics_follow_the_micro_batches(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    metrics = tw.Metrics(spark, heard.append)
    try:
        kept = tw.where(read(spark, files), rare(90), rare(5))
        writer = kept.writeStream.format("noop").option("checkpointLocation", f"{tmp_path}/checkpoint")
        query = writer.queryName("watched").trigger(processingTime="100 milliseconds").start()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not any(one["wheres"][0]["rows"] == FILES * ROWS for one in heard):
            time.sleep(0.1)
        query.stop()
    finally:
        metrics.close()
    last = metrics.latest[query.id]
    assert last["query"] == "watched"
    assert last["wheres"][0]["rows"] == FILES * ROWS
    assert last["wheres"][0]["kept"] == FILES * ROWS // 20
    assert heard[0]["batch"] <= 1


def test_tw_stream_is_for_streams(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"for a batch, write tw\.where"):
        tw.stream(spark.range(5), "id > 1", checkpoint=tmp_path)


def test_looking_stays_within_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock and a query that are not real: a look takes a second, a micro-batch two."""
    now, looks = 0.0, 0
    run: Any = SimpleNamespace(query=None, plan=SimpleNamespace(evidence=None, order=()))

    def look(*_: Any) -> list[Any]:  # noqa: ANN401
        nonlocal now, looks
        now, looks = now + 1.0, looks + 1
        return []  # no rows, hence nothing to plan by

    monkeypatch.setattr("thalweg.spark.filters.stream.sampled_rows", look)
    monkeypatch.setattr("thalweg.spark.filters.stream.has_choice", lambda _: True)
    monkeypatch.setattr("thalweg.spark.filters.stream.lower", lambda _query, _plan, frame: frame)
    planner = Replanner(run, clock=lambda: now)
    frame: Any = None
    for _ in range(100):
        with planner.batch(frame):
            now += 2.0
    assert 8 <= looks <= 11  # a second each, of the 200 seconds that micro-batches take: a twentieth
    before = looks
    with planner.batch(frame):
        now += 10.0  # something has changed
    with planner.batch(frame):
        now += 2.0
    assert looks > before
