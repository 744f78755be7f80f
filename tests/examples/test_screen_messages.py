from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "screen_messages.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screen_messages", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["screen_messages"] = module
    spec.loader.exec_module(module)
    from pyspark import cloudpickle

    # Workers cannot import an example.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def expected(rows: int) -> list[int]:
    """By hand: unknown senders from outside, whose answers go elsewhere, and who ask for money."""
    return [row for row in range(rows) if row % 10 >= 8 and row % 4 == 0 and row % 7 == 0]


def test_the_batch(spark: SparkSession, example: ModuleType) -> None:
    flagged = example.screen(spark, 2000)
    assert sorted(row["id"] for row in flagged.collect()) == expected(2000)
    assert "looks_suspicious" in str(tw.explain(flagged))


@pytest.mark.thorough
def test_the_stream(spark: SparkSession, example: ModuleType, tmp_path: Path) -> None:
    query = example.screen_stream(spark, str(tmp_path), rows=500, batches=4)
    assert query.awaitTermination(120)
    found = spark.read.parquet(f"{tmp_path}/flagged")
    assert sorted(row["id"] for row in found.collect()) == expected(2000)
