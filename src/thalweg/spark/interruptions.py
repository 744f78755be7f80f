"""Micro-batches that are cut off because their query is stopped, which Spark has to be told in few words.

Spark looks for the reason in the text of a Python error, with a regular expression. The text of an error of the JVM is
so long that the expression overflows the stack of the query's thread: a page of Java is printed, and the query seems to
have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTIONS = (  # what Spark says when a streaming query or Spark itself is stopped
    "SPARK_JOB_CANCELLED",
    "InterruptedException",
    "ClosedByInterruptException",
    "SparkContext was shut down",
    "stopped SparkContext",
)
# In the words that Spark looks for.
STOPPED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling a job of a micro-batch, which will be run again: "
    "java.lang.InterruptedException"
)


def refuse_interruption(error: Exception) -> None:
    """End the micro-batch if a job ended because the query, or Spark, is being stopped: no user's code is to blame."""
    if any(sign in str(error) for sign in INTERRUPTIONS):
        raise InterruptedError(STOPPED) from None


@contextmanager
def brief_interruptions() -> Iterator[None]:
    """Tell Spark in few words that a micro-batch was cut off.

    >>> with brief_interruptions():  # doctest: +ELLIPSIS
    ...     raise RuntimeError("java.lang.InterruptedException, at " + 1000 * "java.lang.Thread, at ")
    Traceback (most recent call last):
    InterruptedError: py4j.protocol.Py4JJavaError: An error ... will be run again: java.lang.InterruptedException
    """
    try:
        yield
    except Exception as error:
        refuse_interruption(error)
        raise
