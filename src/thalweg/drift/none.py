"""No detector: history never goes out of date. The baseline of every comparison."""

from __future__ import annotations

from typing import ClassVar

from thalweg.drift.detector import Alarm, Detector
from thalweg.ordering.types import Floats


class NoDetector(Detector):
    """Finds nothing, so that a watched policy is the policy itself.

    >>> detector = NoDetector()
    >>> detector.watch(1)
    >>> [detector.update([estimate]) for estimate in (0.1, 0.9)]
    [(), ()]
    """

    name: ClassVar[str] = "none"
    is_blind: ClassVar[bool] = True

    def _begin(self, series: int) -> None:
        pass

    def _take(self, estimates: Floats) -> list[Alarm]:
        return []
