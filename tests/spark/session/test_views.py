from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from tests.spark.session.harness import SECOND, Batch, Driver, with_end

from thalweg.spark.plan_text import plan_text
from thalweg.spark.session import results
from thalweg.spark.session.branches import Ending, written_files
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.views import SETTINGS_OF_ONE_TASK, RowViews

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREE_STREAMS = "SELECT a.x, b.y, c.z FROM A AS a, B AS b, C AS c WHERE a.k = b.k AND b.k = c.k WINDOW [30 seconds]"


def test_small_rounds_of_several_files_are_computed_without_an_exchange(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []

    def explained(
        branches: Sequence[Sequence[Ending]], views: RowViews, catalog: Catalog, folder: str, *, in_one_task: bool
    ) -> DataFrame:
        frame = written_files(branches, views, catalog, folder, in_one_task=in_one_task)
        plans.append(plan_text(frame, "simple"))
        return frame

    monkeypatch.setattr(results, "written_files", explained)
    before = {name: spark.conf.get(name, None) for name in SETTINGS_OF_ONE_TASK}
    driver = Driver(spark, tmp_path)
    query = driver.session.query(THREE_STREAMS)
    batches: list[Batch] = [
        {"A": [(1, 2, "s", time)], "B": [(1, 3, time)], "C": [(1, 4, time)]} for time in (SECOND, 2 * SECOND)
    ]
    driver.run(*with_end(batches))
    found = query.results()
    assert found is not None
    assert found.num_rows == 8
    (plan,) = plans
    assert plan.count("HashJoin") == 2
    assert "Exchange" not in plan
    assert {name: spark.conf.get(name, None) for name in SETTINGS_OF_ONE_TASK} == before


def test_queries_are_added_with_one_frame_of_no_rows_for_each_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Of many queries, Spark has to make few DataFrames: one of each stream that some query reads."""
    session = Driver(spark, tmp_path).session
    texts = ["SELECT k FROM A WHERE x > 1", "SELECT s FROM A", "SELECT A.k FROM A JOIN B ON A.k = B.k"]
    with patch.object(type(spark), "createDataFrame", autospec=True, side_effect=type(spark).createDataFrame) as made:
        for text in texts:
            session.query(f"{text} WINDOW [5]")
    assert made.call_count == len({"A", "B"})
