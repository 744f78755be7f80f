from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.session.harness import Driver

from thalweg.charts import TupleRates
from thalweg.spark.session.program_file import dry_run
from thalweg.spark.session.program_file.dry_run import dry_run_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLOW = TupleRates(equality=1_500.0, range=1_500.0)  # no more than the rates that the chart covers


def test_a_dry_run_uses_measured_rates_or_says_that_it_assumes_some(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(spark, tmp_path)
    driver.session.query("SELECT s FROM A WHERE x > 5 WINDOW [1]")
    texts = []
    for rates in (None, SLOW):
        monkeypatch.setattr(dry_run, "known_rates", lambda _spark, rates=rates: rates)
        texts.append(dry_run_text(driver.session))
    assumed, measured = (text.partition("@ marks this point")[0] for text in texts)
    assert "operators of usual speed, since none was measured on this machine yet" in assumed
    assert "operators as fast as they were measured on this machine" in measured
    charts = [text.partition("@ marks this point")[2] for text in texts]
    assert charts[0] != charts[1]
    assert all("A is\n" in chart and "B is\n" in chart for chart in charts)  # both orders of σ and π, told apart
