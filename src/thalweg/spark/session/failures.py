"""What an error of a query or a sink means: the query's own failure, or the end of the whole session."""

from __future__ import annotations

LONGEST_REASON = 500  # characters
INTERRUPTIONS = (  # what Spark says when a streaming query or Spark itself is stopped
    "SPARK_JOB_CANCELLED",
    "InterruptedException",
    "ClosedByInterruptException",
    "SparkContext was shut down",
    "stopped SparkContext",
)
STOPPED = "the session was stopped within a micro-batch, which will be run again"


def reason(error: Exception) -> str:
    """What went wrong, in one line: of an error in a Python worker, the line behind its traceback."""
    text = str(error).strip() or type(error).__name__
    _, _, traceback = text.partition("Traceback (most recent call last):\n")
    behind = (line for line in traceback.splitlines() if line and not line.startswith(" "))
    return next(behind, text.partition("\n")[0])[:LONGEST_REASON]


def refuse_interruption(error: Exception) -> None:
    """End the micro-batch if a job ended because the session, or Spark, is being stopped: no query is to blame.

    In few words, which Spark looks through for the reason with a regular expression.
    """
    if any(sign in str(error) for sign in INTERRUPTIONS):
        raise InterruptedError(STOPPED) from None
