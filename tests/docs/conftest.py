"""The names that the pages of the documentation take for granted: DataFrames and streams of a few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES = (
    "id",
    "if(id % 7 = 0, 'you win', 'the meeting') AS body",
    "concat('https://site', id % 5, '.example.org/login') AS url",
    "if(id % 3 = 0, 'XX', 'YY') AS country",
    "id % 100 AS amount",
    "named_struct('country', if(id % 3 = 0, 'XX', 'YY')) AS user",
    "concat('10.0.0.', id % 9) AS src_ip",
    "concat('192.168.0.', id % 9) AS dest",
    "id % 10 AS customer_id",
)
TIMED = "timestamp_seconds(1700000000 + id) AS ts"


@pytest.fixture(scope="session")
def page_names(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All names that pages use before they define them."""
    folder = tmp_path_factory.mktemp("streams")

    def stream(name: str, *columns: str) -> DataFrame:
        path = str(folder / name)
        spark.range(0, 20, 1, 1).selectExpr(*columns).write.parquet(path)
        return spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)

    rows = spark.range(0, 100, 1, 1)
    keyed = stream("keyed", "id AS k", "id AS v", TIMED)
    routers = stream("router", "id AS pid", "id * 10 AS size", TIMED)
    packets = stream("packets", TIMED, "id AS src_host", "id % 5 AS dest_host", "443 AS dest_port", "id AS bytes")
    return {
        "spark": spark,
        "tw": tw,
        "df": rows.selectExpr(*MESSAGES),
        "blocked": spark.sql("SELECT '10.0.0.3' AS ip"),
        "networks": spark.sql("SELECT '192.168.0.0/16' AS net"),
        "customers": spark.range(10).selectExpr("id", "id AS customer_id", "'Ann' AS name", "'Rome' AS city"),
        "logs": stream("logs", "id", "400 + id * 10 AS status", "concat('/api/', id) AS path"),
        "is_spam": tw.predicate(_is_spam, on="body", takes="rows"),
        "is_odd": tw.predicate(_is_odd, on="amount", takes="rows"),
        "is_scan": tw.predicate(_is_odd, on="amount", takes="rows"),
        "orders": stream("orders", "id", "id % 10 AS customer", "id * 1.0 AS total", TIMED.replace("ts", "created")),
        "payments": stream("payments", "id AS order", "id * 1.5 AS amount", TIMED),
        **dict.fromkeys(("a", "b", "c"), keyed),
        **dict.fromkeys(("r1", "r2", "r3", "r4"), routers),
        "tcp": packets,
        "hosts": spark.range(5).selectExpr("id AS host", "'physics' AS owner"),
    }


def _is_spam(body: str) -> bool:
    return "win" in body


def _is_odd(amount: int) -> bool:
    return amount % 2 == 1
