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
    """
    before = str(spark.conf.get(PROVIDER))
    spark.conf.set(PROVIDER, ROCKS)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    with patch.object(lower, "own_workers", lambda session, _key: own_workers(session, "tests")):
        yield spark
    spark.conf.set(PROVIDER, before)
    spark.conf.unset("spark.sql.session.timeZone")
