"""Keeps PySpark from writing a page to the standard error for an error that is expected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # PySpark's


@contextmanager
def errors_not_logged() -> Iterator[None]:
    """Errors of Spark's analysis within the context are raised, and not written as well."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]  # PySpark needs loggers of its own class
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
