"""Tables of Iceberg as the source of a filter, as its sink and as a lookup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.delta.test_delta import kept, numbers
from tests.fast_spark import fast_session

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.iceberg

JARS = Path(__file__).parent.parent.parent / ".jars" / "iceberg"
CATALOG = "spark.sql.catalog.lake"


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


@pytest.fixture
def iceberg_spark(tmp_path: Path) -> Iterator[SparkSession]:
    if not JARS.is_dir():
        pytest.skip("the jar of Iceberg is not here: make test-iceberg")
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{CATALOG}.type": "hadoop",
        f"{CATALOG}.warehouse": str(tmp_path / "lake"),
    }
    with fast_session("iceberg-tests", **settings) as session:
        yield session


def test_from_a_table_to_a_table_with_a_table_to_look_up_in(iceberg_spark: SparkSession, tmp_path: Path) -> None:
    source, target, wanted = (f"lake.tests.{name}" for name in ("source", "target", "wanted"))
    numbers(iceberg_spark, 0, 2000).writeTo(source).create()
    iceberg_spark.createDataFrame([(1,), (3,)], "k long").writeTo(wanted).create()
    iceberg_spark.sql(f"CREATE TABLE {target} (id LONG, v LONG, k LONG) USING iceberg")
    keys = tw.lookup(iceberg_spark.table(wanted), on="k")

    def run() -> list[int]:
        filtered = tw.where(iceberg_spark.readStream.table(source), is_odd, "v > 20", keys)
        writer = filtered.writeStream.format("iceberg").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).toTable(target).awaitTermination()
        return sorted(row["id"] for row in iceberg_spark.table(target).collect())

    assert run() == kept(range(2000), {1, 3})
    iceberg_spark.createDataFrame([(5,)], "k long").writeTo(wanted).append()
    keys.refresh()
    numbers(iceberg_spark, 2000, 3000).writeTo(source).append()
    assert run() == kept(range(2000), {1, 3}) + kept(range(2000, 3000), {1, 3, 5})
