"""Tables of Delta Lake as the source of a filter, as its sink, as a lookup, and as the current result of a join."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.fast_spark import fast_session
from tests.spark.joins.harness import SECOND, answer, made, stream, write

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.delta

JARS = Path(__file__).parent.parent.parent / ".jars" / "delta"
SETTINGS: dict[str, Any] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": 1,  # not 50 tasks to read the log of a table of some files
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": False,  # to compile a MERGE takes longer than to run it
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


@pytest.fixture(scope="module")
def delta_spark() -> Iterator[SparkSession]:
    if not JARS.is_dir():
        pytest.skip("the jars of Delta Lake are not here: make test-delta")
    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    with fast_session("delta-tests", **SETTINGS | {"spark.jars": jars}) as session:
        yield session


def numbers(spark: SparkSession, start: int, stop: int) -> DataFrame:
    return spark.range(start, stop).selectExpr("id", "id % 100 AS v", "id % 7 AS k")


def kept(rows: range, keys: set[int]) -> list[int]:
    return [row for row in rows if row % 100 % 2 == 1 and row % 100 > 20 and row % 7 in keys]


def test_from_a_table_to_a_table_with_a_table_to_look_up_in(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, target, wanted = (str(tmp_path / name) for name in ("source", "target", "wanted"))
    numbers(delta_spark, 0, 2000).write.format("delta").save(source)
    delta_spark.createDataFrame([(1,), (3,)], "k long").write.format("delta").save(wanted)
    keys = tw.lookup(delta_spark.read.format("delta").load(wanted), on="k")

    def run() -> list[int]:
        rows = delta_spark.readStream.format("delta").load(source)
        filtered = tw.where(rows, is_odd, "v > 20", keys)
        writer = filtered.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(target).awaitTermination()
        return sorted(row["id"] for row in delta_spark.read.format("delta").load(target).collect())

    assert run() == kept(range(2000), {1, 3})
    delta_spark.createDataFrame([(5,)], "k long").write.format("delta").mode("append").save(wanted)
    keys.refresh()
    numbers(delta_spark, 2000, 3000).write.format("delta").mode("append").save(source)
    assert run() == kept(range(2000), {1, 3}) + kept(range(2000, 3000), {1, 3, 5})


def test_a_table_of_the_current_join(delta_spark: SparkSession, tmp_path: Path) -> None:
    """The changelog of a join, merged into a table: at any time, the table has the results that are current."""
    batches, windows = made("AB", 3, 40), {"A": 15, "B": 15}
    write(batches, tmp_path)
    table = str(tmp_path / "current")
    delta_spark.sql(f"CREATE TABLE delta.`{table}` (A_v LONG, B_v LONG, copies LONG) USING delta")
    joined = tw.join(
        {name: stream(delta_spark, tmp_path, name) for name in "AB"},
        on="A.k = B.k",
        windows="15 seconds",
        event_time="ts",
        delay="4 seconds",
        output="changelog",
        select=["A.v", "B.v"],
    )

    def merge(changes: DataFrame, number: int) -> None:
        spark = changes.sparkSession
        changes.groupBy("A_v", "B_v").agg({"change": "sum"}).toDF("A_v", "B_v", "copies").createTempView("changes")
        spark.conf.set("spark.databricks.delta.write.txnAppId", "current-join")  # a micro-batch that is repeated
        spark.conf.set("spark.databricks.delta.write.txnVersion", number)  # after a failure is merged once
        spark.sql(
            f"""
            MERGE INTO delta.`{table}` AS t USING (SELECT * FROM changes WHERE copies <> 0) AS c
            ON t.A_v = c.A_v AND t.B_v = c.B_v
            WHEN MATCHED AND t.copies + c.copies = 0 THEN DELETE
            WHEN MATCHED THEN UPDATE SET copies = t.copies + c.copies
            WHEN NOT MATCHED THEN INSERT *
            """  # noqa: S608 - ours
        )
        spark.catalog.dropTempView("changes")

    def merge_twice(changes: DataFrame, number: int) -> None:
        changes.persist()  # a MERGE reads its source more than once, and the join would run each time
        merge(changes, number)
        merge(changes, number)  # as after a failure between the merge and the end of the micro-batch
        changes.unpersist()

    writer = joined.writeStream.foreachBatch(merge_twice).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    for name in ("txnAppId", "txnVersion"):
        delta_spark.conf.unset(f"spark.databricks.delta.write.{name}")
    current = delta_spark.read.format("delta").load(table).collect()
    moment = datetime.fromisoformat(query.recentProgress[-1].eventTime["watermark"])
    expected = answer(batches, "A.k = B.k", windows, current_at=round(moment.timestamp() * SECOND))
    assert expected.total() > 0
    assert {(row["A_v"], row["B_v"]): row["copies"] for row in current} == dict(expected)
