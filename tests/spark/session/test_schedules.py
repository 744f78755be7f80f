from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.session.harness import SECOND, Batch, Driver, with_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_plans_are_costed_with_the_groups_of_rounds_before(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    driver.session.query("SELECT a.k, count(*) AS n FROM A AS a GROUP BY a.k WINDOW [1 second]")
    batches: list[Batch] = [
        {"A": [(key, 0, "s", number * SECOND) for number in (3 * batch + 1, 3 * batch + 2) for key in range(4)]}
        for batch in range(3)
    ]
    driver.run(*with_end(batches))
    assert driver.engine is not None
    (served,) = driver.engine.served.values()
    expected = served.scheduler.estimates.expected
    assert expected is not None
    assert 3.0 < expected.groups <= 4.0  # a decayed mean: nothing was known of the first rounds


def test_a_plan_is_chosen_by_the_counts_of_its_own_round(spark: SparkSession, tmp_path: Path) -> None:
    driver = Driver(spark, tmp_path)
    driver.session.query("SELECT a.k FROM A AS a WHERE a.x > 0 WINDOW [1 second]")
    rows = {1: 1, 4: 9, 7: 2}  # by the second in which they come
    batches: list[Batch] = [
        {"A": [(key, key, "s", second * SECOND) for key in range(number)]} for second, number in rows.items()
    ]
    driver.run(*with_end(batches))
    assert driver.engine is not None
    (served,) = driver.engine.served.values()
    expected = [record.expected for record in served.scheduler.log]
    assert [each.rates["a"] for each in expected if each is not None] == list(rows.values())
