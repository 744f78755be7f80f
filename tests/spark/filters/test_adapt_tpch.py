"""The 22 queries of TPC-H through `tw.adapt(spark.sql(query))`: the rows are those of plain Spark."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg.spark.filters import sample_worth

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCALE = 0.01
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def queries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, str]]:
    """The queries, on views of their tables."""
    folder = Path(os.environ.get("TPCH_FOLDER") or generated(tmp_path_factory.mktemp("tpch")))
    for table in TABLES:
        spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)
    yield {int(number): text for number, text in json.loads((folder / "queries.json").read_text()).items()}
    for table in TABLES:
        spark.catalog.dropTempView(table)


def generated(folder: Path) -> Path:
    """A folder of tables and queries that DuckDB's extension tpch has made; TPCH_FOLDER may name one made elsewhere."""
    duckdb = pytest.importorskip("duckdb")
    engine = duckdb.connect()
    try:
        engine.execute(f"INSTALL tpch; LOAD tpch; CALL dbgen(sf = {SCALE})")
    except duckdb.Error as error:
        pytest.skip(f"DuckDB's extension tpch is not to be had: {error}")
    for table in TABLES:
        engine.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
    texts = dict(engine.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    (folder / "queries.json").write_text(json.dumps(texts))
    return folder


def rounded(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(
        tuple(f"{value:.6g}" if isinstance(value, float) and not math.isnan(value) else str(value) for value in row)
        for row in frame.collect()
    )


@pytest.mark.parametrize("number", range(1, 23))
@pytest.mark.parametrize("sampled", [False, True])
def test_the_rows_are_the_same(
    spark: SparkSession,
    queries: dict[int, str],
    number: int,
    sampled: bool,  # noqa: FBT001 - a parameter of pytest
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sampled:
        monkeypatch.setattr(sample_worth, "LEAST_JOB_SECONDS", 0.0)
    written = spark.sql(queries[number].rstrip().rstrip(";"))
    assert rounded(tw.adapt(written)) == rounded(written)
