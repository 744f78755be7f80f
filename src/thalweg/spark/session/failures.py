"""Why a query has failed, in one line."""

from __future__ import annotations

LONGEST_REASON = 500  # characters


def reason(error: Exception) -> str:
    """What went wrong, in one line: of an error in a Python worker, the line behind its traceback."""
    text = str(error).strip() or type(error).__name__
    _, _, traceback = text.partition("Traceback (most recent call last):\n")
    behind = (line for line in traceback.splitlines() if line and not line.startswith(" "))
    return next(behind, text.partition("\n")[0])[:LONGEST_REASON]
