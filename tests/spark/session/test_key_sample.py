from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.session.harness import SECOND, Batch, Driver

from thalweg.spark.session import engine
from thalweg.spark.session.key_sample import JoinKeys, sample_keys
from thalweg.spark.session.views import RowViews

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "SELECT a.x FROM A AS a, B AS b, T AS t WHERE a.k = b.k AND b.k = t.k AND a.x > 3 WINDOW [30 seconds]"
OF_OTHER_TYPES = "SELECT a.x FROM A AS a, B AS b, C AS c WHERE a.k = b.k AND b.k = c.k AND a.x > 3 WINDOW [30 seconds]"
COMPUTED = "SELECT a.x FROM A AS a, B AS b, T AS t WHERE a.k = -b.k AND -b.k = t.k AND a.x > 3 WINDOW [30 seconds]"


def test_selectivities_are_those_of_the_rows_that_conditions_keep(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the driver reads the keys, or Spark computes them."""
    sampled: list[dict[str, dict[str, float]]] = []

    def noted(views: RowViews, joins: Sequence[JoinKeys]) -> dict[str, dict[str, float]]:
        sampled.append(sample_keys(views, joins))
        return sampled[-1]

    monkeypatch.setattr(engine, "sample_keys", noted)
    driver = Driver(spark, tmp_path)
    columns, other_types, computed = (
        driver.session.query(text).compiled.token for text in (COLUMNS, OF_OTHER_TYPES, COMPUTED)
    )
    kept = [(key, 9, "s", SECOND) for key in (1, 1, 2, None)]
    batch: Batch = {
        "A": [*kept, *[(3, 0, "s", SECOND)] * 50],  # that a.x > 3 does not keep
        "B": [(key, 0, SECOND) for key in (1, 3, 3, 3, -1)],
        "C": [(key, 0, SECOND) for key in (3, 4)],
    }
    driver.run(batch)
    (found,) = sampled
    rounded = {token: [round(share, 2) for share in own.values()] for token, own in found.items()}
    # Pairs that are equal, of those without a NULL: of a and b, b and the third input, a and the third (T: 0, 1, 1, 2).
    assert rounded[columns] == [0.13, 0.1, 0.42]
    assert rounded[other_types] == [0.13, 0.3, 0.0]
    assert rounded[computed] == [0.13, 0.1, 0.42]
