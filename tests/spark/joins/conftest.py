"""The session that joins of streams need, and worker processes that they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from thalweg.spark.joins import lower
from thalweg.spark.joins.plan import PROVIDER, ROCKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

own_workers = lower.own_workers


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the state store that stateful operators in Python need.

    All joins share the worker processes of one join: to start processes for each test takes longer than the tests.
    Spark interprets what it does around the join: to compile that for each micro-batch takes longer, too.
    """
    settings = {
        PROVIDER: ROCKS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    with patch.object(lower, "own_workers", lambda session, _key: own_workers(session, "tests")):
        yield spark
    for name, value in before.items():
        spark.conf.set(name, value)
