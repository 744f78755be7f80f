"""As written: the order never changes. Spark runs filters so, and every comparison has this policy as its baseline."""

from __future__ import annotations

from typing import ClassVar

from thalweg.ordering.policy import Batch, Policy


class AsWritten(Policy):
    """Keeps the order it begins with and profiles nothing.

    >>> AsWritten(3).order
    (0, 1, 2)
    """

    name: ClassVar[str] = "as-written"

    def _adapt(self, batch: Batch) -> bool:
        return False
