from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain_spark.py"
ROWS = 2000


@pytest.fixture
def example(spark: SparkSession) -> Iterator[ModuleType]:
    from pyspark import cloudpickle

    spec = importlib.util.spec_from_file_location("plain_spark", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_spark"] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # workers cannot import an example
    yield module
    tw.disable(spark)


def test_a_program_in_plain_spark_becomes_adaptive_and_its_rows_stay(spark: SparkSession, example: ModuleType) -> None:
    expected = [row for row in range(ROWS) if row % 10 >= 7 and row % 4 == 0 and row % 7 == 0]
    plain = example.screen(spark, ROWS)
    tw.enable(spark)
    adaptive = example.screen(spark, ROWS)
    for flagged in (plain, adaptive):
        assert sorted(row["id"] for row in flagged.collect()) == expected
    (explained,) = tw.explain(adaptive).to_dict()["wheres"]
    assert sorted(line["runs_in"] for line in explained["predicates"]) == ["Python", "Python", "Spark", "Spark"]
