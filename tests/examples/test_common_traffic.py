from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import duckdb
import pytest
from pyarrow import parquet

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "common_traffic.py"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
MINUTES = 14


@pytest.fixture
def example(spark: SparkSession) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("common_traffic", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["common_traffic"] = module
    spec.loader.exec_module(module)
    before = str(spark.conf.get(PROVIDER))
    yield module
    spark.conf.set(PROVIDER, before)


@pytest.mark.thorough
def test_the_traffic_at_the_end(spark: SparkSession, example: ModuleType, tmp_path: Path) -> None:
    example.write_reports(tmp_path, MINUTES)
    totals, traffic = example.run(spark, tmp_path, MINUTES // 2)
    with duckdb.connect() as connection:
        for router in example.ROUTERS:
            connection.register(router, parquet.read_table(tmp_path / router))
        (watermark,) = connection.execute(
            "SELECT least((SELECT max(ts) FROM R1), (SELECT max(ts) FROM R2), (SELECT max(ts) FROM R3), "
            "(SELECT max(ts) FROM R4)) - INTERVAL 1 MINUTE"
        ).fetchone() or (None,)
        current = connection.execute(
            "SELECT sum(R1.size) FROM R1 JOIN R2 USING (pid) JOIN R3 USING (pid) JOIN R4 USING (pid) WHERE "
            "least(R1.ts, R2.ts, R3.ts, R4.ts) > date_trunc('milliseconds', ?::TIMESTAMPTZ) - INTERVAL 10 MINUTES",
            [watermark],
        ).fetchone()
    assert current is not None
    assert totals[-1] == current[0]
    about = tw.explain(traffic).to_dict()["joins"][0]
    assert about["replication"] == 1  # one key joins all
    assert about["inputs"]["R1"]["columns"] == ["pid", "size", "ts"]
    assert about["inputs"]["R2"]["columns"] == ["pid", "ts"]
