"""Hypothesis profiles and one Spark session, for all tests.

Imports no pyspark while tests are collected, so that tests without Spark stay fast.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines: the first call of a kernel may compile it.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None)

# The tests' queries are short: optimizing their code takes the JVM longer than running them.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark, for `-m spark` and `-m "not spark"`, and those that start one of their own."""
    for item in items:
        used = getattr(item, "fixturenames", ())
        if "spark" in used or "environment" in used:
            item.add_marker(pytest.mark.spark)
        if "environment" in used:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local Spark session, started by the first test that asks for it."""
    from thalweg.spark.start import QUIET, local_session

    java = "spark.driver.extraJavaOptions"
    session = local_session("thalweg-tests", **{java: f"{QUIET[java]} {SHORT_LIVED}"})
    yield session
    session.stop()
