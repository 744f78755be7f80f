"""Descriptions of jobs, as Spark's own page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTY = "spark.job.description"  # of the thread that starts a job


@contextmanager
def described_jobs(spark: SparkSession, description: str) -> Iterator[None]:
    """Let the jobs that this thread starts within the context begin their description so; then it is as before."""
    if not hasattr(spark, "_jsparkSession"):  # Connect's jobs run in threads of the server
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(PROPERTY)
    context.setLocalProperty(PROPERTY, f"{description}\n{before}" if before else description)
    try:
        yield
    finally:
        context.setLocalProperty(PROPERTY, before)  # type: ignore[arg-type]  # None removes it
