from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from thalweg.spark.session.sources import SharedStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "kind",
    ["interval year to month", "interval", "array<interval year>", "map<string, struct<m: interval month>>"],
)
def test_intervals_of_months_cannot_be_read(spark: SparkSession, kind: str) -> None:
    stream = SharedStream("A", spark.createDataFrame([], f"ts timestamp, x int, i {kind}"), "ts", 0)
    stream.check_read(["ts", "x"])
    with pytest.raises(TypeError, match=r"column 'i' of stream 'A' is of type .*interval.*months instead"):
        stream.check_read(["x", "i"])


def test_other_types_can(spark: SparkSession) -> None:
    kinds = "v variant, d interval day to second, m map<string, array<decimal(38, 10)>>, n timestamp_ntz, b binary"
    stream = SharedStream("A", spark.createDataFrame([], f"ts timestamp, {kinds}"), "ts", 0)
    stream.check_read(stream.frame.columns)
